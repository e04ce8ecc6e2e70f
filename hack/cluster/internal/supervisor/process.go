package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// process is a component that was started.
type process struct {
	component component
	cmd       *exec.Cmd
	log       *logTail
	// done is closed after the process has ended and err is set.
	done chan struct{}
	err  error
}

// startProcess starts the component in dir and sends the process on exits when
// it has ended. exits must never block. It must run on the goroutine that is
// locked to the main thread, see the package comment.
func startProcess(c component, dir string, logs io.Writer, prefix string, exits chan<- *process) (*process, error) {
	p := &process{
		component: c,
		cmd:       exec.Command(c.path, c.args...),
		log:       &logTail{out: logs, prefix: prefix},
		done:      make(chan struct{}),
	}
	p.cmd.Dir = dir
	p.cmd.Stdout = p.log
	p.cmd.Stderr = p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		// A group of its own keeps the interrupt of a terminal from reaching
		// the component, which must end in its turn.
		Setpgid: true,
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
		exits <- p
	}()
	return p, nil
}

// pid is the process id.
func (p *process) pid() int { return p.cmd.Process.Pid }

// killed says whether a signal ended the process, which died of it or ended in order
// because of it: no component ends with success by itself. It may be asked only after
// done is closed.
func (p *process) killed() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && (status.Signaled() || status.ExitStatus() == 0)
}

// stop asks the process to end, kills it if it has not after the grace period,
// and returns when it is gone. It says whether it had to kill.
func (p *process) stop(grace time.Duration) (bool, error) {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return false, err
	}
	// A component that a test has stopped would not see the request.
	if err := p.signal(syscall.SIGCONT); err != nil {
		return false, err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return false, nil
	case <-timer.C:
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return false, err
	}
	<-p.done
	return true, nil
}

// signal sends the signal to a process that may have ended.
func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", s, p.component.name, err)
	}
	return nil
}

// ExitError says that a component ended although nobody stopped it.
type ExitError struct {
	// Component is its name.
	Component string
	// State is how it ended, such as "exit status 1".
	State string
	// Log holds the last lines it wrote.
	Log []string
}

func (e *ExitError) Error() string {
	return fmt.Sprintf("%s ended by itself (%s), its last lines:\n\t%s",
		e.Component, e.State, strings.Join(e.Log, "\n\t"))
}

// exitError describes a process that has ended.
func (p *process) exitError() *ExitError {
	return &ExitError{Component: p.component.name, State: p.cmd.ProcessState.String(), Log: p.log.last()}
}
