package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
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
	l := newLine()
	for _, name := range []types.NamespacedName{
		named("a", "1"), named("a", "2"), named("a", "3"), named("b", "1"), named("c", "1"), named("c", "2"),
	} {
		l.Push(name)
	}
	assert.Equal(t, []string{"a/1", "b/1", "c/1", "a/2", "c/2", "a/3"}, popped(l))
}

func TestWhoComesBackWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	l := newLine()
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
	l := newLine()
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
		l := newLine()
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
	l := newLine()
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
	queue.Done(first)
	assert.Equal(t, 2, queue.Len())
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
