package harness

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/notify"
	"janus.io/janus/internal/target"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/internal/wiring/enforced"
	"janus.io/janus/internal/wiring/leftovers"
	"janus.io/janus/lockmgr"
	"janus.io/janus/revision"
	"janus.io/janus/snapshot"
	"janus.io/janus/test/testcluster"
)

// SystemNamespace is Janus' own namespace in tests.
const SystemNamespace = "janus-system"

// UserAgent is what Janus calls itself in tests; the test's own client does not, nor does
// the Janus of another package.
var UserAgent = testcluster.UserAgent(program)

const program = "janusd"

// Env is a namespace of the package's cluster in which Transactions are run.
type Env struct {
	*Client
	// Namespace is where the test's objects and Transactions are.
	Namespace string
	t         testing.TB
	cluster   *testcluster.Cluster
}

// New makes an Env: the CRD is installed, and the namespace has a ServiceAccount
// deployer that may do anything in it.
func New(t testing.TB) *Env {
	t.Helper()
	return On(t, testcluster.Shared(t))
}

// On is New for a cluster of the test's own.
func On(t testing.TB, cluster *testcluster.Cluster) *Env {
	t.Helper()
	client, err := NewClient(cluster.Config())
	require.NoError(t, err)
	install(t, client)
	e := &Env{Client: client, Namespace: cluster.Namespace(t), t: t, cluster: cluster}
	e.Apply(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: deployer}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: ` + e.Namespace + `}]
