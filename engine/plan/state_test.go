package plan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
)

var (
	allStates = []api.ItemState{
		api.ItemPending, api.ItemPrepared, api.ItemCommitting, api.ItemCommitted,
		api.ItemRejected, api.ItemRollingBack, api.ItemRolledBack, api.ItemUnresolved, api.ItemSkipped,
	}
	allPhases = []api.Phase{
		"", api.PhasePending, api.PhasePreparing, api.PhasePrepared, api.PhaseCommitting,
		api.PhaseCommitted, api.PhaseRollingBack, api.PhaseRolledBack, api.PhasePlanned, api.PhaseFailed,
	}
)

func TestAnItemMovesOnlyAsTheTableSays(t *testing.T) {
	moves := 0
	for _, from := range allStates {
		for _, to := range allStates {
			item := api.Item{Name: "a"}
			SetItemState(&item, from)
			was := item
			err := MoveItem(&item, to)
			if slices.Contains(itemMoves[from], to) {
				moves++
				require.NoError(t, err)
				assert.Equal(t, to, item.State)
				require.NoError(t, fixture.Consistent(&item))
				continue
			}
			require.ErrorContains(t, err, "no transition from "+string(from)+" to "+string(to))
			assert.Equal(t, was, item, "a refused move changes nothing")
		}
	}
	assert.Equal(t, 14, moves, "a new move needs a reason, and scenarios")
}

// What deletes its target instead is prepared for that, and nothing was sent for what it was to do.
func TestOnlyWhatWasNotSentMayDeleteInstead(t *testing.T) {
	for _, from := range allStates {
		item := api.Item{Name: "a", Before: &api.BeforeImage{Key: "k"}, Reason: "DependencySkipped", Message: "m"}
		SetItemState(&item, from)
		was := item
		err := deleteFrom(&item)
		if slices.Contains([]api.ItemState{api.ItemPending, api.ItemPrepared, api.ItemSkipped}, from) {
			require.NoError(t, err)
			assert.Equal(t, api.Item{Name: "a", Type: api.Delete, State: api.ItemPending}, item)
			continue
		}
		require.ErrorContains(t, err, "it is "+string(from)+", and cannot delete its target instead")
		assert.Equal(t, was, item)
	}
}

func TestAPhaseMovesOnlyAsTheTableSays(t *testing.T) {
	for _, from := range allPhases {
		for _, to := range allPhases {
			status := api.TransactionStatus{Phase: from}
			err := MovePhase(&status, to)
			if from == to || slices.Contains(phaseMoves[from], to) {
				require.NoError(t, err)
				assert.Equal(t, to, status.Phase)
				continue
			}
			require.ErrorContains(t, err, "no transition from phase")
			assert.Equal(t, from, status.Phase, "a refused move changes nothing")
		}
	}
}

func TestEveryStateAndPhaseIsReachable(t *testing.T) {
	assert.ElementsMatch(t, allStates, reach(api.ItemPending, itemMoves))
	assert.ElementsMatch(t, allPhases, reach("", phaseMoves))
}

// What is final can be left only where the design says so.
func TestWhatIsFinalStays(t *testing.T) {
	for _, state := range []api.ItemState{api.ItemRejected, api.ItemRolledBack, api.ItemSkipped} {
		assert.Empty(t, itemMoves[state], "%s", state)
	}
	for _, phase := range []api.Phase{api.PhaseCommitted, api.PhaseRolledBack, api.PhasePlanned} {
		assert.Empty(t, phaseMoves[phase], "%s", phase)
	}
	assert.Equal(t, []api.Phase{api.PhaseRollingBack}, phaseMoves[api.PhaseFailed])
}

func reach[T comparable](from T, moves map[T][]T) []T {
	found := []T{from}
	for i := 0; i < len(found); i++ {
		for _, next := range moves[found[i]] {
			if !slices.Contains(found, next) {
				found = append(found, next)
			}
		}
	}
	return found
}

func TestTheBooleansFollowAnItemOnEveryLegalWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		item := api.Item{Name: "a"}
		SetItemState(&item, api.ItemPending)
		sent, done := false, false
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			next := itemMoves[item.State]
			if len(next) == 0 {
				break
			}
			to := rapid.SampledFrom(next).Draw(t, "to")
			if err := MoveItem(&item, to); err != nil {
				t.Fatal(err)
			}
			sent = sent || to == api.ItemCommitting
			done = done || to == api.ItemCommitted
			if err := fixture.Consistent(&item); err != nil {
				t.Fatal(err)
			}
			switch {
			case item.Committed && item.RolledBack:
				t.Fatalf("%s is both in effect and rolled back", item.State)
			case item.Committed && !sent, item.RolledBack && !sent:
				t.Fatalf("%s without an intent before it", item.State)
			case item.Prepared == (item.State == api.ItemSkipped):
				t.Fatalf("%s without a before-image", item.State)
			case item.State == api.ItemRejected && done:
				t.Fatal("an item in effect was written off")
			}
		}
	})
}
