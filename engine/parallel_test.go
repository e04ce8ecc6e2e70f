package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// meeting lets changes be made only when so many are under way, and notes which were.
type meeting struct {
	Changes
	most int
	met  func() // called when they are under way, if set

	mu      sync.Mutex
	here    []string
	rounds  [][]string
	release chan struct{}
}

func (m *meeting) Do(ctx context.Context, in Intent) error {
	m.mu.Lock()
	if m.release == nil {
		m.release = make(chan struct{})
	}
	m.here = append(m.here, in.Item().Name)
	wait := m.release
	if len(m.here) == m.most {
		m.end()
	}
	m.mu.Unlock()
	select {
	case <-wait:
	case <-time.After(10 * time.Second):
		return fmt.Errorf("only %v are under way", m.here)
	}
	return m.Changes.Do(ctx, in)
}

// end lets those go that are here. It needs the mutex.
func (m *meeting) end() {
	slices.Sort(m.here)
	m.rounds = append(m.rounds, m.here)
	if m.met != nil {
		m.met()
	}
	close(m.release)
	m.here, m.release = nil, nil
}

// inMeetings has a world make its changes so many at a time.
func (w *world) inMeetings(most int) *meeting {
	w.wide(0)
	m := &meeting{Changes: w.engine.Changes, most: most}
	w.engine.Changes = m
	return m
}

func TestIndependentChangesAreMadeSideBySide(t *testing.T) {
	w := newWorld(t, "a", "b", "c", "d", "e", "f")
	w.stored.Spec.Order = api.OrderGraph
	w.stored.Spec.Parallelism = ptr.To(int32(3))
	m := w.inMeetings(3)
	w.run()
	assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
	assert.Equal(t, [][]string{{"a", "b", "c"}, {"d", "e", "f"}}, m.rounds)
	require.NoError(t, checkOrder(w.lines))
	oracle(t, w)
	assert.Equal(t, 4, strings.Count(w.transcript(), "checkpoint "), w.transcript())
}

// slowLooks is a Journal that takes a second to look at the Transaction.
type slowLooks struct{ Journal }

func (j slowLooks) Unwritten(ctx context.Context, t *api.Transaction) error {
	time.Sleep(time.Second)
	return j.Journal.Unwritten(ctx, t)
}

// Changes that are late at the same time ask once. Those that wait for the answer must
// not keep virtual time from going on, in which the simulation runs all of this.
func TestChangesSideBySideShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.stored.Spec.Order = api.OrderGraph
		m := w.inMeetings(2)
		m.met = func() { w.clock.Step(plan.DefaultLateness) }
		w.engine.Journal = slowLooks{w.engine.Journal}
		w.run()
		assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
		assert.Equal(t, [][]string{{"a", "b"}}, m.rounds)
		assert.Equal(t, 1, strings.Count(w.transcript(), "look at the Transaction"), w.transcript())
	})
}

// In a diamond the two in the middle go together, and what is before and after them alone.
func TestABranchOfAGraphIsMadeBesideTheOther(t *testing.T) {
	w := newWorld(t, "b", "c")
	m := w.inMeetings(2)
	w.stored.Spec.Order = api.OrderGraph
	w.run()
	assert.Equal(t, [][]string{{"b", "c"}}, m.rounds)

	order := func(most int32) []string {
		w := newWorld(t, turned...).wide(0)
		diamond(w)
		w.stored.Spec.Parallelism = ptr.To(most)
		w.run()
		require.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
		var done []string
		for _, line := range w.lines {
			if name, ok := strings.CutPrefix(line, "do "); ok {
				done = append(done, name)
			}
		}
		return done
	}
	assert.Equal(t, []string{"a", "b", "c", "d"}, order(1))
	both := order(2)
	assert.Equal(t, "a", both[0])
	assert.Equal(t, "d", both[3])
}

// What was sent with a change that is refused is in effect, on record, and rolled back.
func TestWhatWasMadeBesideARefusedChangeIsRolledBack(t *testing.T) {
	for _, refused := range [][]string{{"b"}, {"a"}, {"a", "c"}} {
		t.Run(strings.Join(refused, " and "), func(t *testing.T) {
			w := newWorld(t, "a", "b", "c", "d")
			w.stored.Spec.Order = api.OrderGraph
			w.stored.Spec.Parallelism = ptr.To(int32(3))
			for _, name := range refused {
				w.refuse["do "+name] = errRefused
			}
			w.inMeetings(3)
			w.run()
			assert.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
			oracle(t, w)
			assert.Equal(t, refused[0], w.stored.Status.FailedItem)
			for _, item := range w.stored.Status.Items {
				switch {
				case slices.Contains(refused, item.Name):
					assert.Equal(t, api.ItemRejected, item.State, item.Name)
				case item.Name == "d":
					assert.Equal(t, api.ItemPrepared, item.State, "it was not sent")
				default:
					assert.Equal(t, api.ItemRolledBack, item.State, item.Name)
				}
			}
		})
	}
}

// Of what got no answer it is found out before anything else is sent.
func TestTheAnswerToOneOfSeveralIsLost(t *testing.T) {
	for _, landed := range []bool{true, false} {
		w := newWorld(t, "a", "b", "c", "d")
		w.stored.Spec.Order = api.OrderGraph
		w.stored.Spec.Parallelism = ptr.To(int32(2))
		w.wide(0)
		w.replies["do b"] = []reply{{err: errLost, lost: landed}}
		w.run()
		assert.Equal(t, api.PhaseCommitted, phaseOf(w), w.transcript())
		require.NoError(t, checkOrder(w.lines))
		oracle(t, w)
		seen := slices.IndexFunc(w.lines, func(line string) bool { return strings.HasPrefix(line, "observe b") })
		next := slices.IndexFunc(w.lines, func(line string) bool { return strings.HasPrefix(line, "do c") })
		assert.Less(t, seen, next, w.transcript())
	}
}

// A process may end after any call, however many are under way.
func TestACrashAmongSeveralChangesNothingAboutTheEnd(t *testing.T) {
	for n := 1; ; n++ {
		w := newWorld(t, turned...).wide(0)
		diamond(w)
		w.refuse["do d"] = errRefused
		w.nth = func(call int, _ string) reply { return reply{crash: call == n} }
		w.run()
		require.NoError(t, checkOrder(w.lines), w.transcript())
		require.Equal(t, api.PhaseRolledBack, phaseOf(w), w.transcript())
		oracle(t, w)
		if w.calls < n {
			return
		}
	}
}

func TestAListRefusesDependsOn(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.needs("b", "a")
	w.stored.Spec.Order = api.OrderList
	_, err := plan.Order(w.stored)
	require.ErrorContains(t, err, "change b: it has dependsOn, and spec.order is List; leave one of them out, or set spec.order to Graph")
}
