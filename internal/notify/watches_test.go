package notify_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/notify"
	"janus.io/janus/internal/objectid"
)

// A world has watches, and notes who is woken when.
type world struct {
	*notify.Watches
	t     *testing.T
	start time.Time

	mu      sync.Mutex
	streams map[objectid.ID]*watch.FakeWatcher
	opened  map[objectid.ID]int
	fails   error
	hangs   bool
	holds   map[types.NamespacedName]notify.Hold
	woken   []string
}

var (
	account  = types.NamespacedName{Namespace: "shop", Name: "deployer"}
	settings = objectid.ID{Resource: "configmaps", Namespace: "shop", Name: "settings"}
	other    = objectid.ID{Resource: "configmaps", Namespace: "shop", Name: "other"}
	lease    = objectid.ID{Group: "coordination.k8s.io", Resource: "leases", Namespace: "shop", Name: "lock"}
)

// within runs a test in a time of its own.
func within(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, start: time.Now(), streams: map[objectid.ID]*watch.FakeWatcher{}, opened: map[objectid.ID]int{},
			holds: map[types.NamespacedName]notify.Hold{},
		}
		w.Watches = notify.New(notify.Options{Open: w.open, Wake: w.wake, Holds: func(name types.NamespacedName) notify.Hold { return w.holds[name] }, Clock: clock.RealClock{}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		synctest.Wait()
		test(t, w)
		stop()
		<-done
		assert.Zero(t, w.Len(), "watches are left")
	})
}

func (w *world) open(ctx context.Context, of notify.Object) (watch.Interface, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened[of.ID]++
	assert.Equal(w.t, account, of.Account)
	if w.hangs {
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return nil, ctx.Err()
	}
	if w.fails != nil {
		return nil, w.fails
	}
	stream := watch.NewFakeWithChanSize(100, false)
	w.streams[of.ID] = stream
	return stream, nil
}

func (w *world) wake(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.woken = append(w.woken, fmt.Sprintf("%s %s", name.Name, time.Since(w.start)))
}

// waits sets what a Transaction waits for, as one does that has looked just now.
func (w *world) waits(name string, on ...errclass.Awaited) bool {
	told, soon := w.Set(named(name), account, on, time.Now())
	assert.Zero(w.t, soon)
	synctest.Wait()
	return told
}

// are compares who was woken since the last call, and when.
func (w *world) are(want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Equal(w.t, want, w.woken)
	w.woken = nil
}

func (w *world) happens(id objectid.ID) { w.stream(id).Modify(nil) }

// stream is the last watch of an object.
func (w *world) stream(id objectid.ID) *watch.FakeWatcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.streams[id]
}

// opens is how many watches of an object were begun.
func (w *world) opens(id objectid.ID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.opened[id]
}

// take returns who was woken since the last call.
func (w *world) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	woken := w.woken
	w.woken = nil
	return woken
}

// watching makes watches hang, or fail.
func (w *world) watching(hangs bool, fails error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hangs, w.fails = hangs, fails
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func on(id objectid.ID) errclass.Awaited { return errclass.Awaited{ID: id} }

func heldBy(holder string) errclass.Awaited {
	return errclass.Awaited{ID: lease, Holder: named(holder)}
}

// settled is after a watch has begun, and everybody was told of that.
func (w *world) settled(name string, on ...errclass.Awaited) {
	w.t.Helper()
	require.True(w.t, w.waits(name, on...))
	time.Sleep(time.Second)
	synctest.Wait()
	w.take()
	require.True(w.t, w.waits(name, on...))
	w.start = time.Now()
}

func TestWhoWaitsIsWokenWhenSomethingHappens(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.settled("a", on(settings))
		time.Sleep(40 * time.Second)
		w.are()
		w.happens(settings)
		w.are("a 40s")
		assert.Equal(t, 1, w.opens(settings), "it is watched once")
	})
}

// What happened between the look and the watch nobody tells: it is looked once more.
func TestWhoWaitsIsWokenWhenTheWatchHasBegun(t *testing.T) {
	t.Parallel()
	within(t, func(_ *testing.T, w *world) {
		w.waits("a", on(settings))
		w.stream(settings).Add(nil) // It tells first of what is there.
		time.Sleep(time.Minute)
		w.are("a 20ms")
	})
}

