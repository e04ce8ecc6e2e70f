package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"janus.io/janus/test/testcluster"
)

const usage = `tests runs the tests of Janus in parts.

usage: tests [flags] COMMAND

commands:
  run PART...  run parts, in order; "all" means every part of make test-all
  list         print the parts, one a line: name, minutes, what it shows
  names        print the names of the parts of make test-all as a JSON array
  ci NUMBER    run the parts of make test-all that this run of CI does, until the time is up

flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// command runs what the arguments ask for and returns the exit status: 1 if tests have
// failed, 2 if they could not be run.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("tests", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	minutes := flags.Int("minutes", 40, "with ci, begin no part that would end after so many minutes")
	times := flags.String("times", "", "write what each package and test has taken to this `file`, as JSON")
	atOnce := flags.Int("p", 0, "test so many packages at the same time, instead of what the parts say")
	arguments := flags.String("args", "", "flags for every go test, such as '-shuffle=on -count=1'")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || flags.NArg() == 0 {
		flags.Usage()
		return 2
	}
	root, err := testcluster.Root()
	if err != nil {
		return fail(stderr, err)
	}
	parts, err := load(filepath.Join(root, "hack", "tests", "parts.yaml"))
	if err != nil {
		return fail(stderr, err)
	}
	r := &runner{root: root, out: stdout, now: time.Now, args: strings.Fields(*arguments), atOnce: *atOnce}
	err = r.do(ctx, parts, flags.Arg(0), flags.Args()[1:], time.Duration(*minutes)*time.Minute)
	if *times != "" {
		err = errors.Join(err, r.write(*times))
	}
	if errors.Is(err, errFailed) {
		return 1
	}
	if err != nil {
		return fail(stderr, err)
	}
	return 0
}

func fail(w io.Writer, err error) int {
	_, _ = fmt.Fprintln(w, "tests:", err)
	return 2
}

func (r *runner) do(ctx context.Context, parts []part, verb string, names []string, time time.Duration) error {
	switch verb {
	case "run":
		if len(names) == 1 && names[0] == "all" {
			return r.parts(ctx, all(parts))
		}
		chosen, err := pick(parts, names)
		if err != nil {
			return err
		}
		return r.parts(ctx, chosen)
	case "list":
		for _, p := range parts {
			_, _ = fmt.Fprintf(r.out, "%-14s %3d min  %s\n", p.Name, p.Minutes, p.What)
		}
		return nil
	case "names":
		quoted := make([]string, 0, len(parts))
		for _, p := range all(parts) {
			quoted = append(quoted, strconv.Quote(p.Name))
		}
		_, _ = fmt.Fprintf(r.out, "[%s]\n", strings.Join(quoted, ","))
		return nil
	case "ci":
		if len(names) != 1 {
			return errors.New("ci needs the number of the run")
		}
		number, err := strconv.Atoi(names[0])
		if err != nil {
			return fmt.Errorf("the number of the run: %w", err)
		}
		return r.ci(ctx, parts, number, time)
	}
	return fmt.Errorf("there is no command %q; tests --help lists them", verb)
}

// parts runs parts, all of them even if one fails.
func (r *runner) parts(ctx context.Context, parts []part) error {
	var failed []string
	for _, p := range parts {
		err := r.part(ctx, p)
		if err != nil && !errors.Is(err, errFailed) {
			return err
		}
		if err != nil {
			failed = append(failed, p.Name)
		}
	}
	if len(failed) > 0 {
		_, _ = fmt.Fprintf(r.out, "FAILED: %s\n", strings.Join(failed, ", "))
		return errFailed
	}
	return nil
}

// ci runs what is the turn of a run of CI, and begins nothing that would end too late.
func (r *runner) ci(ctx context.Context, parts []part, number int, limit time.Duration) error {
	chosen := turn(parts, number, int(limit.Minutes()))
	names := make([]string, 0, len(chosen))
	for _, p := range chosen {
		names = append(names, p.Name)
	}
	_, _ = fmt.Fprintf(r.out, "==> run %d of CI, %d of %d: %s\n", number, number%rounds+1, rounds, strings.Join(names, ", "))
	began := r.now()
	for i, p := range chosen {
		if i > 0 && r.now().Sub(began)+time.Duration(p.Minutes)*time.Minute > limit {
			_, _ = fmt.Fprintf(r.out, "==> no time is left for: %s\n", strings.Join(names[i:], ", "))
			return nil
		}
		if err := r.parts(ctx, []part{p}); err != nil {
			return err
		}
	}
	return nil
}
