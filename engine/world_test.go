package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// testPolicy has numbers that are easy to recognize in a transcript, and one open intent
// at a time.
var testPolicy = plan.Policy{Recoveries: 2, RecoveryDelay: 10 * time.Second, SettleTime: 7 * time.Second, Window: 1}

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
	policy plan.Policy
	engine *Engine

	mu         sync.Mutex
	stored     *api.Transaction              // what is durable; nil once it is gone
	targets    map[string]string             // what the objects are like, by name
	locks      map[string]string             // holders, by name of the target
	distrusted int                           // how often the locks were not taken to be held
	images     map[string]string             // saved before-images, by item
	anew       map[string]types.UID          // what an undo tells that it has re-created
	history    map[int64]string              // who is remembered, by number
	counted    int64                         // the last number that was given
	problems   []plan.Problem                // what the pre-flight finds
	deferredBy map[string]string             // which item another waits for
	refers     map[string][]string           // which items the content of another names
	refuse     map[string]error              // what is refused for good, by call such as "do b"
	replies    map[string][]reply            // what happens instead, once each, by call
	nth        func(n int, who string) reply // what happens to the n-th call; may be nil
	after      map[string]func()             // what happens after a line, once, by prefix
	unready    map[string]Readiness          // what is said of items that are in effect, by item; they are ready otherwise
	unrestored map[string]Readiness          // what is said of items that are restored, in the same way
	unasked    map[string]bool               // items of which when is false
	idle       map[string]bool               // items whose change needs no write
	unguarded  bool                          // anyone could approve anything
	unfinished int                           // how often the pre-flight is to be resumed
	slow       time.Duration                 // how long a look at what is waited for takes
	room       int                           // how many bytes of status can be stored; 0 for any number

	calls     int
	forgotten int            // how often the planner was told to forget
	searched  []Search       // how before-images were looked for that the status does not name
	dos       map[string]int // effective changes, by item
	undos     map[string]int // effective compensations, by item
	lines     []string
	gone      *api.Transaction // as it was when it went
	told      *api.Transaction // as it was let go
	reached   []*api.Transaction
}

// reply is what happens to a call: err comes instead of the answer, and with lost
// the effect has happened all the same. crash ends the process after the line.
type reply struct {
	err   error
	lost  bool
	crash bool
}

// crashed is what a port panics with where the process is to end.
type crashed struct{}

var (
	errLost    = errclass.New(errclass.Unknown, errclass.ServerUnavailable, "send", "", "the connection was reset")
	errRefused = errclass.New(errclass.Terminal, errclass.Rejected, "patch", "ConfigMap shop/x", "denied by admission policy").WithHint("change it")
	errWritten = func() error {
		err := errclass.New(errclass.Conflict, errclass.FieldConflict, "restore", "ConfigMap shop/x", "another client has written it")
		err.Fields = []errclass.Field{{Path: ".data.version", Managers: []string{"person"}, Now: `"3"`, Before: `"1"`}}
		return err
	}()
	errDrifted = errclass.New(errclass.Conflict, errclass.Drifted, "restore", "ConfigMap shop/a", "another client has written it")
	errBusy    = errclass.New(errclass.Retryable, errclass.TooManyRequests, "send", "", "too many requests")
)

// newWorld has a Transaction with an item for each name; "a" changes target a, and
// so do "a1" and "a2".
func newWorld(t reporter, names ...string) *world {
	w := &world{
		t: t, clock: clocktesting.NewFakeClock(fixture.Start), policy: testPolicy,
		targets: map[string]string{}, locks: map[string]string{}, images: map[string]string{}, history: map[int64]string{},
		unready: map[string]Readiness{}, unrestored: map[string]Readiness{}, unasked: map[string]bool{},
		deferredBy: map[string]string{}, refers: map[string][]string{},
		refuse: map[string]error{}, replies: map[string][]reply{}, after: map[string]func(){},
		dos: map[string]int{}, undos: map[string]int{},
	}
	w.stored = fixture.Transaction(names...)
	for _, c := range w.stored.Spec.Changes {
		w.targets[c.Target.Name] = "as it was"
	}
	w.restart()
	return w
}

// restart makes a new Engine, as a new process would.
func (w *world) restart() {
	w.engine = New(Ports{Journal: journal{w}, Locks: locks{w}, Planner: planner{w}, Changes: changes{w}, Gates: gates{w}, History: history{w}, Recorder: worldRecorder{w}, Approvals: approvals{w}}, w.clock, w.policy)
	w.engine.beside = inOrder // The transcripts tell of what is done at the same time in one order.
}

// inOrder does pieces of work one after the other.
func inOrder(_, n int, work func(i int)) {
	for i := range n {
		work(i)
	}
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
			w.say("-- tries again after an error: " + errclass.ReasonOf(result.Err))
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
			// Beside others it comes with the stack.
			if text, _ := p.(string); p != (crashed{}) && !strings.HasPrefix(text, fmt.Sprintln(crashed{})) {
				panic(p)
			}
			crash = true
		}
	}()
	return w.engine.Run(context.Background(), w.stored.DeepCopy()), false
}

func (w *world) transcript() string { return strings.Join(w.lines, "\n") + "\n" }

func (w *world) say(line string) {
	const most = 10_000
	if w.lines = append(w.lines, line); len(w.lines) > most {
		w.t.Fatalf("the Transaction goes on for ever; its last calls are\n%s", strings.Join(w.lines[most-50:], "\n"))
	}
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
		w.say(who + ": fails, " + errclass.ReasonOf(r.err))
		if r.crash {
			panic(crashed{})
		}
		return r.err
	}
	line, err := effect()
	switch {
	case err != nil:
		line = who + ": fails, " + errclass.ReasonOf(err)
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
