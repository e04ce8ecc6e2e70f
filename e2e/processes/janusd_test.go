package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// janusd is a process of janusd.
type janusd struct {
	world *world
	cmd   *exec.Cmd
	ended chan struct{}

	mu     sync.Mutex
	stderr bytes.Buffer
}

// start starts janusd for the world's namespace, as the ServiceAccount that deploy/
// makes and with its rights.
func (w *world) start(args ...string) *janusd {
	w.t.Helper()
	j := &janusd{world: w, ended: make(chan struct{})}
	j.cmd = exec.Command(binary(w.t), append([]string{
		"--kubeconfig=" + w.kubeconfig, "--watch-namespaces=" + w.namespace,
		"--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false", "--health-probe-bind-address=0",
	}, args...)...)
	j.cmd.Stderr = j
	// janusd dies with this process, whatever ends it.
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The signal follows the thread that started the child. This one is never
		// unlocked, so it lives as long as the child.
		runtime.LockOSThread()
		err := j.cmd.Start()
		started <- err
		if err == nil {
			_ = j.cmd.Wait()
			close(j.ended)
		}
	}()
	require.NoError(w.t, <-started)
	w.add(j)
	return j
}

// Write takes what janusd writes to standard error.
func (j *janusd) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stderr.Write(b)
}

func (j *janusd) log() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stderr.String()
}

// field gives a field of the first line of the log with a message.
func (j *janusd) field(message, name string) (string, bool) {
	for line := range bytes.Lines([]byte(j.log())) {
		var entry map[string]any
		if json.Unmarshal(line, &entry) == nil && entry["msg"] == message {
			value, _ := entry[name].(string)
			return value, true
		}
	}
	return "", false
}

// works waits until janusd runs Transactions.
func (j *janusd) works() {
	j.world.t.Helper()
	j.world.until("janusd watches Transactions", func(context.Context) bool {
		_, ok := j.field("watching Transactions", "msg")
		return ok || !j.running()
	})
}

// signal sends a signal and counts it; SIGCONT is not a fault.
func (j *janusd) signal(s syscall.Signal) {
	if s != syscall.SIGCONT {
		j.world.counts.add(name(s)+" janusd", 1)
	}
	// A process that has just ended by itself cannot get it.
	_ = j.cmd.Process.Signal(s)
}

// name is that of a signal as people write it.
func name(s syscall.Signal) string {
	return map[syscall.Signal]string{
		syscall.SIGKILL: "SIGKILL", syscall.SIGTERM: "SIGTERM", syscall.SIGSTOP: "SIGSTOP", syscall.SIGCONT: "SIGCONT",
	}[s]
}

// kill kills janusd and waits until it is gone.
func (j *janusd) kill() {
	j.signal(syscall.SIGKILL)
	<-j.ended
}

func (j *janusd) running() bool {
	select {
	case <-j.ended:
		return false
	default:
		return true
	}
}

// exit waits for the end of janusd and gives its exit code.
func (j *janusd) exit(t testing.TB) int {
	t.Helper()
	select {
	case <-j.ended:
		return j.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		require.Fail(t, "janusd does not end", "%d wrote:\n%s", j.cmd.Process.Pid, j.tail())
		return -1
	}
}

// stopInOrder wants janusd to end when it is told to.
func (j *janusd) stopInOrder(t testing.TB) {
	t.Helper()
	_ = j.cmd.Process.Signal(syscall.SIGTERM)
	assert.Equal(t, 0, j.exit(t), "janusd did not end in order; it wrote:\n%s", j.tail())
}

// tail is the end of the log.
func (j *janusd) tail() string {
	log := j.log()
	return log[max(0, len(log)-4000):]
}

// metrics gives what janusd serves as metrics, or nothing if it does not yet.
func (j *janusd) metrics() string {
	address, ok := j.field("serving metrics", "address")
	if !ok {
		return ""
	}
	client := &http.Client{Timeout: patience}
	resp, err := client.Get(fmt.Sprintf("http://%s/metrics", address))
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(body)
}
