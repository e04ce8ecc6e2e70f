package testcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// errEnded is what a supervisor that ended without a failure is reported with.
var errEnded = errors.New("the cluster has ended")

// process is a running supervisor.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *output
	stderr *output
	// ended is closed when the process is gone and waitErr is set.
	ended   chan struct{}
	waitErr error
}

// startProcess starts the supervisor on a thread of its own. The signal that a
// child gets when its parent dies follows the thread that started it, and other
// threads of a Go program may end before the program does.
func startProcess(binary string, args, env []string) (*process, error) {
	p := &process{
		cmd:    exec.Command(binary, args...),
		stdout: newOutput(),
		stderr: newOutput(),
		ended:  make(chan struct{}),
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = p.stdout, p.stderr, env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		// The supervisor stops its components in order and removes its files.
		Pdeathsig: syscall.SIGTERM,
		// The interrupt of a terminal is for the test, which stops the cluster.
		Setpgid: true,
	}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe to %s: %w", binary, err)
	}
	p.stdin = stdin
	started := make(chan error)
	go func() {
		// The thread is never unlocked, so it ends together with the goroutine.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.waitErr = p.cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("run %s: %w", binary, err)
	}
	return p, nil
}

// awaitReady returns the line by which the supervisor says that it is ready.
func (p *process) awaitReady(ctx context.Context) (string, error) {
	select {
	case line := <-p.stdout.ready:
		return line, nil
	case <-p.ended:
		return "", p.endError()
	case <-ctx.Done():
		return "", fmt.Errorf("%w; it said:\n%s%s", context.Cause(ctx), p.stdout.text(), p.stderr.text())
	}
}

// stop closes the pipe, which asks the supervisor to stop, and kills it if it
// has not ended in time. Its components die with it.
func (p *process) stop(timeout time.Duration) error {
	// The pipe is closed already if the process has ended or stop was called.
	_ = p.stdin.Close()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	if p.waitErr != nil {
		return p.endError()
	}
	return nil
}

// endError says how a process that is gone has ended.
func (p *process) endError() error {
	err := p.waitErr
	if err == nil {
		err = errEnded
	}
	return fmt.Errorf("%w; it said:\n%s%s", err, p.stdout.text(), p.stderr.text())
}

// outputLimit bounds what is remembered of a stream; the reason for an end
// comes last.
const outputLimit = 16 << 10

// output remembers the end of a stream and picks out the ready line.
type output struct {
	mu      sync.Mutex
	content []byte
	partial []byte
	// ready receives the line at most once, and has room for it.
	ready chan string
	found bool
}

func newOutput() *output { return &output{ready: make(chan string, 1)} }

// Write takes any part of the stream and never fails.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.content = append(o.content, b...)
	if extra := len(o.content) - outputLimit; extra > 0 {
		o.content = o.content[extra:]
	}
	o.partial = append(o.partial, b...)
	for {
		line, rest, ended := bytes.Cut(o.partial, []byte("\n"))
		if !ended {
			return len(b), nil
		}
		o.partial = rest
		if !o.found && strings.HasPrefix(string(line), "ready: ") {
			o.found = true
			o.ready <- string(line)
		}
	}
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.content)
}
