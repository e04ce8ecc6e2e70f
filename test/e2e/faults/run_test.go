package faults

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/oracle"
)

// bound is how long a Transaction that does something may take to end. The oracle
// bounds how much it does.
const bound = 3 * time.Minute

// run is one run of a workload.
type run struct {
	*world
	workload
	plan    scenario
	at      place
	line    *faultinject.Line
	clock   *harness.Clock
	targets []target
	since   int64 // the resourceVersion from which on the history is this run's

	ctx     context.Context //nolint:containedctx // It is the lifetime of the run.
	mu      sync.Mutex
	running []*harness.Janus
	stopped bool
	all     sync.WaitGroup
	log     harness.LogText
	acted   []string // what acts say about themselves
	txns    []*unstructured.Unstructured

	generations map[types.UID]int64 // of the specs that another client has edited
}

// result is what became of a run.
type result struct {
	plan     scenario
	ended    []*api.Transaction // the Transactions; nil for one that is gone
	ends     []string           // the phases in which they ended; gone if one was deleted
	final    map[string]string
	calls    []faultinject.Call
	history  oracle.History
	missed   []faultinject.At
	waited   bool // without a fault there was no occasion for what was missed either
	failures []string
	log      string
	took     time.Duration
}

var (
	lockName = regexp.MustCompile(`^(janus-lock-.*)-[0-9a-z]{10}$`)
	anyUID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// names makes the names in requests the same in every run.
func (at place) names(name string) string {
	name = strings.NewReplacer(at.namespace, "NEAR", at.other, "AWAY", at.run, "RUN").Replace(name)
	if m := lockName.FindStringSubmatch(name); m != nil {
		name = m[1]
	}
	return anyUID.ReplaceAllString(name, "UID")
}

// do runs a plan of a workload in a place of its own.
func (w *world) do(of workload, p scenario) (out result) {
	begin := time.Now()
	out.plan = p
	defer func() { out.took = time.Since(begin) }()
	at, err := w.take(of.Rights)
	if err != nil {
		out.failures = []string{"make a place: " + err.Error()}
		return out
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	r := &run{world: w, workload: of, plan: p, at: at, ctx: ctx, line: faultinject.NewLine(), clock: &harness.Clock{}}
	r.line.Names = at.names
	defer func() {
		cancel()
		r.leave(&out)
		out.history = nil
	}()
	if err := r.setUp(); err != nil {
		out.failures = []string{"set up: " + err.Error()}
		return out
	}
	for _, e := range p.events {
		r.line.Inject(r.injection(e))
	}
	for range max(r.Processes, 1) {
		r.start()
	}
	if err := r.submit(); err != nil {
		out.failures = []string{"submit: " + err.Error()}
		r.stop()
		return out
	}
	if r.Finalizes {
		go r.finalize(ctx)
	}
	if r.Approves {
		go r.approve(ctx)
	}
	r.finish(&out)
	return out
}

// start runs a process of Janus, and another when it crashes.
func (r *run) start() {
	p := r.line.Process()
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewDevelopmentEncoderConfig()), &r.log, zapcore.DebugLevel)
	// An intent is written off only when anyone who was replaced has noticed it.
	policy := harness.FastPolicy
	policy.SettleTime = plan.DefaultLateness + 300*time.Millisecond
	if r.Slow {
		policy.SettleTime = 3 * time.Second
	}
	options := []harness.Option{harness.WithTransport(p.Wrap), harness.WithClock(r.clock), harness.WithWorkers(len(r.txns)), harness.WithPolicy(policy), harness.WithWaveBytes(r.WaveBytes)}
	if !r.Discovery {
		options = append(options, harness.WithSchemas(r.schemas))
	}
	j, err := harness.Launch(r.janusd, r.at.namespace, zap.New(core), options...)
	if err != nil {
		r.say("start Janus: %v", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		j.Stop()
		return
	}
	r.running = append(r.running, j)
	r.all.Go(func() {
		select {
		case <-p.Crashed():
			j.Stop()
			r.mu.Lock()
			stopped := r.stopped
			r.mu.Unlock()
			if !stopped {
				r.start()
			}
		case <-r.ctx.Done():
		}
	})
}

// stop ends every process, each after the step in flight.
func (r *run) stop() {
	r.mu.Lock()
	r.stopped = true
	running := r.running
	r.mu.Unlock()
	for _, j := range running {
		j.Stop()
	}
}

func (r *run) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acted = append(r.acted, fmt.Sprintf(format, args...))
}

// finalize takes the finalizers off targets that are being deleted, as their
// controller would.
func (r *run) finalize(ctx context.Context) {
	for {
		for _, t := range r.targets {
			client, err := r.For(t.kind, t.Namespace)
			if err != nil {
				continue
			}
			live, err := client.Get(ctx, t.Name, metav1.GetOptions{})
			if err == nil && live.GetDeletionTimestamp() != nil && len(live.GetFinalizers()) > 0 {
				live.SetFinalizers(nil)
				_, _ = client.Update(ctx, live, metav1.UpdateOptions{FieldManager: "finalizer"})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}
