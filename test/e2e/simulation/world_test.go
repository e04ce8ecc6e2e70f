package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/apisim"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/oracle"
)

const (
	namespace       = "shop"
	systemNamespace = "janus-system"
)

// world is one simulated run: machines, writers and an API server, in virtual time.
// Whatever happens, and in what order, follows from its plan.
type world struct {
	plan      script
	random    *rand.Rand     // chooses what happens next
	reads     map[string]int // how often a process has asked for an object
	lied      map[string]int // how often it had when it was last told what is not so
	skew      time.Duration  // of the clock of the next machine
	server    *apisim.Server
	scheduler *scheduler
	line      *faultinject.Line
	machines  []*machine
	frozen    map[int]time.Time // until when a machine stands still
	since     map[int]time.Time // since when it has been away
	away      time.Duration     // how long one has been at most
	submitted map[int]bool      // which Transactions have been created
	actors    *actors
	history   oracle.History
	step      int
	restored  bool      // nothing happens any more beside Janus
	turned    bool      // a clock has been turned
	stamps    bool      // mutating admission stamps what is written
	admitted  []string  // the fields that it may have written
	lastFault int       // how many calls there were at the last fault
	quietFrom time.Time // when that was
	trace     []string
	problem   string
}

// script is what a run consists of.
type script struct {
	scenario scenario
	seed     uint64
	// choose, if there is one, says which of the requests that wait goes first;
	// otherwise the seed does.
	choose func(w *world, ready []*held) *held
	// injections are faults at chosen requests.
	injections []faultinject.Injection
	// chaotic lets faults and other writers happen at random until so many steps
	// were made; zero means that nothing happens but what is injected.
	chaotic int
	// faultRate and actRate are how likely a request meets a fault, and a step comes
	// with something that another client does.
	faultRate, actRate float64
	// acts are what another client may do; nil means everything.
	acts []act
	// harmless leaves out the faults that deny what is there, or show what was: one
	// of those may rightly end a Transaction.
	harmless bool
	// machines is how many processes work on everything at once.
	machines int
	// keepTrace keeps a line for each step.
	keepTrace bool
}

// longestRun is how long a run may take, in its own time: most take less than half an hour, and two
// processes that wait for what neither can bring about, such as a finalizer, may do so for hours.
const longestRun = 8 * time.Hour

// mostSteps is how many steps a run may make that has taken so long. Those that make few each second, and
// never end, are told by their time.
func mostSteps(took time.Duration) int { return 30_000 + 15*int(took.Seconds()) }

func newWorld(p script) (*world, error) {
	w := &world{plan: p, random: source(p.seed, 1), quietFrom: time.Now(), frozen: map[int]time.Time{}, since: map[int]time.Time{}, submitted: map[int]bool{}, reads: map[string]int{}, lied: map[string]int{}}
	w.server = apisim.New(apisim.Options{
		Seed: p.seed, CRDs: kinds(), Namespaces: []string{namespace, systemNamespace},
		Admit: w.admit, Mutate: w.mutate, Observe: w.observe, Allowed: w.allowed, CollectAtOnce: true,
		Ownerless: ownerless, Objects: furniture(p.scenario.objects),
	})
	w.scheduler = newScheduler()
	w.line = faultinject.NewLine(p.injections...)
	w.line.Names = stableName
	w.line.LateBy = time.Duration(w.random.Int64N(int64(requestTimeout)))
	if p.chaotic > 0 {
		w.line.Choose = w.fault
	}
	w.actors = newActors(w)
	return w, w.submitDue()
}

// submitDue creates the Transactions that are to be there by now: those that undo another
// once that has ended.
func (w *world) submitDue() error {
	for i, spec := range w.plan.scenario.transactions {
		if w.submitted[i] || spec.UndoOf != nil && !w.undoable(i, spec.UndoOf) {
			continue
		}
		w.submitted[i] = true
		if err := w.actors.submit(transactionName(i), spec); err != nil {
			return err
		}
	}
	return nil
}

// undoable reports whether what a Transaction is to undo has ended: one, or all before it.
func (w *world) undoable(i int, of *api.UndoOf) bool {
	if of.ToRevision == nil {
		return w.ended(of.Name)
	}
	for n := range i {
		if !w.submitted[n] || !w.ended(transactionName(n)) {
			return false
		}
	}
	return true
}

// ended reports whether a Transaction has come to an end, or is gone.
func (w *world) ended(name string) bool {
	t := w.transaction(name)
	if t == nil {
		return true
	}
	phase, _, _ := unstructured.NestedString(t.Object, "status", "phase")
	return api.Phase(phase).Terminal()
}

