package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// startTimeout is a little longer than the cluster gives itself, so that
	// its own explanation arrives first.
	startTimeout = 150 * time.Second
	// stopTimeout bounds an orderly stop, which takes about a second.
	stopTimeout = 20 * time.Second
)

// Options says what runs besides etcd and the API server.
type Options struct {
	// ControllerManager runs the controllers. Without them no namespace
	// finishes terminating, nothing is garbage collected and Pods are refused.
	ControllerManager bool
	// CRDs is a directory of CustomResourceDefinitions that are installed before the
	// controllers start, so that those know their kinds at once. Empty means none.
	CRDs string
	// Nodes is the number of simulated Nodes, on which Pods become Ready at
	// once. It implies ControllerManager and runs the scheduler.
	Nodes int
	// Audit records every request, see Cluster.Audit.
	Audit bool
	// Judge looks at the whole audit log after the last test, where Main runs the
	// tests, and has the run fail if it returns an error. It needs Audit.
	Judge func([]AuditEvent) error
	// Alone has the package use no cluster that others use too, see OfferVariable: its tests
	// change what is everybody's, such as the rights of janusd.
	Alone bool
	// RestartKilled starts a component again after Cluster.Signal killed it, or
	// made it end in order. Otherwise the whole cluster ends with the component.
	RestartKilled bool
	// Measured leaves the garbage collection of the components at Go's default. Otherwise it is
	// rarer, so that tests take a tenth less CPU, and the components more memory.
	Measured bool
	// FeatureGates are those of the API server, such as CBORServingAndStorage=true. No cluster that
	// others use too has any.
	FeatureGates string
}

// Cluster is a running cluster. Its methods may be called concurrently.
type Cluster struct {
	// Kubeconfig is the path of the administrator's kubeconfig. The file
	// exists until Stop.
	Kubeconfig string

	options Options
	dir     string
	config  *rest.Config
	process *process
	// auditFrom is where in the audit log the requests begin that are made from now on.
	auditFrom int64

	mu sync.Mutex
	// namespaces are those that the tests of this process have made.
	namespaces []string
}

// Start starts a cluster and returns when it is ready, a few seconds later.
// The caller must Stop it. The error of a cluster that does not start carries
// the last lines of the component that is to blame.
func Start(options Options) (*Cluster, error) {
	options.ControllerManager = options.ControllerManager || options.Nodes > 0
	binary, err := clusterBinary.find()
	if err != nil {
		return nil, fmt.Errorf("start a test cluster: %w", err)
	}
	dir, err := os.MkdirTemp("", "janus-testcluster-")
	if err != nil {
		return nil, fmt.Errorf("start a test cluster: %w", err)
	}
	c := &Cluster{options: options, dir: dir}
	args, err := c.arguments()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a test cluster: %w", err), os.RemoveAll(dir))
	}
	if c.process, err = startProcess(binary, args, c.environment()); err != nil {
		return nil, errors.Join(fmt.Errorf("start a test cluster: %w", err), os.RemoveAll(dir))
	}
	if err := c.connect(); err != nil {
		return nil, errors.Join(fmt.Errorf("start a test cluster: %w", err), c.Stop())
	}
	return c, nil
}

// arguments are those of janus-cluster. The supervisor removes the directory,
// because it is still there when the test process has been killed.
func (c *Cluster) arguments() ([]string, error) {
	args := []string{
		"run",
		"--dir=" + c.dir,
		"--remove-dir",
		"--quiet-logs=" + filepath.Join(c.dir, "logs"),
		"--stop-on-stdin-eof",
		fmt.Sprintf("--controller-manager=%t", c.options.ControllerManager),
		fmt.Sprintf("--restart-killed=%t", c.options.RestartKilled),
	}
	if version := os.Getenv(EmulateVariable); version != "" {
		args = append(args, "--emulate="+version)
	}
	if gates := c.options.FeatureGates; gates != "" {
		args = append(args, "--feature-gates="+gates)
	}
	if c.options.CRDs != "" {
		args = append(args, "--crds="+c.options.CRDs)
	}
	if c.options.Audit {
		args = append(args, "--audit-log="+c.auditLog())
	}
	if c.options.Nodes > 0 {
		kwok, err := kwokBinary.find()
		if err != nil {
			return nil, err
		}
		args = append(args, fmt.Sprintf("--nodes=%d", c.options.Nodes), "--kwok-binary="+kwok)
	}
	return args, nil
}

// environment is that of janus-cluster and its components.
func (c *Cluster) environment() []string {
	if c.options.Measured || os.Getenv("GOGC") != "" {
		return os.Environ()
	}
	return append(os.Environ(), "GOGC=400")
}

// connect waits for the cluster and reads the credentials for it.
func (c *Cluster) connect() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), startTimeout,
		fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	line, err := c.process.awaitReady(ctx)
	if err != nil {
		return err
	}
	path, err := kubeconfigOf(line)
	if err != nil {
		return err
	}
	return c.use(path)
}

// kubeconfigOf reads the path out of "ready: kubeconfig=PATH server=URL (…)".
func kubeconfigOf(line string) (string, error) {
	_, rest, found := strings.Cut(line, "kubeconfig=")
	path, _, ended := strings.Cut(rest, " server=")
	if !found || !ended {
		return "", fmt.Errorf("no kubeconfig in the line %q", line)
	}
	return path, nil
}

// Config returns a copy of the administrator's configuration that the caller
// may change. Its clients are not rate limited.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Stop ends the cluster and removes its files. It returns when no process is
// left, and reports a cluster that had ended by itself before. Calling it
// again returns the same answer. A cluster that is offered goes on.
func (c *Cluster) Stop() error {
	if c.offered() {
		return nil
	}
	if err := c.process.stop(stopTimeout); err != nil {
		return errors.Join(fmt.Errorf("stop the test cluster: %w", err), os.RemoveAll(c.dir))
	}
	return nil
}

// Err returns nil while the cluster runs, and why it ended afterwards.
func (c *Cluster) Err() error {
	if c.offered() {
		if _, err := os.Stat(c.Kubeconfig); err != nil {
			return fmt.Errorf("%w: %w", errWithdrawn, err)
		}
		return nil
	}
	select {
	case <-c.process.ended:
		return c.process.endError()
	default:
		return nil
	}
}
