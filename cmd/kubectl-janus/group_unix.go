//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// signalled is what shells add to the number of the signal that has ended a program.
const signalled = 128

// ownGroup has a command start in a process group of its own, and reports that it does.
func ownGroup(c *exec.Cmd) bool {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return true
}

// terminate asks a process, or its whole group, to end.
func terminate(p *os.Process, group bool) error {
	if !group {
		return p.Signal(syscall.SIGTERM)
	}
	if err := syscall.Kill(-p.Pid, syscall.SIGTERM); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return os.ErrProcessDone
}

// kill ends a process, or its whole group.
func kill(p *os.Process, group bool) error {
	if group {
		return syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
	return p.Kill()
}

// alive reports whether there is anything in the group that a process has led.
func alive(leader *os.Process) bool { return syscall.Kill(-leader.Pid, 0) == nil }

// exitCodeOf is the exit code of a process as a shell returns it.
func exitCodeOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalled + int(status.Signal())
	}
	return state.ExitCode()
}
