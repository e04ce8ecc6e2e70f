package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
	"janus.io/janus/internal/errclass"
)

// rollingBack is a Transaction with an item in each state that is asked for, in the order of a
// list, whose dependencies are on record.
func rollingBack(t *testing.T, on map[string][]string, items ...api.Item) *api.Transaction {
	t.Helper()
	var names []string
	for _, item := range items {
		names = append(names, item.Name)
	}
	txn := fixture.Transaction(names...)
	txn.Status.Phase = api.PhaseRollingBack
	for i, item := range items {
		item.Target, item.DependsOn = txn.Spec.Changes[i].Target, on[item.Name]
		SetItemState(&item, item.State)
		txn.Status.Items = append(txn.Status.Items, item)
	}
	return txn
}

func item(name string, state api.ItemState) api.Item { return api.Item{Name: name, State: state} }

func unresolvedItem(name, reason string) api.Item {
	return api.Item{Name: name, State: api.ItemUnresolved, Reason: reason}
}

func TestWhatStaysInEffectForTheSakeOfAnother(t *testing.T) {
	chain := map[string][]string{"b": {"a"}, "c": {"b"}}
	committed, rolledBack := api.ItemCommitted, api.ItemRolledBack
	for title, c := range map[string]struct {
		on    map[string][]string
		items []api.Item
		want  map[string]string // by whom each stays
	}{
		"nothing failed":       {chain, []api.Item{item("a", committed), item("b", committed), item("c", rolledBack)}, nil},
		"the last failed":      {chain, []api.Item{item("a", committed), item("b", committed), unresolvedItem("c", errclass.Drifted)}, map[string]string{"a": "c", "b": "c"}},
		"one in between":       {chain, []api.Item{item("a", committed), unresolvedItem("b", errclass.Drifted), item("c", rolledBack)}, map[string]string{"a": "b"}},
		"the first failed":     {chain, []api.Item{unresolvedItem("a", errclass.Drifted), item("b", rolledBack), item("c", rolledBack)}, nil},
		"an unknown name":      {map[string][]string{"b": {"x"}}, []api.Item{item("a", committed), unresolvedItem("b", errclass.Drifted)}, nil},
		"a later name":         {map[string][]string{"a": {"b"}}, []api.Item{unresolvedItem("a", errclass.Drifted), item("b", committed)}, nil},
		"itself":               {map[string][]string{"b": {"b"}}, []api.Item{item("a", committed), unresolvedItem("b", errclass.Drifted)}, nil},
		"one that was stopped": {chain, []api.Item{item("a", committed), unresolvedItem("b", errclass.Cancelled), item("c", rolledBack)}, map[string]string{"a": "b"}},
		"one that was refused": {chain, []api.Item{item("a", committed), item("b", api.ItemRejected), item("c", api.ItemPrepared)}, nil},
		"another is above": {
			map[string][]string{"c": {"b2"}}, []api.Item{item("b1", committed), item("b2", committed), unresolvedItem("c", errclass.Drifted)},
			map[string]string{"b2": "c", "b1": "b2"},
		},
		"an earlier change below a conflict": {
			map[string][]string{}, []api.Item{item("b1", committed), unresolvedItem("b2", errclass.FieldConflict)}, nil,
		},
		"an earlier change below what may heal": {
			map[string][]string{"b1": {"a"}}, []api.Item{item("a", committed), item("b1", committed), unresolvedItem("b2", errclass.AccessDenied)},
			map[string]string{"b1": "b2", "a": "b1"},
		},
		"an Await of the object that may heal": {
			map[string][]string{"b1": {"a"}}, []api.Item{item("a", committed), {Name: "b1", Type: api.Await, State: rolledBack}, unresolvedItem("b2", errclass.RollbackNotReady)}, nil,
		},
		"a refused change of the object that may heal": {
			map[string][]string{"b1": {"a"}}, []api.Item{item("a", committed), item("b1", api.ItemRejected), unresolvedItem("b2", errclass.AccessDenied)}, nil,
		},
	} {
		t.Run(title, func(t *testing.T) {
			txn := rollingBack(t, c.on, c.items...)
			held := HeldOf(txn, txn.Status.Items, func(int) bool { return false })
			got := map[string]string{}
			for i, by := range held.stay {
				if txn.Status.Items[i].State == api.ItemCommitted {
					got[txn.Status.Items[i].Name] = txn.Status.Items[by.item].Name
				}
			}
			if c.want == nil {
				c.want = map[string]string{}
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestWhatIsBlockedIsFreedWhenWhatBlocksItIsRolledBack(t *testing.T) {
	on := map[string][]string{"b": {"a"}, "c": {"b"}}
	blocked := func(name string) api.Item {
		return api.Item{Name: name, State: api.ItemUnresolved, Reason: errclass.Blocked, BlockedBy: "c"}
	}
	txn := rollingBack(t, on, blocked("a"), blocked("b"), item("c", api.ItemRollingBack))
	never := func(int) bool { return false }
	held := HeldOf(txn, txn.Status.Items, never)
	assert.True(t, held.Freed(0) && held.Freed(1), "nothing is in effect for good")
	assert.True(t, held.Needed(1), "but what depends on it comes first")
	assert.Equal(t, Action{Verb: Undo, Item: 2, Items: []int{2}}, Decide(txn, InFlight{}, fixture.Start, limits))

	SetItemState(&txn.Status.Items[2], api.ItemRolledBack)
	held = HeldOf(txn, txn.Status.Items, never)
	assert.False(t, held.Needed(1))
	assert.True(t, held.Needed(0))
	assert.Equal(t, Action{Verb: OpenUndo, Item: 1}, Decide(txn, InFlight{}, fixture.Start, limits))
	require.NoError(t, BeginUndo(&txn.Status.Items[1]))
	assert.Equal(t, api.Item{Name: "b", Target: txn.Status.Items[1].Target, DependsOn: []string{"a"}, State: api.ItemRollingBack, Prepared: true, Committed: true}, txn.Status.Items[1])

	txn.Spec.Suspend = true
	assert.Equal(t, SkipUndo, Decide(txn, InFlight{}, fixture.Start, limits).Verb)
	assert.Equal(t, Suspend, Decide(txn, InFlight{Known: Known{1: Unsent}}, fixture.Start, limits).Verb, "what is freed is rolled back after it is resumed")
}

// Anyone who meets an intent that another process has recorded finds out first whether anything of
// the compensation was made. Below a later change of the object that cannot be told.
func TestWhatIsFoundOutOfAnIntentBeforeItsItemIsLeft(t *testing.T) {
	on := map[string][]string{"c": {"b"}}
	txn := rollingBack(t, on, item("a", api.ItemCommitted), item("b", api.ItemRollingBack), unresolvedItem("c", errclass.Drifted))
	assert.Equal(t, Action{Verb: SkipUndo, Item: 1}, Decide(txn, InFlight{}, fixture.Start, limits))
	for _, known := range []Knowledge{Unsent, Ineffective, Parked, ParkedIneffective} {
		assert.Equal(t, Action{Verb: LeaveUndo, Item: 1, Items: []int{1}}, Decide(txn, InFlight{Known: Known{1: known}}, fixture.Start, limits), known.String())
	}
	assert.Equal(t, Action{Verb: OpenUndo, Item: 0}, Decide(rollingBack(t, on, item("a", api.ItemCommitted), item("b", api.ItemRolledBack), unresolvedItem("c", errclass.Drifted)), InFlight{}, fixture.Start, limits))

	txn = rollingBack(t, nil, item("b1", api.ItemRollingBack), unresolvedItem("b2", errclass.AccessDenied))
	assert.Equal(t, Action{Verb: LeaveUndo, Item: 0, Items: []int{0}}, Decide(txn, InFlight{}, fixture.Start, limits))
}

// What blocks an item may be rolled back by a recovery, and another one still block it.
func TestABlockedItemNamesWhatBlocksItInTheEnd(t *testing.T) {
	blocked := api.Item{Name: "a", State: api.ItemUnresolved, Reason: errclass.Blocked, BlockedBy: "c", Message: "because of c"}
	txn := rollingBack(t, map[string][]string{"b": {"a"}, "c": {"a"}}, blocked, unresolvedItem("b", errclass.Drifted), item("c", api.ItemRolledBack))
	held := HeldOf(txn, txn.Status.Items, func(int) bool { return false })
	held.Restate(txn.Status.Items)
	assert.Equal(t, "b", txn.Status.Items[0].BlockedBy)
	assert.Contains(t, txn.Status.Items[0].Message, "item b (ConfigMap shop/b), which depends on it")
}

// The status of a Transaction that an older Janus has accepted does not have them.
func TestDependenciesOfAnOlderStatusAreThoseOfTheSpec(t *testing.T) {
	txn := rollingBack(t, nil, item("a", api.ItemCommitted), unresolvedItem("b", errclass.Drifted))
	txn.Spec.Changes[1].DependsOn = []string{"a"}
	assert.Equal(t, []string{"a"}, DependsOn(txn, 1))
	assert.Equal(t, Action{Verb: LeaveUndo, Item: 0, Items: []int{0}}, Decide(txn, InFlight{}, fixture.Start, limits))
	txn.Spec.Changes = nil // Another client has cut it short.
	assert.Empty(t, DependsOn(txn, 1))
}

// Of a Blocked item an older Janus has not said what blocks it: a recovery tries it, as it did.
func TestABlockedItemOfAnOlderStatusIsTakenUpByARecovery(t *testing.T) {
	txn := rollingBack(t, nil, unresolvedItem("a", errclass.Blocked), item("b", api.ItemRolledBack))
	assert.Equal(t, []int{0}, hopeful(txn.Status.Items))
	txn.Status.Items[0].BlockedBy = "b"
	assert.Empty(t, hopeful(txn.Status.Items))
}

// An Await is over when a rollback begins. What it waited for is needed all the same by what waited
// for it.
func TestWhatIsNeededThroughAnAwaitStays(t *testing.T) {
	on := map[string][]string{"b": {"a"}, "c": {"b"}}
	never := func(int) bool { return false }
	await := api.Item{Name: "b", Type: api.Await, State: api.ItemRolledBack}
	txn := rollingBack(t, on, item("a", api.ItemCommitted), await, item("c", api.ItemRollingBack))
	assert.True(t, HeldOf(txn, txn.Status.Items, never).Needed(0))

	txn = rollingBack(t, on, item("a", api.ItemCommitted), await, unresolvedItem("c", errclass.Drifted))
	assert.Equal(t, Action{Verb: LeaveUndo, Item: 0, Items: []int{0}}, Decide(txn, InFlight{}, fixture.Start, limits))
}
