package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
)

// patience is how long a process may take to do what it must.
const patience = 60 * time.Second

// A process is a janusd of its own.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{}

	mu    sync.Mutex
	lines [][]byte
	news  chan struct{} // closed and replaced with each line
}

// startJanusd starts janusd for the Transactions of the namespace, whose own
// namespace is the same, with the rights that are shipped.
func startJanusd(t *testing.T, e *harness.Env, args ...string) *process {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, e.JanusdKubeconfig(t.Context(), kubeconfig))
	return startWith(t, kubeconfig, e.Namespace, args...)
}

func startWith(t *testing.T, kubeconfig, namespace string, args ...string) *process {
	t.Helper()
	return startChanging(t, kubeconfig, namespace, append([]string{"--watch-namespaces=" + namespace}, args...)...)
}

// startChanging is startWith for a janusd that is told in args what to watch.
func startChanging(t *testing.T, kubeconfig, namespace string, args ...string) *process {
	t.Helper()
	args = append([]string{
		"--kubeconfig=" + kubeconfig, "--namespace=" + namespace,
		"--metrics-bind-address=0", "--metrics-secure=false", "--health-probe-bind-address=0",
	}, args...)
	p := &process{t: t, cmd: exec.Command("janusd", args...), ended: make(chan struct{}), news: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go p.follow(stderr)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("janusd %d wrote:\n%s", p.cmd.Process.Pid, bytes.Join(p.log(), []byte("\n")))
		}
	})
	return p
}

func (p *process) follow(stderr io.Reader) {
	scanner := bufio.NewScanner(stderr)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, bytes.Clone(scanner.Bytes()))
		close(p.news)
		p.news = make(chan struct{})
		p.mu.Unlock()
	}
	_ = p.cmd.Wait()
	close(p.ended)
}

func (p *process) log() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([][]byte{}, p.lines...)
}

// entry is a line of the log.
type entry map[string]any

// entries returns the lines that are of the given message.
func (p *process) entries(message string) []entry {
	var out []entry
	for _, line := range p.log() {
		var e entry
		if json.Unmarshal(line, &e) == nil && e["msg"] == message {
			out = append(out, e)
		}
	}
	return out
}

// await waits until janusd logs a message.
func (p *process) await(message string) entry {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		p.mu.Lock()
		news := p.news
		p.mu.Unlock()
		if found := p.entries(message); len(found) > 0 {
			return found[0]
		}
		select {
		case <-news:
		case <-p.ended:
			require.NotEmpty(p.t, p.entries(message), "janusd ended and never logged %q", message)
		case <-timeout:
			require.Fail(p.t, "too late", "janusd did not log %q", message)
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// exit waits for the end and returns the exit code.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		require.Fail(p.t, "janusd does not end")
		return -1
	}
}

// get asks one of janusd's servers.
func (p *process) get(server, path string) (int, string) {
	p.t.Helper()
	addr, _ := p.await("serving " + server)["address"].(string)
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, fmt.Sprintf("http://%s%s", addr, path), nil)
	require.NoError(p.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	return resp.StatusCode, string(body)
}