`)
	return e
}

// Context ends with the test.
func (e *Env) Context() context.Context { return e.t.Context() }

// Root is the top of the repository, which tests run in.
func Root() string {
	root, err := testcluster.Root()
	if err != nil {
		panic(err)
	}
	return root
}

// Option changes how Janus is run.
type Option func(*settings)

type settings struct {
	policy  plan.Policy
	wrap    transport.WrapperFunc
	workers int
	clock   clock.WithTicker
	changes func(engine.Changes) engine.Changes
	journal func(engine.Journal) engine.Journal
	schemas *Schemas
	keep    controller.Retention
	images  int64
	wave    int
	trust   time.Duration
	// stepwise has one intent open at a time.
	stepwise bool
	// enforced keeps the tables of enforced locks.
	enforced bool
	// tables keeps the locks of a namespace in one Lease.
	tables bool
	// polls has nothing watched that is waited for.
	polls bool
}

// Polling has Janus look again and again at what Transactions wait for, as where nothing may be
// watched.
func Polling() Option { return func(s *settings) { s.polls = true } }

// LocksInTables has Janus keep the locks of a namespace in one Lease, as --locks=namespaces does.
func LocksInTables() Option { return func(s *settings) { s.tables = true } }

// EnforcingLocks has Janus keep the tables of enforced locks, as --enforce-locks does. It does
// not sweep them.
func EnforcingLocks() Option { return func(s *settings) { s.enforced = true } }

// WithImagesLimit sets how many bytes the before-images of a Transaction may take.
func WithImagesLimit(bytes int64) Option { return func(s *settings) { s.images = bytes } }

// WithWaveBytes sets how many bytes of before-images are in memory until they are saved.
func WithWaveBytes(bytes int) Option { return func(s *settings) { s.wave = bytes } }

// WithRetention sets how many Transactions that have ended are kept.
func WithRetention(r controller.Retention) Option { return func(s *settings) { s.keep = r } }

// WithTransport puts a transport under every client of Janus, own and
// impersonated, below client-go's retries.
func WithTransport(wrap transport.WrapperFunc) Option { return func(s *settings) { s.wrap = wrap } }

// WithPolicy sets the policy of the engine.
func WithPolicy(p plan.Policy) Option { return func(s *settings) { s.policy = p } }

// WithChanges puts a test's code around the changes.
func WithChanges(wrap func(engine.Changes) engine.Changes) Option {
	return func(s *settings) { s.changes = wrap }
}

// WithJournal puts a test's code around the journal.
func WithJournal(wrap func(engine.Journal) engine.Journal) Option {
	return func(s *settings) { s.journal = wrap }
}

// FastPolicy is the policy of tests: the same, with short delays.
var FastPolicy = plan.Policy{Recoveries: 2, RecoveryDelay: 200 * time.Millisecond, SettleTime: 300 * time.Millisecond}

// Janus is a running Janus.
type Janus struct {
	// Metrics has what Janus counts.
	Metrics *prometheus.Registry
	cancel  context.CancelFunc
	stop    func()
}

// Interrupt asks Janus to end, as SIGTERM does, and does not wait: no further step
// is begun. It may be called from within a step.
func (j *Janus) Interrupt() { j.cancel() }

// Stop ends Janus as SIGTERM would and waits until it has.
func (j *Janus) Stop() { j.stop() }

// Start runs Janus for the Transactions of the namespace until the test ends, as its
// ServiceAccount and with exactly the rights that are shipped.
func (e *Env) Start(options ...Option) *Janus {
	e.t.Helper()
	config, err := e.AsJanusd(e.t.Context())
	require.NoError(e.t, err)
	j, err := Launch(config, e.Namespace, zaptest.NewLogger(e.t), options...)
	require.NoError(e.t, err)
	e.t.Cleanup(j.Stop)
	return j
}

func run(log *zap.Logger, config *rest.Config, namespace string, s settings) (*Janus, error) {
	watcher, err := controller.NewWatcher(config)
	if err != nil {
		return nil, err
	}
	endless := config
	config = rest.CopyConfig(config)
	config.Timeout = 15 * time.Second
	own, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	metrics, err := controller.NewMetrics(registry, s.clock)
	if err != nil {
		return nil, err
	}
	scheme := apiruntime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if s.schemas == nil {
		s.schemas = NewSchemas(kube)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
	ports := s.ports(config, own, kube, metrics)
	ports.Recorder = controller.NewRecorder(broadcaster.NewRecorder(scheme, "janusd"), metrics, clock.RealClock{}, log)
	ctl, err := controller.New(engine.New(ports, s.clock, s.steps()), wiring.NewJournal(own), watcher, log,
		controller.Options{
			Namespaces: []string{namespace}, Workers: s.workers, Resync: time.Hour, Retention: s.keep, Open: s.opener(endless, kube),
			Leftovers: s.finder(kube),
		})
	if err != nil {
		return nil, err
	}
	metrics.CountActive(ctl.Active)
	metrics.CountStanding(ctl.AwaitingApproval)
	metrics.CountUnended(ctl.Unended)
	metrics.CountShards(ctl.Shards)
	ctx, cancel := context.WithCancel(context.Background())
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("record events: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = ctl.Run(ctx)
	}()
	return &Janus{Metrics: registry, cancel: cancel, stop: sync.OnceFunc(func() {
		cancel()
		<-done
		broadcaster.Shutdown()
	})}, nil
}

func (s settings) steps() plan.Policy {
	if s.stepwise {
		s.policy.Window = 1
	}
	return s.policy
}

// opener watches what Transactions wait for.
func (s settings) opener(endless *rest.Config, kube kubernetes.Interface) func(context.Context, notify.Object) (watch.Interface, error) {
	if s.polls {
		return nil
	}
	return notify.Opener(target.NewClients(endless, kube.CoreV1(), Identity), s.schemas.resolver)
}

// finder finds out the leftovers of Transactions that have ended, as janusd does.
func (s settings) finder(kube kubernetes.Interface) controller.Leftovers {
	if s.enforced {
		return nil
	}
	return leftovers.NewFinder(kube.CoordinationV1(), snapshot.NewStore(kube, nil))
}

// ports puts the parts together as janusd does, with what the test puts around them.
func (s settings) ports(config *rest.Config, own dynamic.Interface, kube kubernetes.Interface, metrics *controller.Metrics) engine.Ports {
	clients := target.NewClients(config, kube.CoreV1(), Identity).Trusting(s.trust, s.clock)
	if s.enforced {
		clients = clients.Marking()
	}
	ports := wiring.Ports(wiring.Parts{
		Own:       own,
		Resolver:  s.schemas.resolver,
		Clients:   clients,
		Store:     snapshot.NewStore(kube, nil),
		Revisions: revision.NewStore(kube),
		Locks: lockmgr.New(s.leases(kube), lockmgr.Options{
			Namespace: SystemNamespace, Observe: metrics.LockOperation, Clock: s.clock,
		}),
		Types: s.schemas.types, Clock: s.clock, Lateness: s.policy.Lateness, ImagesLimit: s.images, WaveBytes: s.wave,
	})
	if s.enforced {
		ports.Locks = enforced.Around(ports.Locks, enforced.NewTables(own), wiring.NewJournal(own), s.clock, s.policy.Lateness)
	}
	if s.journal != nil {
		ports.Journal = s.journal(ports.Journal)
	}
	if s.changes != nil {
		ports.Changes = s.changes(ports.Changes)
	}
	ports.Journal, ports.Planner, ports.Changes = metrics.Time(ports.Journal), metrics.CountPrepared(ports.Planner), metrics.Count(ports.Changes)
	return ports
}
