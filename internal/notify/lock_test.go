package notify_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/notify"
)

func TestOneIsWokenAfterTheOtherWhenALockIsReleased(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.holds[named("x")], w.holds[named("a")] = notify.HoldUntilEnd, notify.HoldUntilEnd
		for _, name := range []string{"a", "b", "c"} {
			assert.True(t, w.waits(name, heldBy("x")))
		}
		w.Ended(named("y"))
		time.Sleep(time.Minute)
		w.are()
		w.start = time.Now()
		w.holds[named("x")] = notify.HoldUnknown
		w.Ended(named("x"))
		w.are("a 0s")
		w.Drop(named("a")) // It has got the lock,
		time.Sleep(30 * time.Millisecond)
		w.are("b 25ms")
		assert.True(t, w.waits("b", heldBy("a"))) // as b finds out.
		time.Sleep(time.Minute)
		w.are()
		w.start = time.Now()
		w.Ended(named("a"))
		time.Sleep(time.Minute)
		w.are("b 0s", "c 25ms")
		assert.Empty(t, w.opened)
	})
}

// Of a shared lock a writer waits for one of the readers, and a reader that comes later for that
// writer. Neither is told of the end of the other's, and neither keeps the other from being told.
func TestOfASharedLockEachIsToldOfTheHolderThatItWaitsFor(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		sharedBy := func(holder string) errclass.Awaited {
			found := heldBy(holder)
			found.Shared = true
			return found
		}
		for _, holder := range []string{"x", "y", "writer"} {
			w.holds[named(holder)] = notify.HoldUntilEnd
		}
		assert.True(t, w.waits("writer", sharedBy("x")))
		assert.True(t, w.waits("reader", sharedBy("writer")))
		w.holds[named("x")] = notify.HoldUnknown
		w.Ended(named("x"))
		assert.True(t, w.waits("late", sharedBy("writer")))
		w.are("writer 0s")
		assert.True(t, w.waits("writer", sharedBy("y")))
		w.Ended(named("y"))
		w.are("writer 0s")
		w.Drop(named("writer"))
		w.Ended(named("writer"))
		time.Sleep(time.Minute)
		w.are("reader 0s", "late 25ms")
	})
}

// A Transaction of which nothing is heard may release its locks at any time.
func TestALockOfAnUnknownHolderIsPolledFor(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.holds[named("x")] = notify.HoldUntilEnd
		assert.True(t, w.waits("a", heldBy("x")))
		assert.False(t, w.waits("b", heldBy("unknown")))
		w.are("a 0s")
		assert.False(t, w.waits("a", heldBy("unknown")))
		assert.True(t, w.waits("a", heldBy("x")))
	})
}

// A Transaction that has not taken all its locks yet may release one without a word, so it is looked at
// soon, and ever more rarely the longer the lock stays where it is. Its end is told all the same.
func TestALockOfWhoHasNotTakenAllIsLookedAtSoon(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		looksAt := func(lock errclass.Awaited) time.Duration {
			told, soon := w.Set(named("a"), account, []errclass.Awaited{lock}, time.Now())
			assert.True(t, told)
			return soon
		}
		looks := func(holder string) time.Duration { return looksAt(heldBy(holder)) }
		w.holds[named("x")], w.holds[named("y")] = notify.HoldTentative, notify.HoldTentative
		for _, next := range []time.Duration{1, 1, 2, 4, 8} {
			assert.Equal(t, next*time.Second, looks("x"))
			time.Sleep(next * time.Second)
		}
		another := heldBy("x")
		another.Name = "another"
		assert.Equal(t, time.Second, looksAt(another), "it waits for another lock")
		assert.Equal(t, time.Second, looks("y"), "another one has taken it")
		w.holds[named("y")] = notify.HoldUntilEnd
		assert.Zero(t, looks("y"), "that one has taken all of its locks")
		w.are()
		w.start = time.Now()
		w.Ended(named("y"))
		w.are("a 0s")
	})
}

func TestTheEndOfAHolderDuringALookIsTold(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		w.holds[named("x")] = notify.HoldUntilEnd
		w.waits("b", heldBy("x"))
		began := time.Now()
		time.Sleep(time.Second)
		w.holds[named("x")] = notify.HoldUnknown
		w.Ended(named("x"))
		w.are("b 1s")
		told, _ := w.Set(named("a"), account, []errclass.Awaited{heldBy("x")}, began)
		assert.False(t, told)
		w.are("a 1s")
	})
}

// The first one that looks may find that another has taken the lock. Then the calls that were to wake those after it
// are cancelled, and don't make them slower when it is their turn.
func TestACancelledCallDoesNotCountForThePace(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, w *world) {
		for n := range 20 {
			w.holds[named(fmt.Sprint("holder-", n))] = notify.HoldUntilEnd
		}
		assert.True(t, w.waits("first", heldBy("holder-0")))
		assert.True(t, w.waits("last", heldBy("holder-0")))
		for n := range 19 {
			w.Ended(named(fmt.Sprint("holder-", n)))
			time.Sleep(10 * time.Millisecond)
			assert.True(t, w.waits("first", heldBy(fmt.Sprint("holder-", n+1))))
		}
		for _, woken := range w.take() {
			assert.NotContains(t, woken, "last")
		}
		w.Drop(named("first"))
		w.start = time.Now()
		w.Ended(named("holder-19"))
		w.are("last 0s")
	})
}
