package main

import (
	"os"
	"os/exec"
)

// Windows has neither signals that ask a process to end nor groups that they could be sent
// to: a command is ended at once, and alone.

func ownGroup(*exec.Cmd) bool { return false }

func terminate(p *os.Process, _ bool) error { return p.Kill() }

func kill(p *os.Process, _ bool) error { return p.Kill() }

func alive(*os.Process) bool { return false }

func exitCodeOf(state *os.ProcessState) int { return state.ExitCode() }
