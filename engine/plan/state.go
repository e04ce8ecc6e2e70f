package plan

import (
	"fmt"
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// itemMoves is every legal change of an item's state.
var itemMoves = map[api.ItemState][]api.ItemState{
	api.ItemPending:     {api.ItemPrepared, api.ItemSkipped},
	api.ItemPrepared:    {api.ItemCommitting, api.ItemSkipped},
	api.ItemCommitting:  {api.ItemCommitted, api.ItemPrepared, api.ItemRejected, api.ItemUnresolved},
	api.ItemCommitted:   {api.ItemRollingBack, api.ItemUnresolved},
	api.ItemRollingBack: {api.ItemRolledBack, api.ItemCommitted, api.ItemUnresolved},
	api.ItemUnresolved:  {api.ItemRollingBack},
}

// phaseMoves is every legal change of a Transaction's phase.
var phaseMoves = map[api.Phase][]api.Phase{
	"":                   {api.PhasePending, api.PhasePreparing, api.PhasePlanned, api.PhaseFailed},
	api.PhasePending:     {api.PhasePreparing, api.PhasePlanned, api.PhaseFailed},
	api.PhasePreparing:   {api.PhaseCommitting, api.PhasePrepared, api.PhasePending, api.PhaseFailed},
	api.PhasePrepared:    {api.PhaseCommitting, api.PhaseFailed},
	api.PhaseCommitting:  {api.PhaseCommitted, api.PhaseRollingBack, api.PhaseFailed},
	api.PhaseRollingBack: {api.PhaseRolledBack, api.PhaseFailed},
	api.PhaseFailed:      {api.PhaseRollingBack},
}

// MoveItem changes the state of an item, and the three booleans with it.
func MoveItem(item *api.Item, to api.ItemState) error {
	if !LegalItem(item.State, to) {
		return fmt.Errorf("item %s: no transition from %s to %s", item.Name, item.State, to)
	}
	SetItemState(item, to)
	return nil
}

// takeUp opens an Unresolved item again. Of an unsettled one it is to be found out first
// whether there is anything to roll back.
func takeUp(item *api.Item) error {
	unsettled := item.State == api.ItemUnresolved && item.Unsettled
	item.SetAside, item.SetAsideFor, item.BlockedBy = false, nil, ""
	item.Reason, item.Message, item.Conflicts, item.Unsettled, item.Failed = "", "", nil, false, false
	if unsettled {
		SetItemState(item, api.ItemCommitting)
		return nil
	}
	return MoveItem(item, api.ItemRollingBack)
}

// deletesFrom are the states from which an item may come to delete its target instead of making its
// change: nothing was sent for it yet.
var deletesFrom = []api.ItemState{api.ItemPending, api.ItemPrepared, api.ItemSkipped}

// deleteFrom has an item delete its target instead. It is prepared for that when its turn comes.
func deleteFrom(item *api.Item) error {
	if !slices.Contains(deletesFrom, item.State) {
		return fmt.Errorf("item %s: it is %s, and cannot delete its target instead", item.Name, item.State)
	}
	item.Type = api.Delete
	item.Before, item.Taken, item.Warnings, item.DeferredBy, item.Reason, item.Message = nil, nil, nil, "", "", ""
	SetItemState(item, api.ItemPending)
	return nil
}

// BeginUndo records that an item is about to be rolled back, whose change is in effect.
func BeginUndo(item *api.Item) error {
	if isBlocked(item) {
		return takeUp(item)
	}
	item.Failed = false
	return MoveItem(item, api.ItemRollingBack)
}

// SetItemState sets the state of an item and the booleans that follow from it.
func SetItemState(item *api.Item, state api.ItemState) {
	item.State = state
	item.Prepared = state != api.ItemPending && state != api.ItemSkipped
	item.RolledBack = item.Restored()
	item.Committed = (state == api.ItemCommitted || state == api.ItemRollingBack || state == api.ItemUnresolved) && !item.RolledBack
}

// MovePhase changes the phase of a Transaction; staying is no move.
func MovePhase(status *api.TransactionStatus, to api.Phase) error {
	if status.Phase == to {
		return nil
	}
	if !LegalPhase(status.Phase, to) {
		return fmt.Errorf("no transition from phase %q to %s", status.Phase, to)
	}
	status.Phase = to
	return nil
}

// LegalItem reports whether an item may go from one state to another.
func LegalItem(from, to api.ItemState) bool { return slices.Contains(itemMoves[from], to) }

// LegalPhase reports whether a Transaction may go from one phase to another.
func LegalPhase(from, to api.Phase) bool { return slices.Contains(phaseMoves[from], to) }
