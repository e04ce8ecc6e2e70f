package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"janus.io/janus/lockmgr"
)

// grace is how long a command that was told to end may take, and lateGrace how long if the
// lock is no longer ours, or if the command has ended and its children have not.
const (
	grace     = 30 * time.Second
	lateGrace = 5 * time.Second
)

func newLocksHold(s *session) *cobra.Command {
	l := &locking{session: s}
	cmd := &cobra.Command{
		Use: "hold KIND/NAME [-- COMMAND ARGS...]", Short: "Hold the lock of an object, for some time or while a command runs",
		Example: `  kubectl janus locks hold deployment/web --for 10m
  kubectl janus locks hold configmap/settings -- ./edit-settings.sh`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.find(cmd.Context(), args[0]); err != nil {
				return err
			}
			if len(args) > 1 {
				return l.during(cmd.Context(), args[1:])
			}
			if err := l.acquire(cmd.Context()); err != nil {
				return err
			}
			s.print("%s is locked by %s for %s; release it with: kubectl janus locks release %s", l.key, l.holder, l.lasts, again(cmd, args[0]))
			return nil
		},
	}
	l.addTo(cmd)
	cmd.Flags().DurationVar(&l.lasts, "for", 5*time.Minute, "how long the lock lasts; while a command runs it is renewed")
	return cmd
}

// again is what names an object and its lock to release as it does to hold: without the same
// flags that would be another object, or another holder.
func again(cmd *cobra.Command, object string) string {
	for _, name := range []string{"holder", "locks", "namespace", "system-namespace"} {
		if flag := cmd.Flag(name); flag != nil && flag.Changed {
			object += " --" + name + " " + quoted(flag.Value.String())
		}
	}
	return object
}

// quoted is a word that a shell takes as it is.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@=+,", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// during runs a command while the lock is held, and ends it if the lock is lost or anyone who
// has asked for it goes. The lock is kept until the command has ended.
func (l *locking) during(ctx context.Context, args []string) (err error) {
	since := time.Now()
	if err := l.acquire(ctx); err != nil {
		return err
	}
	defer func() {
		failed := l.release(ctx)
		var own *exitError
		if failed != nil && errors.As(err, &own) {
			// The exit code is that of the command, with which nothing else is printed.
			l.say("error: %v", failed)
			return
		}
		err = errors.Join(err, failed)
	}()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	kept, drop := context.WithCancel(context.WithoutCancel(ctx))
	defer drop()
	command := l.command(ctx, args)
	go func() {
		if err := l.keep(kept, since); err != nil {
			end(&notOursError{err})
		}
	}()
	err = command.Run()
	var gone *notOursError
	var exit *exec.ExitError
	switch {
	case errors.As(context.Cause(ctx), &gone):
		return fmt.Errorf("the command was ended: %w", gone.err)
	case errors.As(err, &exit):
		return &exitError{code: exitCodeOf(exit.ProcessState)}
	default:
		return err
	}
}

// notOursError is why a lock can no longer be taken to be held.
type notOursError struct{ err error }

func (e *notOursError) Error() string { return e.err.Error() }

// command is what is run. It is told to end when ctx does, with all that it has started:
// what went on after the lock is released would write unguarded. At a terminal it stays in
// the group that has it, or it could not read from there; Ctrl-C reaches all of that group.
func (l *locking) command(ctx context.Context, args []string) *held {
	c := &held{Cmd: exec.CommandContext(ctx, args[0], args[1:]...)}
	c.Stdin, c.Stdout, c.Stderr = l.In, l.Out, l.ErrOut
	if !l.interactive() {
		c.group = ownGroup(c.Cmd)
	}
	c.WaitDelay = grace
	c.Cancel = func() error {
		var gone *notOursError
		if errors.As(context.Cause(ctx), &gone) {
			c.late = time.AfterFunc(lateGrace, func() { _ = kill(c.Process, c.group) })
		}
		c.told = true
		return terminate(c.Process, c.group)
	}
	return c
}

// held is a command that runs while a lock is held.
type held struct {
	*exec.Cmd
	group bool        // it has a process group of its own
	told  bool        // it was told to end
	late  *time.Timer // kills it, if the lock is not ours any more
}

// Run runs the command. If it was told to end, what it has started has ended too after that.
func (c *held) Run() error {
	err := c.Cmd.Run()
	if !c.told {
		return err
	}
	if c.late != nil {
		c.late.Stop()
	}
	for end := time.Now().Add(lateGrace); c.group && alive(c.Process); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			_ = kill(c.Process, c.group)
			break
		}
	}
	return err
}

// keep renews the lock, which was taken at since, until ctx ends. The error says why the
// lock is not ours any more. An API server that does not answer is no reason while the
// lock's time lasts: nobody else can have taken it.
func (l *locking) keep(ctx context.Context, since time.Time) error {
	wait := l.lasts / 3
	var last error
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		begun, over := time.Now(), since.Add(l.lasts)
		if !begun.Before(over) && last != nil {
			return fmt.Errorf("the lock of %s could not be renewed for %s: %w", l.key, l.lasts, last)
		}
		attempt, cancel := context.WithDeadline(ctx, over)
		_, err := l.locks.Acquire(attempt, l.who(), []lockmgr.Key{l.key})
		cancel()
		var taken *lockmgr.HeldError
		var lost *lockmgr.LostError
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			since, wait, last = begun, l.lasts/3, nil
		case errors.As(err, &taken), errors.As(err, &lost):
			return err
		default:
			wait, last = min(time.Second, time.Until(over)), err
		}
	}
}
