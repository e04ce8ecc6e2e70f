package notify

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/objectid"
)

// Object is one that is watched as a ServiceAccount. That of a lock is empty. A shared lock
// is one Object for each holder that another Transaction waits for.
type Object struct {
	objectid.ID
	Account types.NamespacedName
	Holder  types.NamespacedName
}

// Options are how a process watches.
type Options struct {
	// Open begins to watch an object. It tells of what is there, if anything is, and then of what
	// happens.
	Open func(ctx context.Context, of Object) (watch.Interface, error)
	// Wake is called from any goroutine when it is time to look at a Transaction. It must not block.
	Wake func(types.NamespacedName)
	// Holds says for how long a Transaction keeps its locks. Ended will be called when it ends, unless that
	// is unknown.
	Holds func(types.NamespacedName) Hold
	Clock clock.WithDelayedExecution
}

// Limit is how many objects a process watches at most. What is waited for beyond that is looked at
// again and again.
const Limit = 5000

// Watches are those of a process. It is safe for use by several goroutines.
type Watches struct {
	Options

	mu      sync.Mutex
	of      map[Object]*object
	waiters map[types.NamespacedName]*waiter
	begin   func(*object) // begins to watch an object; nil before Run and after
	running sync.WaitGroup
}

// waiter is a Transaction that waits.
type waiter struct {
	on []Object
	// pace bounds how often it is woken.
	pace *rate.Limiter
	// pending is the call that is to wake it, and because the object of which it is to be told;
	// nil if it is not to be woken.
	pending clock.Timer
	because *object
	// lock is the one that it waits for and that its holder may release at any time, and found is since
	// when that holder was seen to have it.
	lock  errclass.Awaited
	found time.Time
}

// A Transaction is woken at once a few times in a row, and once a second beyond that: an object that
// is never quiet is looked at about as often as without a watch.
const (
	wakesAtOnce    = 5
	wakesPerSecond = 1
)

// New makes Watches.
func New(o Options) *Watches {
	return &Watches{Options: o, of: map[Object]*object{}, waiters: map[types.NamespacedName]*waiter{}}
}

// Run watches until ctx is done. Before and after nobody is told anything.
func (w *Watches) Run(ctx context.Context) {
	w.mu.Lock()
	w.begin = func(o *object) {
		watching, cancel := context.WithCancel(ctx)
		o.cancel = cancel
		w.running.Go(func() { w.follow(watching, o) })
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.begin = nil
	for name := range w.waiters {
		w.drop(name)
	}
	w.mu.Unlock()
	w.running.Wait()
}

// Set says what a Transaction waits for, instead of what it waited for before, and since when it
// has looked at that. It reports whether the Transaction is told, and how soon it has to look all the same;
// zero if it need not.
func (w *Watches) Set(name, account types.NamespacedName, on []errclass.Awaited, since time.Time) (told bool, soon time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begin == nil || len(on) == 0 || len(w.of)+len(on) > Limit {
		w.drop(name)
		return false, 0
	}
	waiting := w.waiters[name]
	if waiting == nil {
		waiting = &waiter{pace: rate.NewLimiter(wakesPerSecond, wakesAtOnce)}
		w.waiters[name] = waiting
	}
	before := waiting.on
	waiting.on, told = nil, true
	for _, each := range on {
		o := w.find(each, account)
		waiting.on = append(waiting.on, o.of)
		o.join(name)
		if o.last.After(since) {
			w.wakeAfter(name, 0, o) // It has happened while the Transaction looked.
		}
		told = told && o.state != failed
		if o.tentative {
			soon = waiting.looksAt(each, w.Clock.Now())
		}
	}
	if soon == 0 {
		waiting.lock = errclass.Awaited{}
	}
	for _, of := range before {
		if !slices.Contains(waiting.on, of) {
			w.leave(name, of)
		}
	}
	return told, soon
}

// find returns an object that is watched from now on.
func (w *Watches) find(each errclass.Awaited, account types.NamespacedName) *object {
	lock := each.Holder.Name != ""
	of := Object{ID: each.ID}
	switch {
	case !lock:
		of.Account = account
	case each.Shared:
		of.Holder = each.Holder
	}
	o := w.of[of]
	if o == nil {
		o = &object{of: of, cancel: func() {}}
		w.of[of] = o
		if !lock {
			w.begin(o)
		}
	}
	if lock {
		w.heldBy(o, each.Holder)
	}
	return o
}

// Drop says that a Transaction waits for nothing.
func (w *Watches) Drop(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(name)
}

// DropAll is Drop for some Transactions, which another process runs from now on.
func (w *Watches) DropAll(these func(types.NamespacedName) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.waiters {
		if these(name) {
			w.drop(name)
		}
	}
}

// Len is how many objects are watched.
func (w *Watches) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.of)
}

func (w *Watches) drop(name types.NamespacedName) {
	waiting := w.waiters[name]
	if waiting == nil {
		return
	}
	delete(w.waiters, name)
	if waiting.pending != nil {
		waiting.pending.Stop()
	}
	for _, of := range waiting.on {
		w.leave(name, of)
	}
}

// leave ends the watch of an object for which nobody waits any more.
func (w *Watches) leave(name types.NamespacedName, of Object) {
	o := w.of[of]
	if o == nil {
		return
	}
	if o.leave(name); len(o.waiters) == 0 {
		delete(w.of, of)
		o.cancel()
	}
}

// wakeAfter wakes a Transaction after a while, or later if it was woken often. It is told once of what
// happens meanwhile.
func (w *Watches) wakeAfter(name types.NamespacedName, while time.Duration, because *object) {
	waiting := w.waiters[name]
	if waiting == nil || waiting.pending != nil {
		return
	}
	waiting.because = because
	if while == 0 {
		w.wakeInPace(name, waiting)
		return
	}
	// A call that is cancelled in the meantime doesn't count for the pace.
	waiting.pending = w.Clock.AfterFunc(while, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.waiters[name] == waiting && waiting.pending != nil {
			w.wakeInPace(name, waiting)
		}
	})
}

// wakeInPace wakes a Transaction as soon as its pace allows.
func (w *Watches) wakeInPace(name types.NamespacedName, waiting *waiter) {
	now := w.Clock.Now()
	waiting.pending = w.Clock.AfterFunc(waiting.pace.ReserveN(now, 1).DelayFrom(now), func() {
		w.mu.Lock()
		due := w.waiters[name] == waiting && waiting.pending != nil
		waiting.pending, waiting.because = nil, nil
		w.mu.Unlock()
		if due {
			w.Wake(name)
		}
	})
}
