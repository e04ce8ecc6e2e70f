// Janusd runs Transactions: ordered changes to Kubernetes objects that are made
// together or not at all. `janusd --help` lists its flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"janus.io/janus/internal/formats"
	"janus.io/janus/internal/version"
)

func main() {
	saveMemory(os.DirFS("/"))
	formats.WithoutCBOR()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(start(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// start parses the flags and runs janusd. It returns the exit code: 0 after an
// orderly stop or --help, 1 when janusd cannot run, 2 for bad flags.
func start(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "janusd: %v\nRun 'janusd --help' for the flags.\n", err)
		return 2
	case o.version:
		_, _ = fmt.Fprintln(stdout, "janusd", version.Version)
		return 0
	}
	if err := run(ctx, o); err != nil {
		_, _ = fmt.Fprintf(stderr, "janusd: %v\n", err)
		return 1
	}
	return 0
}
