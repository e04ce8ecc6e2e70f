// Kubectl-janus is a plugin of kubectl that makes, watches and ends Transactions.
// `kubectl janus help` lists its commands.
//
// Results go to stdout, and what happens on the way to stderr. The exit code of run, wait
// and whatever waits says how the Transaction has ended; exit.go lists them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"janus.io/janus/internal/formats"
)

func main() {
	formats.WithoutCBOR()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(start(ctx, os.Args[1:], streams))
}

// start runs one command and returns its exit code.
func start(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	root := newRoot(streams) //nolint:contextcheck // Each command has its own when it runs.
	root.SetArgs(args)
	return exitCode(root.ExecuteContext(ctx), streams.ErrOut)
}
