package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
)

func named(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// popped empties a line and writes down who came in which order.
func popped(l *line) []string {
	var out []string
	for l.Len() > 0 {
		out = append(out, l.Pop().String())
	}
	return out
}

func TestNamespacesTakeTurns(t *testing.T) {
	t.Parallel()
	l := newLine(0)
	for _, name := range []types.NamespacedName{
		named("a", "1"), named("a", "2"), named("a", "3"), named("b", "1"), named("c", "1"), named("c", "2"),
	} {
		l.Push(name)
	}
	assert.Equal(t, []string{"a/1", "b/1", "c/1", "a/2", "c/2", "a/3"}, popped(l))
}

func TestWhoComesBackWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	l := newLine(0)
	l.Push(named("a", "1"))
	l.Push(named("b", "1"))
	l.Push(named("b", "2"))
	require.Equal(t, named("a", "1"), l.Pop())
	l.Push(named("a", "1"))
	l.Touch(named("a", "1"))
	assert.Equal(t, []string{"b/1", "a/1", "b/2"}, popped(l))
}

func TestWhoOthersAre(t *testing.T) {
	t.Parallel()
	l := newLine(0)
	assert.False(t, l.othersWait("a"), "nobody waits")
	l.Push(named("a", "1"))
	assert.False(t, l.othersWait("a"), "those of the same namespace are no others")
	assert.True(t, l.othersWait("b"))
	l.Push(named("b", "1"))
	assert.True(t, l.othersWait("a"))
	popped(l)
	assert.False(t, l.othersWait("a"))
}

// However many wait in how many namespaces: all come, those of one namespace in their
// order, and none waits for more than one turn of each other namespace for each that is
// before it in its own.
func TestNobodyWaitsForMoreThanATurnOfEachNamespace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLine(0)
		var pushed, taken, own []types.NamespacedName
		next := map[string]int{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			if l.Len() > 0 && rapid.Bool().Draw(t, "pop") {
				taken = append(taken, l.Pop())
				continue
			}
			namespace := fmt.Sprintf("ns-%d", rapid.IntRange(0, 9).Draw(t, "namespace"))
			name := named(namespace, fmt.Sprint(next[namespace]))
			next[namespace]++
			pushed = append(pushed, name)
			l.Push(name)
		}
		// One that comes last of all, to a namespace that nobody waits in.
		l.Push(named("late", "0"))
		pushed = append(pushed, named("late", "0"))
		for before := 0; l.Len() > 0; before++ {
			name := l.Pop()
			taken = append(taken, name)
			if name.Namespace == "late" {
				require.LessOrEqual(t, before, 10, "it comes after one of each namespace at most")
			}
		}
		require.ElementsMatch(t, pushed, taken)
		for _, namespace := range []string{"ns-0", "ns-1"} {
			own = own[:0]
			for _, name := range taken {
				if name.Namespace == namespace {
					own = append(own, name)
				}
			}
			for i, name := range own {
				require.Equal(t, fmt.Sprint(i), name.Name)
			}
		}
		require.Empty(t, l.waiting, "nothing is kept of who has had a turn")
		require.Empty(t, l.turns)
	})
}

// The queue adds each Transaction once, as the one of client-go does that it is.
func TestTheQueueIsClientGosOnALine(t *testing.T) {
	t.Parallel()
	l := newLine(2)
	queue := newQueue(l, newBackOff(DefaultRetryBase, DefaultRetryMax))
	defer queue.ShutDown()
	queue.Add(named("a", "1"))
	queue.Add(named("a", "1"))
	queue.Add(named("a", "2"))
	queue.Add(named("b", "1"))
	assert.Equal(t, 3, queue.Len())
	first, _ := queue.Get()
	queue.Add(first)
	second, _ := queue.Get()
	assert.Equal(t, []types.NamespacedName{named("a", "1"), named("b", "1")}, []types.NamespacedName{first, second})
	assert.Equal(t, 1, queue.Len(), "what is in flight waits for its end")
	l.done(first.Namespace, false)
	queue.Done(first)
	assert.Equal(t, 2, queue.Len())
}

