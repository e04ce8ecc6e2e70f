package plan

import (
	"fmt"
	"slices"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Decide returns the next step of a Transaction as the API server last stored it, and as far
// as this process knows more of it. It is a pure function.
func Decide(t *api.Transaction, flight InFlight, now time.Time, policy Policy) Action {
	status := &t.Status
	switch {
	case status.Phase.Terminal():
		return decideEnded(t, now, policy)
	case status.SuspendTime != nil && !Suspended(t):
		return Action{Verb: Resume}
	case status.Phase == api.PhaseCommitting && nothingLeft(t, flight):
		return Action{Verb: Finish}
	case status.Phase == api.PhaseRollingBack:
		return decideRollingBack(t, flight)
	case t.DeletionTimestamp != nil:
		return decideDeleted(t)
	case Suspended(t) && !Accepted(t):
		return standStill(t)
	case !HasFinalizer(t) && !t.Spec.DryRun:
		return Action{Verb: AddFinalizer}
	}
	if cause, stop := mustStop(t, now); stop {
		return stopWith(t, cause)
	}
	switch {
	case status.Phase == api.PhaseCommitting:
		return decideCommitting(t, flight)
	case Suspended(t):
		return standStill(t)
	case Standing(t):
		return decideStanding(t, now)
	case Outdated(t):
		return Action{Verb: StandAgain}
	case status.Phase == api.PhasePreparing:
		return Action{Verb: Prepare}
	case status.Phase == api.PhasePrepared:
		return Action{Verb: Begin}
	default:
		return Action{Verb: Validate}
	}
}

func decideCommitting(t *api.Transaction, flight InFlight) Action {
	schedule, still := ScheduleOf(t), Suspended(t)
	if flight.ReadyCheckDue && !still {
		return Action{Verb: CheckReady} // Others may take long, or wait themselves.
	}
	unsettled := settling(t.Status.Items, schedule.Order)
	for n, i := range schedule.Order {
		switch t.Status.Items[i].State {
		case api.ItemCommitting:
		default:
			continue
		}
		switch {
		case flight.over(i), t.Status.Items[i].Failed, unsettled >= 0 && schedule.unsettledBefore(t.Status.Items, n), still && (flight.Known[i] == Unsent || flight.Known[i].IsParked()):
			continue
		case flight.Due && flight.Known.Any(Over):
			return Action{Verb: Record}
		case flight.Known[i] == Unsent:
			return Action{Verb: Do, Item: i, Items: sideBySide(t, schedule, n, flight)}
		default:
			return Action{Verb: Observe, Item: i}
		}
	}
	if flight.Known.Any(Over) {
		return Action{Verb: Record}
	}
	if still {
		return standStill(t)
	}
	i := schedule.Next(t.Status.Items)
	switch {
	case i < 0 && unsettled >= 0:
		return Action{Verb: Settle, Item: unsettled}
	case i < 0:
		return Action{Verb: AwaitReady}
	case t.Status.Items[i].State == api.ItemPending:
		return Action{Verb: Capture, Item: i}
	default:
		return Action{Verb: Open, Item: i}
	}
}

// sideBySide returns the changes to make next, of which the n-th in order is the first.
func sideBySide(t *api.Transaction, schedule Schedule, n int, flight InFlight) []int {
	var fresh []int
	for _, i := range schedule.Order[n:] {
		if t.Status.Items[i].State == api.ItemCommitting && flight.Known[i] == Unsent {
			fresh = append(fresh, i)
		}
	}
	return schedule.beside(t.Status.Items, fresh, flight.over, schedule.width)
}

// decideDeleted says what the deletion of a Transaction that is not rolling back
// means. Before the first intent there is nothing to roll back.
func decideDeleted(t *api.Transaction) Action {
	if t.Spec.OnDelete == api.DeleteRollback && t.Status.Phase == api.PhaseCommitting {
		return Action{Verb: StartRollback, Cause: Cause{Reason: errclass.Cancelled, Message: "the Transaction was deleted while it ran, and onDelete is Rollback"}}
	}
	return Action{Verb: Abandon}
}

func decideEnded(t *api.Transaction, now time.Time, policy Policy) Action {
	switch {
	case t.DeletionTimestamp != nil && HasFinalizer(t):
		return Action{Verb: Abandon}
	case t.DeletionTimestamp != nil:
		return Action{Verb: Nothing}
	case t.Generation != t.Status.ObservedGeneration, endedLater(t, now, policy):
		return Action{Verb: ObserveGeneration}
	case wantedBack(t):
		return Action{Verb: Recover}
	case RollbackStopped(t) && HasFinalizer(t):
		return Action{Verb: CleanUp}
	case RollbackStopped(t):
		return Action{Verb: Nothing}
	}
	if recoveryAsked(t) {
		return Action{Verb: Recover}
	}
	if t.Status.Phase == api.PhaseFailed && recoverable(t, policy) {
		at := recoveryTime(t, policy)
		if now.Before(at) {
			return Action{Verb: Await, At: at}
		}
		return Action{Verb: Recover}
	}
	if HasFinalizer(t) {
		return Action{Verb: CleanUp} // A recovery has added it that was not to be when it began.
	}
	return Action{Verb: Nothing}
}

// mustStop reports what makes a Transaction stop that has not ended.
func mustStop(t *api.Transaction, now time.Time) (Cause, bool) {
	if cause, failing := Failure(&t.Status); failing {
		return cause, true
	}
	if Accepted(t) && t.Generation != t.Status.ObservedGeneration && !Unchanged(t) {
		return Cause{Reason: errclass.SpecChanged, Message: fmt.Sprintf(
			"the spec was changed after it was accepted (generation %d, accepted %d); create another Transaction instead",
			t.Generation, t.Status.ObservedGeneration)}, true
	}
	if items, changes := len(t.Status.Items), len(t.Spec.Changes); Accepted(t) && items != changes {
		return Cause{Reason: errclass.SpecChanged, Message: fmt.Sprintf(
			"status.items does not fit spec.changes (%d and %d): one of them was edited; create another Transaction instead", items, changes)}, true
	}
	if t.Spec.Cancel != "" {
		return Cause{Reason: errclass.Cancelled, Message: fmt.Sprintf("the Transaction was cancelled (spec.cancel: %s)", t.Spec.Cancel)}, true
	}
	if GoesOn(t) && t.Status.Phase == api.PhaseCommitting && !canStop(t.Status.Items) {
		return Cause{}, false // Nothing remains but to find out whether the changes are in effect.
	}
	if Overdue(t, now) {
		message := fmt.Sprintf("not done within spec.timeout (%s)", Timeout(t))
		if waiting := WaitingFor(t); waiting != "" {
			message += ": " + waiting
		}
		return Cause{Reason: errclass.DeadlineExceeded, Message: message}, true
	}
	return retriesOver(t)
}

// MayBegin reports whether a Transaction that holds its locks may record its first intents, as Decide
// would say once its before-images are on record.
func MayBegin(t *api.Transaction, now time.Time) bool {
	_, stop := mustStop(t, now)
	return !stop && !Suspended(t) && t.DeletionTimestamp == nil
}

// stopWith ends a Transaction that has recorded no intent, and turns one that has, or leaves what
// it has made.
func stopWith(t *api.Transaction, cause Cause) Action {
	switch {
	case t.Status.Phase != api.PhaseCommitting:
		return Action{Verb: Fail, Cause: cause}
	case GoesOn(t) && cause.Reason != errclass.SpecChanged && cause.Reason != errclass.Cancelled:
		return Action{Verb: StopMaking, Cause: cause}
	default:
		return Action{Verb: StartRollback, Cause: cause}
	}
}

// nothingLeft reports whether every change is made and ready, or skipped, or has failed where that
// does not stop the others. Of a spec that
// another client has changed only what is on record counts.
func nothingLeft(t *api.Transaction, flight InFlight) bool {
	trusted := len(t.Status.Items) == len(t.Spec.Changes) && (t.Generation == t.Status.ObservedGeneration || Unchanged(t))
	for i := range t.Status.Items {
		if !done(&t.Status.Items[i]) && (!trusted || !flight.over(i) || Gated(ChangeOf(t, i))) {
			return false
		}
	}
	return len(t.Status.Items) > 0
}

// HasFinalizer reports whether the Transaction has the finalizer of Janus.
func HasFinalizer(t *api.Transaction) bool {
	return slices.Contains(t.Finalizers, api.Finalizer)
}

// Begun reports whether a Transaction with these finalizers, in this phase, was begun and is to be finished. The
// finalizer goes before the last phase is on record, so that it alone does not tell.
func Begun(finalizers []string, phase api.Phase) bool {
	switch phase {
	case api.PhasePreparing, api.PhasePrepared, api.PhaseCommitting, api.PhaseRollingBack:
		return true
	}
	return slices.Contains(finalizers, api.Finalizer)
}
