package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// BuildJanusd builds janusd as it is shipped, without the race detector, and returns its
// path.
func BuildJanusd(t testing.TB) string {
	t.Helper()
	path, err := BuildJanusdIn(t.TempDir())
	require.NoError(t, err)
	return path
}

// BuildJanusdIn is BuildJanusd for a directory that several tests share.
func BuildJanusdIn(dir string) (string, error) {
	path := filepath.Join(dir, "janusd")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "./cmd/janusd")
	build.Dir = Root()
	build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build janusd: %w\n%s", err, said)
	}
	return path, nil
}

// A Program is a process of janusd, with what it has logged.
type Program struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu     sync.Mutex
	stderr bytes.Buffer
}

// RunProgram starts one. It dies with this process, whatever ends that.
func RunProgram(t testing.TB, cmd *exec.Cmd) *Program {
	t.Helper()
	p := &Program{cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = p
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		// The signal follows the thread that started the child. This one is never
		// unlocked, so it lives as long as the child.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(p.ended)
		}
	}()
	require.NoError(t, <-started)
	return p
}

// Write takes what the process writes to standard error.
func (p *Program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(b)
}

// Log is what the process has logged.
func (p *Program) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// Field returns a field of the first line of the log with a message.
func (p *Program) Field(message, name string) (string, bool) {
	for line := range bytes.Lines([]byte(p.Log())) {
		var entry map[string]any
		if json.Unmarshal(line, &entry) == nil && entry["msg"] == message {
			value, _ := entry[name].(string)
			return value, true
		}
	}
	return "", false
}

// PID is the number of the process.
func (p *Program) PID() int { return p.cmd.Process.Pid }

// Signal sends a signal. A process that has just ended by itself does not get it.
func (p *Program) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Ended is closed when the process is gone.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// ExitCode is that of a process that has ended.
func (p *Program) ExitCode() int { return p.cmd.ProcessState.ExitCode() }
