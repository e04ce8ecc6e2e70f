package supervisor

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
)

// Options says what Run starts and where it keeps its files.
type Options struct {
	// Dir is the data directory. Empty means a new temporary one, which is
	// removed at the end.
	Dir string
	// RemoveDir removes Dir at the end also if it was given.
	RemoveDir bool
	// Kubeconfig is where the administrator's kubeconfig is written once the
	// cluster is ready. Empty means admin.kubeconfig in the data directory.
	// The file is removed when the cluster stops.
	Kubeconfig string
	// AuditLog is the file that receives one JSON line for each completed
	// request. Empty means no audit log.
	AuditLog string
	// ControllerManager runs kube-controller-manager. Without it no namespace
	// ever finishes terminating and Pods are refused because a ServiceAccount is missing.
	ControllerManager bool
	// CRDs is a directory of CustomResourceDefinitions to create before the
	// controllers start. Empty means none.
	CRDs string
	// Scheduler runs kube-scheduler. It is implied by Nodes.
	Scheduler bool
	// Nodes is the number of Nodes whose kubelet kwok simulates.
	Nodes int
	// KwokBinary is the path of the janus-kwok binary, needed for Nodes.
	KwokBinary string
	// EtcdFsync makes etcd flush its files to disk. A cluster that is thrown
	// away when the machine crashes has no use for it.
	EtcdFsync bool
	// LogDir receives one log file for each component. Empty means that the
	// logs go to standard error, each line prefixed with the component.
	LogDir string
	// StopOnStdinEOF stops the cluster when standard input ends, which it does
	// when a parent that holds the other end of the pipe dies.
	StopOnStdinEOF bool
	// RestartKilled starts a component again after a signal ended it.
	RestartKilled bool
	// Emulate is a version of Kubernetes, such as 1.33, whose API and features the
	// components of Kubernetes keep to. Empty means their own.
	Emulate string
	// FeatureGates are those of the API server, as its flag of that name takes them.
	FeatureGates string
}

const usage = `usage: janus-cluster run [flags]

Starts a Kubernetes control plane on the loopback interface, prints a line for
each component that is ready and a final line

	ready: kubeconfig=PATH server=URL (SECONDS s)

and stops it on SIGINT or SIGTERM. It exits with 0 after a stop that was asked
for, and with 1 if a component ended by itself or did not become ready.

flags:
`

// ParseFlags reads the arguments of the run subcommand. It writes the help
// text to out and returns flag.ErrHelp when that is asked for.
func ParseFlags(args []string, out io.Writer) (Options, error) {
	var o Options
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.Usage = func() {
		_, _ = io.WriteString(out, usage)
		fs.PrintDefaults()
	}
	fs.StringVar(&o.Dir, "dir", "", "data `directory`, created if missing (default a new temporary directory, removed at the end)")
	fs.BoolVar(&o.RemoveDir, "remove-dir", false, "remove the data directory at the end also if --dir names it")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", "", "`path` of the administrator's kubeconfig, written when the cluster is ready (default admin.kubeconfig in the data directory)")
	fs.StringVar(&o.AuditLog, "audit-log", "", "`path` of an audit log: JSON lines, metadata level, completed requests only")
	fs.BoolVar(&o.ControllerManager, "controller-manager", true, "run kube-controller-manager")
	fs.StringVar(&o.CRDs, "crds", "", "`directory` of CustomResourceDefinitions, one in a file *.yaml, to create before the controllers start")
	fs.BoolVar(&o.Scheduler, "scheduler", false, "run kube-scheduler")
	fs.IntVar(&o.Nodes, "nodes", 0, "number of Nodes simulated by kwok; needs --kwok-binary and implies --scheduler")
	fs.StringVar(&o.KwokBinary, "kwok-binary", "", "`path` of the janus-kwok binary")
	fs.BoolVar(&o.EtcdFsync, "etcd-fsync", false, "let etcd flush its files to disk")
	fs.StringVar(&o.LogDir, "quiet-logs", "", "write the components' logs to files in this `directory` instead of standard error")
	fs.BoolVar(&o.StopOnStdinEOF, "stop-on-stdin-eof", false, "stop when standard input ends, as it does when the parent dies")
	fs.BoolVar(&o.RestartKilled, "restart-killed", false, "start a component again after a signal ended it, instead of stopping the cluster")
	fs.StringVar(&o.Emulate, "emulate", "", "`version` of Kubernetes, such as 1.33, whose API and features the components keep to (default their own; three minor versions back at most)")
	fs.StringVar(&o.FeatureGates, "feature-gates", "", "feature `gates` of the API server, such as CBORServingAndStorage=true")
	if err := fs.Parse(args); err != nil {
		return Options{}, err
	}
	if fs.NArg() > 0 {
		return Options{}, fmt.Errorf("run takes no argument, got %q", fs.Arg(0))
	}
	return o, o.validate()
}

// validate refuses options that contradict each other.
func (o Options) validate() error {
	switch {
	case o.Nodes < 0:
		return fmt.Errorf("--nodes must not be negative, got %d", o.Nodes)
	case o.Nodes > 0 && o.KwokBinary == "":
		return errors.New("--nodes needs --kwok-binary")
	case o.Nodes > 0 && !o.ControllerManager:
		// The node lifecycle controller takes the not-ready taint off a Node.
		return errors.New("--nodes needs --controller-manager")
	case o.RemoveDir && o.Dir == "":
		return errors.New("--remove-dir needs --dir")
	}
	return nil
}

// absolute returns the options with every path made absolute, because the
// components are started in the data directory.
func (o Options) absolute() (Options, error) {
	for _, p := range []*string{&o.Dir, &o.Kubeconfig, &o.AuditLog, &o.KwokBinary, &o.CRDs, &o.LogDir} {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return Options{}, fmt.Errorf("make %s absolute: %w", *p, err)
		}
		*p = abs
	}
	o.Scheduler = o.Scheduler || o.Nodes > 0
	return o, nil
}
