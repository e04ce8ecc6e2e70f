package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"janus.io/janus/controller"
	"janus.io/janus/internal/otlp"
	"janus.io/janus/internal/settings"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/packages"
)

// options are the flags of janusd.
type options struct {
	kubeconfig  string
	namespace   string
	watch       scope
	selector    labels.Selector // nil for all Transactions
	workers     int
	resync      time.Duration
	leaderElect bool
	shards      int
	leaseTime   time.Duration
	metricsAddr string
	secure      bool
	certDir     string
	ui          bool
	healthAddr  string
	pprofAddr   string
	tracing     string
	logLevel    string
	logFormat   string
	sensitive   []string
	enforce     bool
	locks       string
	version     bool

	keepCompleted, keepFailed, historyLimit int

	crossplane          string // its namespace
	packageHistoryLimit int

	retryBase, retryMax time.Duration
	qps                 float32
	burst               int

	imagesLimit quantity
}

// keepAll stands for no limit.
const keepAll = -1

const usage = `janusd runs Transactions (backup.janus.io/v1alpha1): ordered changes to
Kubernetes objects that are made together or not at all.

Usage:
  janusd [flags]

The CustomResourceDefinition must be installed first: kubectl apply -k deploy/crd

Flags:
`

func parse(args []string, help io.Writer) (options, error) {
	o := options{imagesLimit: wiring.DefaultImagesLimit}
	f := pflag.NewFlagSet("janusd", pflag.ContinueOnError)
	f.SortFlags = false
	f.SetOutput(io.Discard)
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file`; without it, the ServiceAccount of the Pod, else $KUBECONFIG or ~/.kube/config")
	f.StringVar(&o.namespace, "namespace", "", "janusd's own `namespace`, which holds the locks of cluster-scoped targets and the Lease of leader election; it is created where it is missing and janusd may, and must be the same for all replicas of one installation (default $POD_NAMESPACE, else janus-system)")
	watch := f.StringSlice("watch-namespaces", nil, "comma-separated `namespaces` whose Transactions to run; or label:SELECTOR for those with such labels, or file:PATH for those that a file names, one in a line, which may both change while janusd runs: what was begun in a namespace that leaves is finished (default all)")
	selector := f.String("selector", "", "label `selector` of the Transactions to run, such as team=shop; others are left to another janusd, with another selector and the same --namespace (default all)")
	f.IntVar(&o.workers, "workers", 4, "how many Transactions of one namespace to run at once; for all together there are a quarter more, one at least, and namespaces that have some waiting take turns")
	f.IntVar(&o.keepCompleted, "keep-completed", keepAll, "how many Transactions that are Committed or Planned to keep in each namespace, the latest; -1 keeps all, and one that can be undone stays")
	f.IntVar(&o.keepFailed, "keep-failed", keepAll, "how many Transactions that are RolledBack or Failed to keep in each namespace, the latest; -1 keeps all, and one with changes that were not rolled back stays")
	f.IntVar(&o.historyLimit, "revision-history-limit", 10, "how many committed Transactions of a namespace are remembered with their before-images, so that they can be undone, where spec.revisionHistoryLimit does not say; 0 for none")
	f.StringVar(&o.crossplane, "crossplane-namespace", packages.DefaultNamespace, "the `namespace` of Crossplane, for PackageTransactions")
	f.IntVar(&o.packageHistoryLimit, "package-history-limit", 10, "how many PackageTransactions that have ended well to keep, the latest, and three times as many that have not; 0 keeps all")
	f.Var(&o.imagesLimit, "before-images-limit", "how much the before-images of one Transaction may take in etcd, which holds 2Gi by default, as a `quantity` of bytes; what would take more is refused before anything is changed. It does not bound the memory of janusd")
	f.DurationVar(&o.resync, "resync", 10*time.Hour, "how long after it was last looked at to look at a Transaction although nothing was heard of it, as a fail-safe; 0 turns it off")
	f.DurationVar(&o.retryBase, "retry-base-delay", controller.DefaultRetryBase, "how long to wait after a failed attempt, doubled with each further one in a row; up to half as much is added")
	f.DurationVar(&o.retryMax, "retry-max-delay", controller.DefaultRetryMax, "the longest wait that it is doubled to")
	f.Float32Var(&o.qps, "kube-api-qps", 0, "how many `requests` a second janusd makes of the API server, its own and those as ServiceAccounts together, leader election aside; 0 for no limit but what the API server's priority and fairness sets")
	f.IntVar(&o.burst, "kube-api-burst", 0, "how many `requests` it may make at once after it has made fewer, with --kube-api-qps; 0 for twice that")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "run Transactions only while holding the leader Lease, or those of shards; for more than one replica")
	f.IntVar(&o.shards, "shards", 1, "into how many shards to divide the Transactions, at most 256: with --leader-elect, replicas then share the work, each with the shards whose Leases it holds; must be the same for all replicas of one installation")
	f.DurationVar(&o.leaseTime, "leader-elect-lease-duration", 15*time.Second, "how long a leader, or a holder of shards, that has stopped renewing keeps the others waiting; at least 3s")
	f.StringVar(&o.metricsAddr, "metrics-bind-address", ":8443", "`address` that serves Prometheus metrics at /metrics; 0 turns it off")
	f.BoolVar(&o.secure, "metrics-secure", true, "serve metrics over HTTPS, and to those alone who may get the path /metrics, as the API server says of their bearer token")
	f.StringVar(&o.certDir, "metrics-cert-dir", "", "`directory` with tls.crt and tls.key to serve metrics with, read again when they are renewed; without it, a self-signed certificate is made at start")
	f.BoolVar(&o.ui, "ui", false, "serve a page that shows Transactions as they run, at /ui/ beside the metrics, to those alone who may get the path /ui; needs --metrics-secure")
	f.StringVar(&o.healthAddr, "health-probe-bind-address", ":8081", "`address` that serves /healthz and /readyz; 0 turns it off")
	f.StringVar(&o.pprofAddr, "pprof-bind-address", off, "`address`, such as localhost:6060, that serves profiles at /debug/pprof/ to everybody who can reach it; 0 turns it off")
	f.StringVar(&o.tracing, "tracing-endpoint", "", "`URL` of a collector, such as http://collector.monitoring:4318, that gets a trace of each Transaction that has ended, by OTLP over HTTP (default none)")
	f.StringVar(&o.logLevel, "log-level", "info", "least severe `level` to log: debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "json", "`format` of the log: json or console")
	f.StringSliceVar(&o.sensitive, "sensitive-kinds", nil, "comma-separated `kinds`, as Kind or Kind.group, whose before-images are kept in a Secret and whose content is kept out of messages, as is always done for Secret")
	f.BoolVar(&o.enforce, "enforce-locks", false, "enter what is locked in the LockTable of its namespace, from which the API server refuses other writes where deploy/enforced is installed; must be the same for every janusd of a cluster")
	f.StringVar(&o.locks, "locks", settings.LeaseOfTarget, "what has a Lease for its `locks`: targets, which other programs may lock too; or namespaces, with one Lease for all locks in each, which takes fewer requests; must be the same for every janusd of a cluster, and is to be changed while no Transaction runs")
	f.BoolVar(&o.version, "version", false, "print the version and exit")
	f.Usage = func() { _, _ = fmt.Fprint(help, usage+f.FlagUsagesWrapped(100)) }
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: janusd takes flags only", f.Arg(0))
	}
	var err error
	if f.Changed("watch-namespaces") {
		if o.watch, err = watchedBy(*watch); err != nil {
			return o, err
		}
	}
	if o.selector, err = labelled(*selector); err != nil {
		return o, err
	}
	o.namespace = cmp.Or(o.namespace, os.Getenv("POD_NAMESPACE"), "janus-system")
	return o, o.check()
}

func (o options) check() error {
	if o.workers < 1 {
		return fmt.Errorf("--workers=%d: at least 1 is needed", o.workers)
	}
	for flag, n := range map[string]int{"keep-completed": o.keepCompleted, "keep-failed": o.keepFailed} {
		if n < keepAll {
			return fmt.Errorf("--%s=%d: at least 0, or -1 to keep all", flag, n)
		}
	}
	if o.historyLimit < 0 || o.historyLimit > maxHistory {
		return fmt.Errorf("--revision-history-limit=%d: from 0 to %d", o.historyLimit, maxHistory)
	}
	if o.packageHistoryLimit < 0 {
		return fmt.Errorf("--package-history-limit=%d: at least 0, which keeps all", o.packageHistoryLimit)
	}
	if o.resync < 0 {
		return fmt.Errorf("--resync=%s: must not be negative; 0 turns it off", o.resync)
	}
	if o.locks != settings.LeaseOfTarget && o.locks != settings.LeaseOfNamespace {
		return fmt.Errorf("--locks=%s: want %s or %s", o.locks, settings.LeaseOfTarget, settings.LeaseOfNamespace)
	}
	if err := o.checkPace(); err != nil {
		return err
	}
	if o.shards < 1 || o.shards > maxShards {
		return fmt.Errorf("--shards=%d: from 1 to %d", o.shards, maxShards)
	}
	if o.shards > 1 && !o.leaderElect {
		return fmt.Errorf("--shards=%d: needs --leader-elect", o.shards)
	}
	if o.leaseTime < 3*time.Second {
		return fmt.Errorf("--leader-elect-lease-duration=%s: at least 3s", o.leaseTime)
	}
	if _, err := o.sensitiveKinds(); err != nil {
		return err
	}
	if err := o.checkAddresses(); err != nil {
		return err
	}
	_, err := newLogger(o)
	return err
}

// checkPace checks how fast janusd may go.
func (o options) checkPace() error {
	switch {
	case o.retryBase <= 0:
		return fmt.Errorf("--retry-base-delay=%s: must be positive", o.retryBase)
	case o.retryMax < o.retryBase:
		return fmt.Errorf("--retry-max-delay=%s: at least --retry-base-delay, which is %s", o.retryMax, o.retryBase)
	case o.qps < 0 || math.IsNaN(float64(o.qps)) || math.IsInf(float64(o.qps), 0):
		return fmt.Errorf("--kube-api-qps=%g: at least 0, which is no limit", o.qps)
	case o.burst < 0:
		return fmt.Errorf("--kube-api-burst=%d: at least 0, which is twice --kube-api-qps", o.burst)
	case o.burst > 0 && o.qps == 0:
		return fmt.Errorf("--kube-api-burst=%d: needs --kube-api-qps", o.burst)
	}
	return nil
}

func (o options) checkAddresses() error {
	for flag, addr := range map[string]string{
		"metrics-bind-address": o.metricsAddr, "health-probe-bind-address": o.healthAddr, "pprof-bind-address": o.pprofAddr,
	} {
		if addr == off {
			continue
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("--%s=%s: want host:port, :port or 0: %w", flag, addr, err)
		}
	}
	if o.tracing != "" {
		if _, err := otlp.Endpoint(o.tracing); err != nil {
			if strings.Contains(o.tracing, "@") {
				// There may be a password before it, and where is not known.
				return fmt.Errorf("--tracing-endpoint: %w", err)
			}
			return fmt.Errorf("--tracing-endpoint=%s: %w", o.tracing, err)
		}
	}
	if o.certDir != "" && !o.secure {
		return errors.New("--metrics-cert-dir: needs --metrics-secure")
	}
	if o.ui && o.metricsAddr == off {
		return errors.New("--ui: the page is served beside the metrics, which --metrics-bind-address=0 turns off; give it an address such as :8443")
	}
	if o.ui && !o.secure {
		return errors.New("--ui: needs --metrics-secure, which finds out who may see the page; leave --metrics-secure=false out")
	}
	return nil
}

// maxHistory is what spec.revisionHistoryLimit may be, too.
const maxHistory = 1000

// maxShards keeps the requests for the Leases of the shards within reason.
const maxShards = 256

// off turns a server off.
const off = "0"

// quantity is a number of bytes, written as a quantity of Kubernetes.
type quantity int64

func (q *quantity) String() string {
	return resource.NewQuantity(int64(*q), resource.BinarySI).String()
}

func (*quantity) Type() string { return "quantity" }

func (q *quantity) Set(text string) error {
	if len(text) > 20 {
		return errors.New("it is too long")
	}
	parsed, err := resource.ParseQuantity(text)
	if err != nil {
		return err
	}
	if parsed.Value() <= 0 {
		return errors.New("it must be positive")
	}
	*q = quantity(parsed.Value())
	return nil
}
