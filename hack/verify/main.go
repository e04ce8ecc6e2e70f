package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const help = `janus-verify checks a release of Janus.

usage: janus-verify COMMAND [flags]

commands:
  check      check a release; see "janus-verify check --help"
  registry   serve a registry on the loopback interface, for trials
  push       push an OCI layout in an archive to a registry
  sign       sign a release with a key that is made and forgotten, for trials
`

type command func(ctx context.Context, args []string, out, explain io.Writer) error

var commands = map[string]command{
	"check":    runCheck,
	"registry": runRegistry,
	"push":     runPush,
	"sign":     runSign,
}

// errUsage says that the flags were wrong, after it was said why.
var errUsage = errors.New("wrong usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, help)
		os.Exit(2)
	}
	err := commands[os.Args[1]](ctx, os.Args[2:], os.Stdout, os.Stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "janus-verify:", err)
		os.Exit(1)
	}
}

// parse parses flags and says which of them are missing.
func parse(fs *flag.FlagSet, args []string, explain io.Writer, required ...string) error {
	fs.SetOutput(explain)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	for _, name := range required {
		if f := fs.Lookup(name); f == nil || f.Value.String() == "" {
			_, _ = fmt.Fprintf(explain, "--%s is required\n", name)
			return errUsage
		}
	}
	return nil
}