func transactionName(i int) string { return fmt.Sprintf("txn-%d", i) }

func (w *world) names() []types.NamespacedName {
	var out []types.NamespacedName
	for i := range w.plan.scenario.transactions {
		out = append(out, types.NamespacedName{Namespace: namespace, Name: transactionName(i)})
	}
	return out
}

// run makes steps until every Transaction has ended and all machines are at rest. It
// runs in a bubble of testing/synctest: when every goroutine but this one waits,
// what waits is all that can happen next.
func (w *world) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range max(1, w.plan.machines) {
		if err := w.boot(ctx); err != nil {
			return err
		}
	}
	for began := time.Now(); ; w.step++ {
		if took := time.Since(began); took > longestRun || w.step >= mostSteps(took) {
			w.problem = fmt.Sprintf("still not over after %d steps and %s", w.step, took.Round(time.Second))
			break
		}
		synctest.Wait()
		if err := w.replaceCrashed(ctx); err != nil {
			return err
		}
		if err := w.submitDue(); err != nil { //nolint:contextcheck // what others do is no part of the run
			return err
		}
		if err := w.actors.approve(); err != nil { //nolint:contextcheck // what others do is no part of the run
			return err
		}
		w.meddle() //nolint:contextcheck // what others do is no part of the run
		ready := w.scheduler.ready(w.isFrozen)
		if len(ready) == 0 {
			if w.over() {
				break
			}
			w.idle()
			continue
		}
		if h := w.pick(ready); h != nil {
			w.let(h)
		}
	}
	w.shutDown(cancel)
	return nil
}

func (w *world) boot(ctx context.Context) error {
	m, err := newMachine(w)
	if err != nil {
		return err
	}
	w.machines = append(w.machines, m)
	m.start(ctx, w.names())
	return nil
}

// replaceCrashed starts a machine for each that has crashed.
func (w *world) replaceCrashed(ctx context.Context) error {
	for _, m := range w.machines {
		if m.cancel == nil || !m.ended(ctx) {
			continue
		}
		m.cancel()
		m.cancel = nil
		w.note("machine %d has crashed", m.number)
		if err := w.boot(ctx); err != nil {
			return err
		}
		synctest.Wait()
	}
	return nil
}

// idle lets time pass until something happens, or a machine that stands still goes on,
// or a crashed one is replaced: soon enough that Janus still looks back at what has ended.
func (w *world) idle() {
	wait := 30 * time.Second
	for process := range w.frozen {
		if w.isFrozen(process) {
			wait = min(wait, time.Until(w.frozen[process]))
		}
	}
	select {
	case <-w.scheduler.arrived:
	case <-time.After(wait):
	}
}

// pick chooses the request that goes next. It is nil if something else was done, after
// which that is to be asked again.
func (w *world) pick(ready []*held) *held {
	if w.plan.choose != nil {
		return w.plan.choose(w, ready)
	}
	return ready[w.random.IntN(len(ready))]
}

// let lets a request go, and waits until nothing more follows from it by itself.
func (w *world) let(h *held) {
	w.scheduler.let(h)
	synctest.Wait()
	w.note("%d %s: %s", h.process, h.name, h.end)
}

func (w *world) note(format string, args ...any) {
	if w.plan.keepTrace {
		w.trace = append(w.trace, fmt.Sprintf("%5d  %s", w.step, fmt.Sprintf(format, args...)))
	}
}

// over reports whether every Transaction was created and has ended, and every living
// machine has seen it and has nothing left to do.
func (w *world) over() bool {
	if w.line.UnderWay() > 0 || len(w.submitted) < len(w.plan.scenario.transactions) {
		return false
	}
	for _, name := range w.names() {
		version := gone
		if t := w.transaction(name.Name); t != nil {
			phase, _, _ := unstructured.NestedString(t.Object, "status", "phase")
			if !api.Phase(phase).Terminal() {
				return false
			}
			version = t.GetResourceVersion()
		}
		for _, m := range w.machines {
			if m.cancel != nil && !m.atRest(name, version) {
				return false
			}
		}
	}
	return true
}

func (w *world) transaction(name string) *unstructured.Unstructured {
	return w.server.Get(api.Resource, namespace, name)
}

// shutDown ends all machines, and lets through what they still ask.
func (w *world) shutDown(cancel context.CancelFunc) {
	cancel()
	for {
		synctest.Wait()
		ready := w.scheduler.ready(func(int) bool { return false })
		if len(ready) == 0 {
			break
		}
		for _, h := range ready {
			w.let(h)
		}
	}
	for _, m := range w.machines {
		m.running.Wait()
	}
	w.line.Settle()
}
