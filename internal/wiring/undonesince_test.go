package wiring

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// ended is a Transaction with a number, that has ended at a minute after noon.
func ended(name string, number int64, phase api.Phase, minute int, items ...api.Item) *api.Transaction {
	t := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid of " + name)}}
	t.Status.Phase, t.Status.Revision, t.Status.Items = phase, number, items
	if phase == api.PhaseCommitted && number > 0 {
		t.Status.RevisionDigest = "digest of " + name
	}
	if phase.Terminal() {
		at := metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute))
		t.Status.CompletionTime = &at
	}
	return t
}

// What is undone is all that has changed something and committed since, and nothing stands in the
// way that has changed something and cannot be undone.
func TestWhatHasCommittedSinceARevision(t *testing.T) {
	committed, unchanged := api.Item{State: api.ItemCommitted}, api.Item{State: api.ItemCommitted, Unchanged: true}
	skipped, rejected, back := api.Item{State: api.ItemSkipped}, api.Item{State: api.ItemRejected}, api.Item{State: api.ItemRolledBack}
	forgotten := ended("forgotten", 7, api.PhaseCommitted, 7, committed)
	forgotten.Status.RevisionDigest = ""
	for name, c := range map[string]struct {
		there []*api.Transaction
		since int64
		want  string // the numbers of what is undone, or what is said
	}{
		"the newest first, in whatever order they are listed": {
			[]*api.Transaction{ended("b", 3, api.PhaseCommitted, 1, committed), ended("a", 5, api.PhaseCommitted, 0, committed), ended("c", 2, api.PhaseCommitted, 2, committed)}, 2, "[5 3]",
		},
		"what has changed nothing is passed over": {
			[]*api.Transaction{
				ended("a", 3, api.PhaseCommitted, 1, committed, skipped), ended("b", 4, api.PhaseCommitted, 2, unchanged, skipped), ended("c", 5, api.PhaseRolledBack, 3, back, rejected),
				ended("d", 6, api.PhaseFailed, 4, rejected), ended("e", 0, api.PhaseCommitted, 5, unchanged), ended("f", 0, api.PhasePlanned, 6, api.Item{State: api.ItemPending}),
			}, 2, "[3]",
		},
		"what has not begun comes later": {
			[]*api.Transaction{ended("a", 3, api.PhaseCommitted, 1, committed), ended("b", 0, "", 0), ended("c", 0, api.PhasePreparing, 0), ended("d", 2, api.PhaseCommitting, 0, committed)}, 2, "[3]",
		},
		"nothing": {[]*api.Transaction{ended("a", 3, api.PhaseCommitted, 1, committed)}, 3, "nothing has committed since that has changed something"},
		"one that runs with a number": {
			[]*api.Transaction{ended("a", 3, api.PhaseCommitted, 1, committed), ended("b", 4, api.PhasePrepared, 0)}, 2, "Transaction b (number 4) has not ended",
		},
		"one that runs without": {
			[]*api.Transaction{ended("a", 3, api.PhaseCommitted, 1, committed), ended("b", 0, api.PhaseRollingBack, 0)}, 2, "Transaction b has not ended",
		},
		"one that is in effect in part": {
			[]*api.Transaction{ended("a", 3, api.PhaseFailed, 1, committed, rejected)}, 2, "Transaction a (number 3) has left changes in effect, though it has failed",
		},
		"one that could not be rolled back": {
			[]*api.Transaction{ended("a", 3, api.PhaseFailed, 1, api.Item{State: api.ItemUnresolved})}, 2, "Transaction a (number 3) has left changes in effect",
		},
		"one of which the history is incomplete": {[]*api.Transaction{forgotten}, 2, "Transaction forgotten (number 7) is not remembered"},
		"one without a number that ended before": {
			[]*api.Transaction{ended("a", 2, api.PhaseCommitted, 5, committed), ended("plain", 0, api.PhaseCommitted, 4, committed), ended("b", 3, api.PhaseCommitted, 6, committed)}, 2, "[3]",
		},
		"one without a number that ended in the same second": {
			[]*api.Transaction{ended("a", 2, api.PhaseCommitted, 5, committed), ended("plain", 0, api.PhaseCommitted, 5, committed), ended("b", 3, api.PhaseCommitted, 6, committed)}, 2, "Transaction plain is not remembered",
		},
		"one without a number, and nobody knows when the revision was": {
			[]*api.Transaction{ended("plain", 0, api.PhaseCommitted, 5, committed), ended("b", 3, api.PhaseCommitted, 6, committed)}, 2, "Transaction plain is not remembered",
		},
		"many that stand in the way": {
			[]*api.Transaction{
				ended("a", 3, api.PhasePrepared, 0), ended("b", 4, api.PhasePrepared, 0), ended("c", 5, api.PhasePrepared, 0), ended("d", 6, api.PhasePrepared, 0),
				ended("e", 7, api.PhasePrepared, 0), ended("f", 8, api.PhasePrepared, 0), ended("g", 9, api.PhasePrepared, 0),
			}, 2, "Transaction g (number 9) has not ended; Transaction f (number 8) has not ended; Transaction e (number 7) has not ended; Transaction d (number 6) has not ended; Transaction c (number 5) has not ended; and 2 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSince(ended("undo", 0, api.PhasePending, 0), c.since)
			s.note(s.undo)
			for _, one := range c.there {
				s.note(one)
			}
			found, err := s.found()
			if err != nil {
				require.ErrorContains(t, err, c.want)
				assert.Equal(t, errclass.Terminal, errclass.ClassOf(err))
				return
			}
			var numbers []int64
			for _, one := range found {
				numbers = append(numbers, one.Revision)
			}
			assert.Equal(t, c.want, fmt.Sprint(numbers))
		})
	}
	s := newSince(ended("undo", 0, api.PhasePending, 0), 0)
	for n := range api.MaxUndone + 1 {
		s.note(ended(fmt.Sprint("a", n), int64(n+1), api.PhaseCommitted, n, committed))
	}
	_, err := s.found()
	assert.ErrorContains(t, err, "201 Transactions have committed since, and at most 200 can be undone at once")
}
