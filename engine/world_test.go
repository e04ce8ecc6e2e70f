package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/fault"
)

// start is when the worlds of these tests begin.
var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// testPolicy has numbers that are easy to recognize in a transcript.
var testPolicy = Policy{Recoveries: 2, RecoveryDelay: 10 * time.Second, SettleTime: 7 * time.Second}

// ours is how the Transaction of a world is called as the holder of locks.
const ours = "us"

// reporter is what a world needs of a test, or of a property under test.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// A world has one Transaction, its targets, locks and before-images, all in
// memory, and writes a line about everything that the engine asks of it. It
// stands in for the engine's ports. It is no API server and proves nothing about
// one: what is tested with it is what the engine asks for, and in which order.
type world struct {
	t      reporter
	clock  *clocktesting.FakeClock
	engine *Engine

	mu      sync.Mutex
	stored  *api.Transaction              // what is durable; nil once it is gone
	targets map[string]string             // what the objects are like, by name
	locks   map[string]string             // holders, by name of the target
	images  map[string]string             // saved before-images, by item
	refuse  map[string]error              // what is refused for good, by call such as "do b"
	replies map[string][]reply            // what happens instead, once each, by call
	nth     func(n int, who string) reply // what happens to the n-th call; may be nil
	after   map[string]func()             // what happens after a line, once, by prefix

	calls   int
	dos     map[string]int // effective changes, by item
	undos   map[string]int // effective compensations, by item
	lines   []string
	gone    *api.Transaction // as it was when it went
	reached []*api.Transaction
}

// reply is what becomes of a call: err comes instead of the answer, and with lost
// the effect has happened all the same. crash ends the process after the line.
type reply struct {
	err   error
	lost  bool
	crash bool
}

// crashed is what a port panics with where the process is to end.
type crashed struct{}

var (
	errLost    = fault.New(fault.Unknown, fault.ServerUnavailable, "send", "", "the connection was reset")
	errRefused = fault.New(fault.Terminal, fault.Rejected, "patch", "ConfigMap shop/x", "denied by admission policy").WithHint("change it")
	errBusy    = fault.New(fault.Retryable, fault.TooManyRequests, "send", "", "too many requests")
)

// newWorld has a Transaction with an item for each name; "a" changes target a, and
// so do "a1" and "a2".
func newWorld(t reporter, names ...string) *world {
	w := &world{
		t: t, clock: clocktesting.NewFakeClock(start),
		targets: map[string]string{}, locks: map[string]string{}, images: map[string]string{},
		refuse: map[string]error{}, replies: map[string][]reply{}, after: map[string]func(){},
		dos: map[string]int{}, undos: map[string]int{},
	}
	w.stored = transaction(names...)
	for _, c := range w.stored.Spec.Changes {
		w.targets[c.Target.Name] = "as it was"
	}
	w.restart()
	return w
}

// transaction is one that no controller has seen.
func transaction(names ...string) *api.Transaction {
	t := &api.Transaction{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "deploy", UID: "7f3a", Generation: 1, ResourceVersion: "1",
		CreationTimestamp: metav1.NewTime(start),
	}}
	t.Spec.ServiceAccountName = "deployer"
	t.Spec.OnDelete = api.DeleteRelease
	for _, name := range names {
		t.Spec.Changes = append(t.Spec.Changes, api.Change{
			Name: name, Type: api.Patch,
			Target: api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: strings.TrimRight(name, "0123456789")},
		})
	}
	t.Status.ObservedGeneration = -1
	return t
}

// restart makes a new Engine, as a new process would.
func (w *world) restart() {
	w.engine = New(Ports{Journal: journal{w}, Locks: locks{w}, Planner: planner{w}, Changes: changes{w}, Witness: witness{w}}, w.clock, testPolicy)
}

// run does what the controller does until the Transaction has nothing left to do.
func (w *world) run() {
	w.t.Helper()
	const most = 300
	for range most {
		if w.stored == nil {
			return
		}
		result, crash := w.once()
		switch {
		case crash:
			w.say("-- the process ends; another starts")
			w.restart()
			w.clock.Step(2 * time.Second)
		case result.Err != nil:
			w.say("-- tries again after an error: " + fault.ReasonOf(result.Err))
			w.clock.Step(2 * time.Second)
		case result.After > 0:
			w.say("-- looks again in " + result.After.String())
			w.clock.Step(result.After)
		default:
			return
		}
	}
	w.t.Fatalf("the Transaction is not at rest after %d runs:\n%s", most, w.transcript())
}

