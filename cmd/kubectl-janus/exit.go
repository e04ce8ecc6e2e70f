package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	api "janus.io/janus/api/v1alpha1"
)

// Exit codes. Those of what waits for a Transaction tell how it has ended; plan has those
// of diff.
const (
	exitOK         = 0
	exitDiffers    = 1 // of plan: something would change
	exitOther      = 1 // of all others
	exitTrouble    = 2 // of plan: it cannot be told
	exitRolledBack = 4
	exitFailed     = 5
	exitTimeout    = 124
)

// exitError is an error with an exit code of its own. Without a cause nothing is printed:
// the message has been printed already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitCode prints an error and returns the exit code for it.
func exitCode(err error, stderr io.Writer) int {
	var own *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &own) && own.err == nil:
		return own.code
	case errors.As(err, &own):
		_, _ = fmt.Fprintln(stderr, "error:", plainLines(own.err.Error()))
		return own.code
	case interrupted(err):
		_, _ = fmt.Fprintln(stderr, "error: interrupted")
		return exitOther
	default:
		_, _ = fmt.Fprintln(stderr, "error:", plainLines(err.Error()))
		return exitOther
	}
}

// interrupted reports whether an error says nothing but that the command was interrupted.
func interrupted(err error) bool {
	var doubt *doubtError
	return errors.Is(err, context.Canceled) && !errors.As(err, &doubt)
}

// outcome returns the error, and with it the exit code, for a Transaction that has ended.
func outcome(t *api.Transaction) error {
	switch t.Status.Phase {
	case api.PhaseCommitted, api.PhasePlanned:
		return nil
	case api.PhaseRolledBack:
		return &exitError{code: exitRolledBack}
	default:
		return &exitError{code: exitFailed}
	}
}
