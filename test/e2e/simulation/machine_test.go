package simulation

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/leasetable"
	"janus.io/janus/internal/target"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/lockmgr"
	"janus.io/janus/revision"
	"janus.io/janus/snapshot"
	"janus.io/janus/test/apisim"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// machine is one process of Janus: the real engine and all that it works with, on
// the modelled API server.
type machine struct {
	number  int
	process *faultinject.Process
	clock   *harness.Clock
	engine  *engine.Engine
	journal *wiring.Journal
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	rest map[types.NamespacedName]string // of what resourceVersion a Transaction was when nothing was left to do for it
	// turns end the runs of Transactions between two steps, and given are those that are to
	// be given up then, as to another process, and taken again.
	turns map[types.NamespacedName]context.CancelFunc
	given map[types.NamespacedName]bool
	line  *faultinject.Line
	// handed is how many calls there were when it last gave one up.
	handed int
}

const (
	requestTimeout = 15 * time.Second // as cmd/janusd has it
	firstRetry     = 100 * time.Millisecond
	lastRetry      = 30 * time.Second
)

// newMachine puts a process together as janusd does.
func newMachine(w *world) (*machine, error) {
	m := &machine{
		number: len(w.machines), line: w.line, process: w.line.Process(), clock: &harness.Clock{},
		rest: map[types.NamespacedName]string{}, turns: map[types.NamespacedName]context.CancelFunc{}, given: map[types.NamespacedName]bool{},
	}
	m.clock.Turn(w.skew)
	config := &rest.Config{
		Host: "http://model", UserAgent: "janusd", QPS: -1, Timeout: requestTimeout,
		Transport: w.server,
	}
	config.Wrap(m.process.Wrap)
	config.Wrap(w.scheduler.wrap(m.number))
	config.Wrap(target.Transport)
	kube, err := apisim.NewKube(config)
	if err != nil {
		return nil, err
	}
	own, err := apisim.NewDynamic(config)
	if err != nil {
		return nil, err
	}
	known := schemas()
	ports := wiring.Ports(wiring.Parts{
		Own:       own,
		Resolver:  known.resolver,
		Clients:   target.NewClients(config, kube.CoreV1(), "system:serviceaccount:"+systemNamespace+":janusd").Trusting(w.trust(), m.clock),
		Store:     snapshot.NewStore(kube, nil),
		Revisions: revision.NewStore(kube),
		Locks:     lockmgr.New(w.leases(kube), lockmgr.Options{Namespace: systemNamespace, Clock: m.clock}),
		Types:     known.types, Clock: m.clock,
		WaveBytes: w.waveBytes(),
	})
	ports.Recorder = silent{}
	policy := plan.DefaultPolicy
	policy.Window = windows[w.plan.seed%uint64(len(windows))]
	m.engine = engine.New(ports, m.clock, policy)
	m.journal = wiring.NewJournal(own)
	return m, nil
}

// trust is for how long a ServiceAccount that was read is taken to exist: in some worlds as
// in janusd.
func (w *world) trust() time.Duration {
	if w.plan.seed%3 == 0 {
		return target.Trust
	}
	return 0
}

// leases are those of the locks: in some worlds those of a namespace are in one table, or in all with -tables.
func (w *world) leases(kube kubernetes.Interface) coordinationv1client.LeasesGetter {
	if w.plan.seed%4 == 3 || testcluster.LocksInTables() {
		return leasetable.New(kube.CoordinationV1(), systemNamespace)
	}
	return kube.CoordinationV1()
}

// waveBytes is how many bytes of before-images are in memory until they are saved: in some
// worlds those of one item, so that each is saved by itself.
func (w *world) waveBytes() int {
	if w.plan.seed%5 == 4 {
		return 1
	}
	return 0
}

// windows are how many intents may be open at once, by seed; zero is what janusd has.
var windows = []int{0, 0, 2, 1}

// silent is a witness that says nothing: events are no part of the simulation.
type silent struct{}

func (silent) Checkpointed(_, _ *api.Transaction) {}
func (silent) Abandoned(*api.Transaction)         {}
func (silent) Expired(*api.Transaction, bool)     {}

// start carries the Transactions out until the machine is stopped or crashes. It
// looks at each again and again, where the controller is woken by its watch.
func (m *machine) start(ctx context.Context, names []types.NamespacedName) {
	ctx, m.cancel = context.WithCancel(ctx)
	for _, name := range names {
		m.running.Go(func() {
			ctx := context.WithValue(ctx, onBehalf{}, name.Name)
			retry := firstRetry
			for !m.ended(ctx) {
				turn := m.turn(ctx, name)
				result := m.look(turn, name)
				wait := 5 * time.Second
				switch {
				case turn.Err() != nil:
					wait = firstRetry
				case result.Err != nil:
					wait, retry = retry, min(2*retry, lastRetry)
				case result.After > 0:
					// Nothing wakes it when its plan is approved.
					wait, retry = min(result.After, 10*time.Minute), firstRetry
				default:
					retry = firstRetry
				}
				select {
				case <-ctx.Done():
				case <-m.process.Crashed():
				case <-time.After(wait):
				}
			}
		})
	}
}

// turn begins a run of a Transaction.
func (m *machine) turn(ctx context.Context, name types.NamespacedName) context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.given[name] {
		m.engine.Forget(func(n types.NamespacedName) bool { return n == name })
		delete(m.given, name)
		m.handed = m.line.Count()
	}
	if end := m.turns[name]; end != nil {
		end()
	}
	ctx, m.turns[name] = context.WithCancel(ctx) //nolint:gosec // the next turn calls it, or who interrupts this one
	return ctx
}

// interrupt makes a run of a Transaction end between two steps, because another is to have
// its worker, or with give, because another process is to have it.
func (m *machine) interrupt(name types.NamespacedName, give bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.given[name] = m.given[name] || give
	if end := m.turns[name]; end != nil {
		end()
	}
}

func (m *machine) ended(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-m.process.Crashed():
		return true
	default:
		return false
	}
}

func (m *machine) look(ctx context.Context, name types.NamespacedName) engine.Result {
	t, err := m.journal.Read(ctx, name)
	if err != nil {
		return engine.Result{Err: err}
	}
	if t == nil {
		result := m.engine.Vanished(ctx, name)
		if result.Idle() {
			m.rests(name, gone)
		}
		return result
	}
	result := m.engine.Run(ctx, t)
	if result.Idle() && t.Status.Phase.Terminal() && ctx.Err() == nil {
		m.rests(name, t.ResourceVersion)
	}
	return result
}

// gone stands for the resourceVersion of what does not exist.
const gone = "gone"

func (m *machine) rests(name types.NamespacedName, version string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rest[name] = version
}

func (m *machine) atRest(name types.NamespacedName, version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rest[name] == version
}
