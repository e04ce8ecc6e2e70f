package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const usage = `proofs runs what proves the guarantees of Janus, and keeps what has passed.

usage: proofs [flags] [PROOF...]

Without names it runs all proofs, of each the slices that have not passed on these sources.

flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "proofs:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("proofs", flag.ContinueOnError)
	flags.Usage = func() {
		_, _ = fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	minutes := flags.Int("minutes", 0, "begin no slice after so many minutes; 0 for no limit")
	reset := flags.Bool("reset", false, "forget what has passed, such as on other sources")
	version := flags.Bool("version", false, "print the version of the sources and exit")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	now, err := versionOf(ctx, root, proven)
	if err != nil {
		return err
	}
	if *version {
		_, err := fmt.Fprintln(out, now)
		return err
	}
	all, err := load(filepath.Join(root, "hack", "proofs", "proofs.yaml"))
	if err != nil {
		return err
	}
	s := session{
		root: root, all: all, out: out, now: time.Now,
		path: filepath.Join(root, "hack", "proofs", "passed.yaml"), page: filepath.Join(root, "docs", "proofs.md"),
		logs: filepath.Join(root, "dist", "proofs"), run: goTest,
	}
	if *minutes > 0 {
		s.until = s.now().Add(time.Duration(*minutes) * time.Minute)
	}
	if s.record, err = open(s.path, now, *reset); err != nil {
		return err
	}
	return s.proofs(ctx, flags.Args())
}

// A session runs slices, one after the other.
type session struct {
	root, path, page, logs string
	all                    []proof
	record                 record
	out                    io.Writer
	now                    func() time.Time
	// until is when the last slice may begin; zero for no limit.
	until time.Time
	// run runs go in a directory, and writes what it prints to a file.
	run func(ctx context.Context, dir string, args []string, log string) error
}

// proofs runs the slices of some proofs, or of all, that have not passed. One that fails does not
// hold up the others.
func (s *session) proofs(ctx context.Context, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(s.all, func(p proof) bool { return p.Name == name }) {
			return fmt.Errorf("there is no proof %q in hack/proofs/proofs.yaml", name)
		}
	}
	var failed []string
	for _, p := range s.all {
		if len(names) > 0 && !slices.Contains(names, p.Name) {
			continue
		}
		for slice := range p.Slices {
			if s.record.has(p, slice) {
				continue
			}
			if !s.until.IsZero() && s.now().After(s.until) {
				_, _ = fmt.Fprintln(s.out, "==> the time is over; make proofs resumes here")
				return verdict(failed)
			}
			if err := s.slice(ctx, p, slice); ctx.Err() != nil {
				return errors.Join(verdict(failed), ctx.Err())
			} else if err != nil {
				_, _ = fmt.Fprintf(s.out, "FAIL %s %d: %v\n", p.Name, slice, err)
				failed = append(failed, fmt.Sprintf("%s %d", p.Name, slice))
			}
		}
	}
	return verdict(failed)
}

func verdict(failed []string) error {
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
}

// slice runs one, and records that it has passed.
func (s *session) slice(ctx context.Context, p proof, n int) error {
	_, _ = fmt.Fprintf(s.out, "==> %s, slice %d of %d: %s\n", p.Name, n, p.Slices, p.What)
	if err := os.MkdirAll(s.logs, 0o750); err != nil {
		return err
	}
	log := filepath.Join(s.logs, fmt.Sprintf("%s-%d.log", strings.ReplaceAll(p.Name, " ", "-"), n))
	began := s.now()
	if err := s.run(ctx, s.root, p.command(n), log); err != nil {
		return fmt.Errorf("%w; what it printed is in %s", err, log)
	}
	took := s.now().Sub(began)
	printed, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	done, err := p.count(printed)
	if err != nil {
		return fmt.Errorf("%w; it is in %s", err, log)
	}
	if err := s.record.reload(s.path); err != nil {
		return err
	}
	s.record.Results = append(s.record.Results, result{
		Proof: p.Name, Slice: n, Done: done, Seconds: int(took.Seconds()), Date: s.now().UTC().Format(time.DateOnly),
	})
	if err := s.record.save(s.path); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(s.out, "ok   %s %d: %d %s in %s\n", p.Name, n, done, p.Unit, took.Round(time.Second))
	return os.WriteFile(s.page, []byte(page(s.all, s.record)), 0o644)
}

// goTest runs the command of a slice.
func goTest(ctx context.Context, dir string, args []string, log string) error {
	file, err := os.Create(log)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, file, file
	// go does not pass signals on to the tests that it runs, so that their whole group gets them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	return errors.Join(cmd.Run(), file.Close())
}
