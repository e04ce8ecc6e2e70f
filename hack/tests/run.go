package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"janus.io/janus/test/testcluster"
)

// A runner runs parts.
type runner struct {
	root string
	out  io.Writer
	now  func() time.Time
	// args are flags for every go test, such as -shuffle=on.
	args  []string
	times []timed
	// atOnce, if it is not 0, is used instead of what the steps say.
	atOnce int
}

// errFailed says that a part has failed, after it was said why.
var errFailed = errors.New("tests have failed")

// part runs a part, and goes on after a step that has failed.
func (r *runner) part(ctx context.Context, p part) error {
	began := r.now()
	_, _ = fmt.Fprintf(r.out, "==> part %s: %s\n", p.Name, p.What)
	failed := false
	for i, s := range p.Steps {
		err := r.step(ctx, filepath.Join(r.root, "dist", "tests", p.Name), s)
		if err != nil && !errors.Is(err, errFailed) {
			return fmt.Errorf("step %d of part %s: %w", i+1, p.Name, err)
		}
		failed = failed || err != nil
	}
	verdict := "passed"
	if failed {
		verdict = "FAILED"
	}
	_, _ = fmt.Fprintf(r.out, "==> part %s %s in %s\n", p.Name, verdict, r.now().Sub(began).Round(time.Second))
	if failed {
		return errFailed
	}
	return nil
}

func (r *runner) step(ctx context.Context, logs string, s step) error {
	if s.Make != "" {
		return r.target(ctx, s.Make)
	}
	if !s.Share {
		return r.test(ctx, logs, s, append(os.Environ(), s.version(r.root)...))
	}
	cluster, offer, err := r.share()
	if err != nil {
		return err
	}
	err = r.test(ctx, logs, s, append(os.Environ(), testcluster.OfferVariable+"="+offer))
	return errors.Join(err, cluster.Stop())
}

// version is the environment in which the tests of a step find another version of Kubernetes.
func (s step) version(root string) []string {
	var out []string
	if s.Cluster != "" {
		out = append(out, testcluster.ClusterVariable+"="+filepath.Join(root, "bin", s.Cluster))
	}
	if s.Emulate != "" {
		out = append(out, testcluster.EmulateVariable+"="+s.Emulate)
	}
	return out
}

// target runs a target of the Makefile.
func (r *runner) target(ctx context.Context, name string) error {
	began := r.now()
	cmd := exec.CommandContext(ctx, "make", name)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, r.out, r.out
	err := cmd.Run()
	r.times = append(r.times, timed{Package: "make " + name, Seconds: r.now().Sub(began).Seconds()})
	if err != nil {
		_, _ = fmt.Fprintf(r.out, "FAIL make %s: %v\n", name, err)
		return errFailed
	}
	return nil
}

// test runs one go test.
func (r *runner) test(ctx context.Context, logs string, s step, env []string) error {
	began := r.now()
	packages, err := r.packages(ctx, s)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", slices.Concat(s.flags(r.atOnce), packages, s.Args, r.args)...)
	cmd.Dir = filepath.Join(r.root, s.Module)
	cmd.Env = env
	cmd.Stderr = r.out
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	report := newReport(r.out, logs)
	err = report.read(stdout)
	if err != nil {
		_ = cmd.Process.Kill()
	}
	ended := cmd.Wait()
	report.summary(r.now().Sub(began))
	r.times = append(r.times, report.times...)
	if err == nil && report.failed == 0 && report.passed == 0 && ended == nil {
		err = fmt.Errorf("go %s: no test has run", strings.Join(cmd.Args[1:], " "))
	}
	if err != nil {
		return err
	}
	if ended != nil || report.failed > 0 {
		return errFailed
	}
	return nil
}

// packages returns those that a step tests.
func (r *runner) packages(ctx context.Context, s step) ([]string, error) {
	if len(s.Except) == 0 {
		return s.Packages, nil
	}
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-f={{.Dir}}"}, s.Packages...)...)
	list.Dir, list.Stderr = filepath.Join(r.root, s.Module), r.out
	found, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var out []string
	for _, dir := range strings.Fields(string(found)) {
		below, err := filepath.Rel(list.Dir, dir)
		if err != nil {
			return nil, err
		}
		if s.takes(filepath.ToSlash(below)) {
			out = append(out, "./"+filepath.ToSlash(below))
		}
	}
	return out, nil
}

// flags returns the arguments of go that come before the packages.
func (s step) flags(atOnce int) []string {
	// What vet finds make lint finds too, in all files at once. The programs are built with
	// -trimpath, so that what is compiled for them need not be for the tests.
	args := []string{"test", "-json", "-vet=off", "-trimpath",
		fmt.Sprintf("-p=%d", cmp.Or(atOnce, s.AtOnce, 2)), fmt.Sprintf("-timeout=%dm", cmp.Or(s.Minutes, 40))}
	if s.Race {
		args = append(args, "-race")
	}
	if s.Run != "" {
		args = append(args, "-run="+s.Run)
	}
	if s.Skip != "" {
		args = append(args, "-skip="+s.Skip)
	}
	if s.Parallel > 0 {
		args = append(args, fmt.Sprintf("-parallel=%d", s.Parallel))
	}
	if s.Fresh {
		args = append(args, "-count=1")
	}
	return args
}

// write writes what the steps have taken.
func (r *runner) write(path string) error {
	content, err := json.MarshalIndent(r.times, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o600)
}