func TestWhatHappensDuringALookIsTold(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.settled("a", on(settings))
		began := time.Now()
		time.Sleep(time.Second)
		w.settled("b", on(settings))
		w.happens(settings)
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a 0s", "b 0s"}, w.take())
		told, _ := w.Set(named("b"), account, []errclass.Awaited{on(settings)}, began)
		assert.True(t, told)
		w.are("b 0s")
		assert.True(t, w.waits("b", on(settings)))
		time.Sleep(time.Minute)
		w.are()
	})
}

func TestAnObjectThatIsNeverQuietWakesOnceASecond(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.settled("a", on(settings))
		for range 200 {
			w.happens(settings)
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		woken := w.take()
		assert.InDelta(t, 10+5, len(woken), 2, "%v", woken)
		time.Sleep(2 * time.Second)
		assert.LessOrEqual(t, len(w.take()), 1, "the last of them is told, too")
	})
}

func TestWhatMayNotBeWatchedIsPolledFor(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.watching(false, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "settings", errors.New("no")))
		assert.True(t, w.waits("a", on(settings)), "it is not known yet")
		w.are("a 0s")
		assert.False(t, w.waits("a", on(settings)))
		time.Sleep(4 * time.Minute)
		assert.False(t, w.waits("a", on(settings)))
		assert.Equal(t, 1, w.opens(settings), "it is not asked for again and again")
		w.watching(false, nil)
		time.Sleep(2 * time.Minute)
		w.are("a 5m0.02s")
		assert.True(t, w.waits("a", on(settings)), "the right was granted")
	})
}

// A watch ends after half an hour or so, and at any time with its connection.
func TestAWatchThatEndsIsBegunAgain(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.settled("a", on(settings))
		for range 30 {
			time.Sleep(time.Minute)
			w.stream(settings).Action(watch.Bookmark, nil)
		}
		w.stream(settings).Stop()
		w.are()
		time.Sleep(time.Second)
		w.are("a 30m0.02s")
		assert.Equal(t, 2, w.opens(settings))
		w.waits("a", on(settings))
		w.stream(settings).Error(nil)
		synctest.Wait()
		assert.False(t, w.waits("a", on(settings)), "one that ended at once is not begun at once")
		time.Sleep(2 * time.Second)
		assert.True(t, w.waits("a", on(settings)))
	})
}

// A connection may be dead without anyone's knowing. The API server sends a bookmark every minute.
func TestAWatchThatTellsNothingAtAllIsBegunAgain(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.settled("a", on(settings))
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 1, w.opens(settings))
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 2, w.opens(settings))
		w.are("a 2m59.02s")
	})
}

func TestAWatchThatDoesNotBeginIsGivenUpOn(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.watching(true, nil)
		assert.True(t, w.waits("a", on(settings)))
		time.Sleep(16 * time.Second)
		w.are("a 15s")
		assert.False(t, w.waits("a", on(settings)))
	})
}

func TestWhoWaitsForSeveralIsToldOfEach(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.settled("a", on(settings), on(other))
		w.happens(other)
		w.are("a 0s")
		assert.True(t, w.waits("a", on(settings)))
		assert.Equal(t, 1, w.Len(), "nobody waits for the other one any more")
		w.Drop(named("a"))
		assert.Zero(t, w.Len())
	})
}

func TestOthersAreDropped(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.settled("a", on(settings))
		w.settled("b", on(other))
		w.DropAll(func(name types.NamespacedName) bool { return name.Name == "a" })
		assert.Equal(t, 1, w.Len())
		w.happens(other)
		w.are("b 0s")
	})
}

func TestNobodyIsToldBeforeOrAfterTheRun(t *testing.T) {
	t.Parallel()
	w := notify.New(notify.Options{Clock: clock.RealClock{}})
	told, _ := w.Set(named("a"), account, []errclass.Awaited{on(settings)}, time.Now())
	assert.False(t, told)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	w.Run(ctx)
	told, _ = w.Set(named("a"), account, []errclass.Awaited{on(settings)}, time.Now())
	assert.False(t, told)
	assert.Zero(t, w.Len())
}