// However many wait in a namespace, it has no more workers than it may have, and fewer while they
// are stuck; and those that wait get their turn, although only the worker that is done asks.
func TestANamespaceHasItsShareOfTheWorkersAlone(t *testing.T) {
	t.Parallel()
	l := newLine(4)
	for n := range 20 {
		l.Push(named("a", fmt.Sprint(n)))
	}
	l.Push(named("b", "0"))
	got := map[string]int{}
	for l.Len() > 0 {
		got[l.Pop().Namespace]++
	}
	require.Equal(t, map[string]int{"a": 4, "b": 1}, got, "as many as it may have, and another namespace its own")
	assert.False(t, l.othersWait("b"), "who may have no worker waits for none of others")

	for at, most := range []int{2, 1, 1} {
		assert.Zero(t, l.done("a", true))
		assert.Equal(t, most, max(1, l.most>>l.stuck["a"]), at)
		assert.Zero(t, l.Len(), "it has more than it may have now")
	}
	l.Push(named("c", "0"))
	assert.Equal(t, named("c", "0"), l.Pop())
	assert.Equal(t, 1, l.done("a", false), "it may have two again, and has none: another worker is told")
	assert.Equal(t, named("a", "4"), l.Pop())
	assert.Equal(t, named("a", "5"), l.Pop())
	assert.Zero(t, l.Len())
	assert.Equal(t, 2, l.done("a", false), "it may have four again, and has one")
	assert.Zero(t, l.done("b", false))
	assert.Equal(t, []string{"a/6", "a/7", "a/8"}, popped(l), "four, of which one has a worker already")
	for range 4 {
		l.done("a", false)
	}
	l.done("c", false)
	for l.Len() > 0 {
		l.done(l.Pop().Namespace, false)
	}
	assert.Empty(t, l.waiting)
	assert.Empty(t, l.running)
	assert.Empty(t, l.stuck)
}

// A namespace whose requests are answered again has as many workers as it may have at once, though
// nothing is queued meanwhile that would have told those that are idle.
func TestIdleWorkersAreToldThatANamespaceMayHaveMore(t *testing.T) {
	t.Parallel()
	l := newLine(8)
	l.stuck["a"] = 1
	// None is selected, so that each is only read.
	c, err := New(engine.New(engine.Ports{}, clock.RealClock{}, plan.DefaultPolicy), make(heldReader), nil, zap.NewNop(), Options{Changing: true, Selector: labels.Nothing()})
	require.NoError(t, err)
	c.line, c.queue = l, newQueue(l, newBackOff(DefaultRetryBase, DefaultRetryMax))
	c.held.begin(0)
	c.watches.of["a"] = &watch{}
	defer c.queue.ShutDown()
	for range 10 {
		go func() {
			for c.next(t.Context()) {
			}
		}()
	}
	for n := range 40 {
		c.queue.Add(named("a", fmt.Sprint(n)))
	}
	running := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.running["a"]
	}
	require.Eventually(t, func() bool { return running() == 4 }, 10*time.Second, time.Millisecond)
	c.reader.(heldReader) <- struct{}{}
	require.Eventually(t, func() bool { return running() == 8 }, 10*time.Second, time.Millisecond)
	close(c.reader.(heldReader))
}

// heldReader is a Reader that answers when it is told to.
type heldReader chan struct{}

func (r heldReader) Read(context.Context, types.NamespacedName) (*api.Transaction, error) {
	<-r
	return &api.Transaction{}, nil
}

// In whatever order workers come, are stuck and are done: nobody waits who may have a worker while
// one is free, and at the end all have had one.
func TestNobodyWaitsForAWorkerThatIsFree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most, spare := rapid.IntRange(1, 5).Draw(t, "most"), rapid.IntRange(0, 2).Draw(t, "spare")
		l, free, pushed, taken := newLine(most), most+spare, 0, 0
		var running []string
		step := func(push bool) {
			switch {
			case push:
				l.Push(named(fmt.Sprintf("ns-%d", rapid.IntRange(0, 3).Draw(t, "namespace")), fmt.Sprint(pushed)))
				pushed++
			case len(running) > 0:
				i := rapid.IntRange(0, len(running)-1).Draw(t, "done")
				l.done(running[i], rapid.Bool().Draw(t, "stuck"))
				running, free = append(running[:i], running[i+1:]...), free+1
			}
			for free > 0 && l.Len() > 0 {
				running, free, taken = append(running, l.Pop().Namespace), free-1, taken+1
			}
			for namespace := range l.waiting {
				may := l.running[namespace] < max(1, most>>l.stuck[namespace])
				require.Equal(t, may, slices.Contains(l.turns, namespace), "it has a turn if it may have a worker")
			}
			for namespace, n := range l.running {
				require.LessOrEqual(t, n, most, namespace)
			}
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			step(rapid.Bool().Draw(t, "push"))
		}
		for range 1000 {
			step(false)
		}
		require.Equal(t, pushed, taken)
	})
}

func TestTheWaitBeforeAnotherAttemptDoublesAndScatters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ base, most time.Duration }{
		{DefaultRetryBase, DefaultRetryMax}, {time.Second, 5 * time.Second}, {time.Second, time.Second},
	} {
		b := newBackOff(tt.base, tt.most)
		seen := map[time.Duration]bool{}
		for n := range 200 {
			name := named("a", fmt.Sprint(n))
			least := tt.base
			for attempt := range 12 {
				after := b.When(name)
				assert.GreaterOrEqual(t, after, least, attempt)
				assert.LessOrEqual(t, after, least+least/2, attempt)
				if attempt == 0 {
					seen[after] = true
				}
				least = min(2*least, tt.most)
			}
			b.Forget(name)
			assert.Less(t, b.When(name), 2*tt.base)
		}
		assert.Greater(t, len(seen), 100, "they do not all come back together")
	}
}