func (w *world) once() (result Result, crash bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(crashed); !ok {
				panic(p)
			}
			crash = true
		}
	}()
	return w.engine.Run(context.Background(), w.stored.DeepCopy()), false
}

func (w *world) transcript() string { return strings.Join(w.lines, "\n") + "\n" }

func (w *world) say(line string) {
	w.lines = append(w.lines, line)
	for prefix, act := range w.after {
		if strings.HasPrefix(line, prefix) {
			delete(w.after, prefix)
			act()
			return
		}
	}
}

// call is one request of the engine to a port. who names it, such as "do b";
// effect does it and says what to write down.
func (w *world) call(who string, effect func() (string, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	r := w.reply(who)
	if r.err != nil && !r.lost {
		w.say(who + ": fails, " + fault.ReasonOf(r.err))
		return r.err
	}
	line, err := effect()
	switch {
	case err != nil:
		line = who + ": fails, " + fault.ReasonOf(err)
	case r.lost:
		line += " (the answer is lost)"
	}
	w.say(line)
	if r.crash {
		panic(crashed{})
	}
	if r.lost && err == nil {
		return r.err
	}
	return err
}

func (w *world) reply(who string) reply {
	if err := w.refuse[who]; err != nil {
		return reply{err: err}
	}
	if queue := w.replies[who]; len(queue) > 0 {
		w.replies[who] = queue[1:]
		return queue[0]
	}
	if w.nth != nil {
		return w.nth(w.calls, who)
	}
	return reply{}
}

// delete is what a user does.
func (w *world) delete() {
	w.say("-- somebody deletes the Transaction")
	if len(w.stored.Finalizers) == 0 {
		// The garbage collector takes the before-images: the Transaction owns them.
		clear(w.images)
		w.gone, w.stored = w.stored, nil
		return
	}
	now := metav1.NewTime(w.clock.Now())
	w.stored.DeletionTimestamp = &now
	w.stored.Generation++ // as the API server does
	w.bump()
}

func (w *world) bump() {
	n, _ := strconv.Atoi(w.stored.ResourceVersion)
	w.stored.ResourceVersion = strconv.Itoa(n + 1)
}

func (w *world) itemOf(in Intent) (name, target string) {
	return in.Item().Name, in.Item().Target.Name
}

// journal is the durable Transaction.
type journal struct{ *world }

func (j journal) Checkpoint(_ context.Context, t *api.Transaction) (out *api.Transaction, err error) {
	return out, j.call("checkpoint", func() (string, error) {
		if err := j.current(t); err != nil {
			return "", err
		}
		if err := legalStatus(j.stored, t); err != nil {
			j.t.Errorf("%v; the transcript:\n%s", err, j.transcript())
		}
		j.stored.Status = *t.Status.DeepCopy()
		j.bump()
		out = j.stored.DeepCopy()
		j.reached = append(j.reached, out)
		return describe(out), nil
	})
}

func (j journal) current(t *api.Transaction) error {
	if j.stored == nil {
		return fault.New(fault.Terminal, fault.NotFound, "write", "Transaction", "not found")
	}
	if t.ResourceVersion != j.stored.ResourceVersion {
		return fault.New(fault.Retryable, fault.StaleVersion, "write", "Transaction", "somebody has written it")
	}
	return nil
}

func (j journal) AddFinalizer(_ context.Context, t *api.Transaction) (out *api.Transaction, err error) {
	return out, j.call("add the finalizer", func() (string, error) {
		if err := j.current(t); err != nil {
			return "", err
		}
		j.stored.Finalizers = append(j.stored.Finalizers, api.Finalizer)
		j.bump()
		out = j.stored.DeepCopy()
		return "add the finalizer", nil
	})
}

func (j journal) RemoveFinalizer(_ context.Context, t *api.Transaction) (out *api.Transaction, err error) {
	return out, j.call("remove the finalizer", func() (string, error) {
		if j.stored == nil {
			out = t
			return "remove the finalizer (the Transaction is gone)", nil
		}
		if err := j.current(t); err != nil {
			return "", err
		}
		j.stored.Finalizers = slices.DeleteFunc(j.stored.Finalizers, func(f string) bool { return f == api.Finalizer })
		j.bump()
		out = j.stored.DeepCopy()
		if j.stored.DeletionTimestamp != nil && len(j.stored.Finalizers) == 0 {
			j.gone, j.stored = j.stored, nil
		}
		return "remove the finalizer", nil
	})
}

// describe writes a checkpoint on one line.
func describe(t *api.Transaction) string {
	var items []string
	for _, item := range t.Status.Items {
		text := item.Name + " " + string(item.State)
		if item.Reason != "" {
			text += "(" + item.Reason + ")"
		}
		items = append(items, text)
	}
	line := fmt.Sprintf("checkpoint %d %s: %s", t.Status.Version, t.Status.Phase, strings.Join(items, ", "))
	if waiting := waitingFor(t); waiting != "" && !t.Status.Phase.Terminal() {
		line += " [waits: " + waiting + "]"
	}
	if reason, _ := causeOnRecord(&t.Status); reason != "" {
		line += " [because: " + reason + "]"
	}
	return line
}

// locks are all or nothing.
type locks struct{ *world }

func (l locks) Acquire(_ context.Context, t *api.Transaction) (leases []string, err error) {
	return leases, l.call("lock", func() (string, error) {
		leases = nil
		for _, item := range t.Status.Items {
			name := item.Target.Name
			if holder := l.locks[name]; holder != "" && holder != ours {
				return "", fault.New(fault.Retryable, fault.LockHeld, "lock", Describe(item.Target),
					"Lease shop/lock-%s is held by %s; waiting until it is released or expires", name, holder)
			}
			leases = append(leases, "shop/lock-"+name)
		}
		for _, item := range t.Status.Items {
			l.locks[item.Target.Name] = ours
		}
		return "lock", nil
	})
}

func (l locks) Keep(_ context.Context, t *api.Transaction) error {
	return l.call("keep the locks", func() (string, error) {
		for _, item := range t.Status.Items {
			switch holder := l.locks[item.Target.Name]; holder {
			case ours:
			case "":
				l.locks[item.Target.Name] = ours
			default:
				return "", fault.New(fault.Conflict, fault.LockLost, "keep the lock of", Describe(item.Target), "it has passed to %s", holder)
			}
		}
		return "keep the locks", nil
	})
}

func (l locks) Release(_ context.Context, t *api.Transaction) error {
	return l.call("release the locks", func() (string, error) {
		for _, item := range t.Status.Items {
			if l.locks[item.Target.Name] == ours {
				delete(l.locks, item.Target.Name)
			}
		}
		return "release the locks", nil
	})
}

// planner accepts everything that is not to be refused.
type planner struct{ *world }

func (p planner) Validate(_ context.Context, t *api.Transaction) (items []api.Item, err error) {
	return items, p.call("validate", func() (string, error) {
		items = nil
		for _, c := range t.Spec.Changes {
			item := api.Item{Name: c.Name, Target: c.Target, Resource: "configmaps"}
			SetItemState(&item, api.ItemPending)
			items = append(items, item)
		}
		return "validate", nil
	})
}

func (p planner) Prepare(_ context.Context, t *api.Transaction, items []int) (out Prepared, err error) {
	return out, p.call("save", func() (string, error) {
		out = Prepared{Account: "acc0", Ref: &api.RollbackRef{Name: "deploy-rollback", Objects: []string{"ConfigMap/deploy-rollback"}}}
		var names []string
		for _, i := range items {
			item := t.Status.Items[i]
			p.images[item.Name] = p.targets[item.Target.Name]
			image := api.BeforeImage{Key: item.Name, Digest: "d", UID: types.UID("uid-" + item.Target.Name), ResourceVersion: "1"}
			out.Items = append(out.Items, PreparedItem{Image: image})
			names = append(names, item.Name)
		}
		return "save " + strings.Join(names, ", "), nil
	})
}

func (p planner) Discard(_ context.Context, _ *api.Transaction, keep bool) error {
	who := "discard the before-images"
	if keep {
		who = "keep the before-images"
	}
	return p.call(who, func() (string, error) {
		if !keep {
			clear(p.images)
		}
		return who, nil
	})
}

// changes leave a target as "item wrote it".
type changes struct{ *world }

func wrote(item string) string { return item + " wrote it" }

func (c changes) Do(_ context.Context, in Intent) error {
	name, target := c.itemOf(in)
	return c.call("do "+name, func() (string, error) {
		if c.targets[target] != c.images[name] {
			return "", fault.New(fault.Conflict, fault.Drifted, "patch", Describe(in.Item().Target), "somebody has written it")
		}
		c.targets[target] = wrote(name)
		c.dos[name]++
		return "do " + name, nil
	})
}

func (c changes) Observe(_ context.Context, in Intent) (finding Finding, err error) {
	name, target := c.itemOf(in)
	return finding, c.call("observe "+name, func() (string, error) {
		switch c.targets[target] {
		case wrote(name):
			finding = Applied
		case c.images[name]:
			finding = NotApplied
		case "going":
			finding = Applying
		default:
			finding = Diverged
		}
		return "observe " + name + ": " + finding.String(), nil
	})
}

func (c changes) HandOver(context.Context, *api.Transaction) (map[int]string, error) {
	return nil, c.call("hand over", func() (string, error) { return "hand over", nil })
}

func (c changes) Undo(_ context.Context, in Intent) (Undone, error) {
	name, target := c.itemOf(in)
	return Undone{}, c.call("undo "+name, func() (string, error) {
		switch c.targets[target] {
		case wrote(name), "going":
			c.targets[target] = c.images[name]
			c.undos[name]++
			return "undo " + name, nil
		case c.images[name]:
			return "undo " + name + " (it is undone)", nil
		}
		return "", fault.New(fault.Conflict, fault.Drifted, "restore", Describe(in.Item().Target), "field .data.version was written by %q", "kubectl")
	})
}

// witness checks that it hears of what is durable, in order.
type witness struct{ *world }

func (v witness) Checkpointed(before, after *api.Transaction) {
	if after.Status.Version != before.Status.Version+1 {
		v.t.Errorf("the witness saw version %d after %d", after.Status.Version, before.Status.Version)
	}
}

func (v witness) Abandoned(*api.Transaction) { v.say("-- abandoned") }

// checkOrder reads a transcript and reports the first effect that came before
// what must be durable first: the finalizer, the before-image and the intent.
func checkOrder(lines []string) error {
	states, saved, held := map[string]string{}, map[string]bool{}, false
	for n, line := range lines {
		verb, rest, _ := strings.Cut(line, " ")
		if strings.Contains(line, ": fails, ") && verb != "do" && verb != "undo" {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(rest, " (the answer is lost)"), " (")
		name, _, _ = strings.Cut(name, ":")
		var missing error
		switch verb {
		case "add":
			held = true
		case "remove":
			held = false
		case "save":
			for item := range strings.SplitSeq(name, ", ") {
				saved[item] = true
			}
		case "discard":
			clear(saved)
		case "checkpoint":
			states = statesOf(line)
		case "do":
			missing = wanting(held, saved[name], states[name] == string(api.ItemCommitting))
		case "undo":
			missing = wanting(held, saved[name], states[name] == string(api.ItemRollingBack))
		}
		if missing != nil {
			return fmt.Errorf("line %d, %q: %w", n+1, line, missing)
		}
	}
	return nil
}

func wanting(finalizer, image, intent bool) error {
	switch {
	case !finalizer:
		return errors.New("the finalizer is not there")
	case !image:
		return errors.New("no before-image is saved")
	case !intent:
		return errors.New("no intent is on record")
	}
	return nil
}

// statesOf reads "checkpoint 4 Committing: a Committed, b Committing [...]".
func statesOf(line string) map[string]string {
	_, items, _ := strings.Cut(line, ": ")
	items, _, _ = strings.Cut(items, " [")
	items = strings.TrimSuffix(items, " (the answer is lost)")
	states := map[string]string{}
	for entry := range strings.SplitSeq(items, ", ") {
		name, state, _ := strings.Cut(entry, " ")
		state, _, _ = strings.Cut(state, "(")
		states[name] = state
	}
	return states
}
