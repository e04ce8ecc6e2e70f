package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"janus.io/janus/hack/cluster/internal/supervisor"
)

const help = `janus-cluster is a Kubernetes control plane in one binary.

usage: janus-cluster COMMAND [flags]

commands:
  run                        run a cluster; see "janus-cluster run --help"
  etcd                       be etcd
  kube-apiserver             be the API server
  kube-controller-manager    be the controller manager
  kube-scheduler             be the scheduler
  kubectl                    be kubectl, as under that name through a link
  help                       print this text
`

func init() {
	// The components die with the thread that started them, so the supervisor
	// must stay on the main thread, which lives as long as the process.
	runtime.LockOSThread()
}

func main() {
	os.Exit(dispatch(os.Args))
}

// dispatch acts by the first argument and returns the exit status.
func dispatch(args []string) int {
	if len(args) > 0 && calledAsKubectl(args[0]) {
		args = append([]string{args[0], "kubectl"}, args[1:]...)
	}
	if len(args) < 2 {
		fmt.Print(help)
		return 0
	}
	switch args[1] {
	case "help", "-h", "-help", "--help":
		fmt.Print(help)
		return 0
	case "run":
		return run(args[2:])
	}
	component, ok := components[args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "janus-cluster: unknown command %q\n\n%s", args[1], help)
		return 2
	}
	// A component is alone in its process and needs no particular thread.
	runtime.UnlockOSThread()
	return component(args[1:])
}

// run runs the supervisor and returns the exit status.
func run(args []string) int {
	options, err := supervisor.ParseFlags(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return fail(os.Stderr, err, 2)
	}
	self, err := os.Executable()
	if err != nil {
		return fail(os.Stderr, fmt.Errorf("find the binary: %w", err), 1)
	}
	// The reader of standard output may be gone, for example because a test
	// was killed. Writing to it must fail then, and not end the supervisor
	// before it has removed its files.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err = supervisor.Run(ctx, options, supervisor.Environment{
		Self:   self,
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		Now:    time.Now,
	})
	if err != nil {
		return fail(os.Stderr, err, 1)
	}
	return 0
}

func fail(w io.Writer, err error, status int) int {
	_, _ = fmt.Fprintln(w, "janus-cluster:", err)
	return status
}
