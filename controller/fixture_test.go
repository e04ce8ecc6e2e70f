package controller_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/controller"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/test/harness"
)

const three = `
changes:
  - {name: a, target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Delete}
  - {name: b, target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Delete}
  - {name: c, target: {apiVersion: v1, kind: ConfigMap, name: c}, type: Delete}
`

// A rig is a Controller that watches and writes real Transactions, on an engine
// whose changes are the test's own.
type rig struct {
	*harness.Env
	t        *testing.T
	ctl      *controller.Controller
	registry *prometheus.Registry

	mu    sync.Mutex
	reads map[string]int // by name of the Transaction
	stop  func()
}

// parts are what a test replaces.
type parts struct {
	do      func(ctx context.Context, in engine.Intent) error
	read    func(name types.NamespacedName) error
	record  func(t *api.Transaction) error       // before a status is written
	denied  func(name types.NamespacedName) bool // what a read says does not exist
	workers int
	turn    time.Duration
	shards  int
	watch   []string // namespaces besides that of the test
	// options changes those of the Controller.
	options func(*controller.Options)
	wrap    transport.WrapperFunc // of what watches
}

func newRig(t *testing.T, e *harness.Env, p parts) *rig {
	t.Helper()
	r := &rig{Env: e, t: t, registry: prometheus.NewRegistry(), reads: map[string]int{}}
	metrics, err := controller.NewMetrics(r.registry, clock.RealClock{})
	require.NoError(t, err)
	journal := wiring.NewJournal(e.Dynamic)
	log := zaptest.NewLogger(t)
	ports := engine.Ports{
		Journal: metrics.Time(recording{journal, p.record}), Locks: stub{}, Planner: metrics.CountPrepared(stub{}), Changes: metrics.Count(stub{do: p.do}),
		Recorder: controller.NewRecorder(silent{}, metrics, clock.RealClock{}, log),
	}
	reader := readerFunc(func(ctx context.Context, name types.NamespacedName) (*api.Transaction, error) {
		r.mu.Lock()
		r.reads[name.Name]++
		r.mu.Unlock()
		if p.read != nil {
			if err := p.read(name); err != nil {
				return nil, err
			}
		}
		if p.denied != nil && p.denied(name) {
			return nil, nil
		}
		return journal.Read(ctx, name)
	})
	config := rest.CopyConfig(e.Config)
	if p.wrap != nil {
		config.Wrap(p.wrap)
	}
	watcher, err := controller.NewWatcher(config)
	require.NoError(t, err)
	options := controller.Options{
		Namespaces: append(p.watch, e.Namespace), Workers: max(p.workers, 1), Turn: p.turn, Shards: p.shards, Resync: time.Hour,
	}
	if p.options != nil {
		p.options(&options)
	}
	r.ctl, err = controller.New(engine.New(ports, clock.RealClock{}, harness.FastPolicy), reader, watcher, log, options)
	require.NoError(t, err)
	metrics.CountActive(r.ctl.Active)
	metrics.CountStanding(r.ctl.AwaitingApproval)
	metrics.CountUnended(r.ctl.Unended)
	metrics.CountShards(r.ctl.Shards)
	return r
}

// recording is a Journal that may fail before it writes a status.
type recording struct {
	engine.Journal
	before func(t *api.Transaction) error
}

// Checkpoint implements engine.Journal.
func (j recording) Checkpoint(ctx context.Context, t *api.Transaction) (*api.Transaction, error) {
	if j.before != nil {
		if err := j.before(t); err != nil {
			return nil, err
		}
	}
	return j.Journal.Checkpoint(ctx, t)
}

// start runs the Controller until stop, or the end of the test.
func (r *rig) start() *rig {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.ctl.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("the controller ended with %v", err)
		}
	})
	r.t.Cleanup(r.stop)
	return r
}

func (r *rig) readsOf(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads[name]
}

type readerFunc func(ctx context.Context, name types.NamespacedName) (*api.Transaction, error)

func (f readerFunc) Read(ctx context.Context, name types.NamespacedName) (*api.Transaction, error) {
	return f(ctx, name)
}

// stub accepts everything and changes nothing.
type stub struct {
	do func(ctx context.Context, in engine.Intent) error
}

func (stub) Acquire(_ context.Context, t *api.Transaction, _ func()) ([]string, error) {
	return make([]string, len(t.Status.Items)), nil
}
func (stub) Keep(context.Context, *api.Transaction, func()) error           { return nil }
func (stub) Distrust(*api.Transaction)                                      {}
func (stub) Forget(*api.Transaction)                                        {}
func (stub) Release(context.Context, *api.Transaction, engine.Search) error { return nil }

func (stub) Validate(_ context.Context, t *api.Transaction, _ func() bool) (plan.Preflight, error) {
	items := make([]api.Item, len(t.Spec.Changes))
	for i, c := range t.Spec.Changes {
		items[i] = api.Item{Name: c.Name, Target: c.Target}
		plan.SetItemState(&items[i], api.ItemPending)
	}
	return plan.Preflight{Items: items}, nil
}

func (stub) Prepare(_ context.Context, _ *api.Transaction, items []int, _ func()) (engine.Prepared, error) {
	out := engine.Prepared{Ref: &api.RollbackRef{Name: "x"}}
	for range items {
		out.Items = append(out.Items, engine.PreparedItem{Image: api.BeforeImage{Key: "k", Digest: "d"}})
	}
	return out, nil
}
func (stub) Discard(context.Context, *api.Transaction, bool, engine.Search) error { return nil }

func (s stub) Do(ctx context.Context, in engine.Intent) error {
	if s.do == nil {
		return nil
	}
	return s.do(ctx, in)
}
func (stub) Observe(context.Context, engine.Intent) (outcome.Finding, error) {
	return outcome.NotApplied, nil
}
func (stub) Undo(context.Context, engine.Intent) (outcome.Undone, error) {
	return outcome.Undone{}, nil
}
func (stub) HandOver(context.Context, *api.Transaction) (map[int]string, error) {
	return nil, nil
}
