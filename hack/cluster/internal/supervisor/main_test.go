package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// programs holds the paths of the two binaries, built from the sources that
// are being tested.
var programs struct{ cluster, kwok string }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "janus-cluster-test-")
	if err == nil {
		programs.cluster = filepath.Join(dir, "janus-cluster")
		programs.kwok = filepath.Join(dir, "janus-kwok")
		err = errorsOf(compile("../..", programs.cluster), compile("../../../kwok", programs.kwok))
	}
	status := 1
	if err == nil {
		status = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// compile leaves the race detector out, which etcd and Kubernetes would take
// minutes to be built with.
func compile(module, output string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", output, ".")
	cmd.Dir = module
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", module, err, said)
	}
	return nil
}

// running is a supervisor that a test has started.
type running struct {
	cmd    *exec.Cmd
	dir    string
	stdin  *os.File
	stderr lockedBuffer
	mu     sync.Mutex
	lines  []string
	ready  chan string
	ended  chan struct{}
	err    error
}

// lockedBuffer collects what a process writes while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// launchRun starts "janus-cluster run" in a directory of the test's own.
func launchRun(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{dir: filepath.Join(t.TempDir(), "data"), ready: make(chan string, 1), ended: make(chan struct{})}
	r.cmd = exec.Command(programs.cluster, append([]string{"run", "--dir", r.dir}, args...)...)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.stdin = writer
	r.cmd.Stdin, r.cmd.Stderr = reader, &r.stderr
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			r.line(lines.Text())
		}
		r.err = r.cmd.Wait()
		close(r.ended)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.ended
		_ = writer.Close()
	})
	return r
}

func (r *running) line(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, text)
	if strings.HasPrefix(text, "ready: ") {
		r.ready <- text
	}
}

func (r *running) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

// awaitReady returns the ready line.
func (r *running) awaitReady(t *testing.T) string {
	t.Helper()
	select {
	case line := <-r.ready:
		return line
	case <-r.ended:
		t.Fatalf("ended before it was ready: %v\n%s\n%s", r.err, r.said(), r.stderr.String())
	case <-time.After(2 * time.Minute):
		t.Fatalf("not ready: %s", r.said())
	}
	return ""
}

// awaitEnd returns how the supervisor ended.
func (r *running) awaitEnd(t *testing.T, limit time.Duration) error {
	t.Helper()
	select {
	case <-r.ended:
		return r.err
	case <-time.After(limit):
		t.Fatalf("still running after %s:\n%s\n%s", limit, r.said(), r.stderr.String())
		return nil
	}
}

// interrupt sends a signal to the supervisor.
func (r *running) interrupt(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// pids reads pids.json.
func (r *running) pids(t *testing.T) map[string]int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(r.dir, "pids.json"))
	if err != nil {
		t.Fatal(err)
	}
	var pids map[string]int
	if err := json.Unmarshal(content, &pids); err != nil {
		t.Fatal(err)
	}
	return pids
}

// noneLeft wants none of the processes to exist.
func noneLeft(pids map[string]int) probe {
	return func(context.Context) error {
		for name, pid := range pids {
			if syscall.Kill(pid, 0) == nil {
				return fmt.Errorf("%s (%d) is left", name, pid)
			}
		}
		return nil
	}
}

// within fails the test unless the probe succeeds in time.
func within(t *testing.T, limit time.Duration, p probe) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := await(ctx, p); err != nil {
		t.Fatal(err)
	}
}
