package plan

import (
	"fmt"
	"slices"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Verb is what a step does.
type Verb string

// The verbs, in the order in which a Transaction meets them.
const (
	Nothing           Verb = "Nothing"           // ended, and cleared up
	Await             Verb = "Await"             // ended; look again at Action.At
	AddFinalizer      Verb = "AddFinalizer"      // add the finalizer
	Validate          Verb = "Validate"          // try the changes without effect
	Approve           Verb = "Approve"           // check an approval, and record it
	StandAgain        Verb = "StandAgain"        // the approved plan has changed: give the locks back, and make another plan
	Prepare           Verb = "Prepare"           // lock, read, save before-images
	Begin             Verb = "Begin"             // record the first intent
	Capture           Verb = "Capture"           // prepare an item whose target an earlier item changed
	CheckReady        Verb = "CheckReady"        // check whether what is in effect, or restored, is ready
	AwaitReady        Verb = "AwaitReady"        // nothing else is to be done until it is
	Open              Verb = "Open"              // record the intents of the next items
	Do                Verb = "Do"                // make a change whose intent was just recorded
	Observe           Verb = "Observe"           // observe an open intent, then do it if need be
	Record            Verb = "Record"            // record what is over
	Finish            Verb = "Finish"            // every change is in effect: end it
	Fail              Verb = "Fail"              // end before any change was made
	StartRollback     Verb = "StartRollback"     // stop committing, start rolling back
	ObserveUndo       Verb = "ObserveUndo"       // find out about an open intent while rolling back
	OpenUndo          Verb = "OpenUndo"          // record that items are about to be rolled back
	Undo              Verb = "Undo"              // compensate an item
	RetryUndos        Verb = "RetryUndos"        // roll back what was set aside, now that the others are rolled back
	Settle            Verb = "Settle"            // find out about a change that has failed, while others are made
	StopMaking        Verb = "StopMaking"        // begin nothing further, and leave what is in effect
	LeaveUndo         Verb = "LeaveUndo"         // record that items stay in effect, because what depends on them does
	SkipUndo          Verb = "SkipUndo"          // leave an item that was about to be rolled back, if that has not begun
	FinishUndo        Verb = "FinishUndo"        // nothing is left to roll back: end
	Recover           Verb = "Recover"           // take up a failed rollback again
	Suspend           Verb = "Suspend"           // record that it stands still
	StaySuspended     Verb = "StaySuspended"     // it stands still: keep the locks
	Resume            Verb = "Resume"            // record that it goes on
	AcceptPartial     Verb = "AcceptPartial"     // record that what is in effect is left so
	ObserveGeneration Verb = "ObserveGeneration" // ended; record that the spec has been seen, or that the clock was ahead
	CleanUp           Verb = "CleanUp"           // ended; remove what a recovery has taken that is not wanted
	Abandon           Verb = "Abandon"           // being deleted: let go of everything
)

// Action is the next step of a Transaction.
type Action struct {
	Verb Verb
	// Item is the item that the step is about, for those that are about one.
	Item int
	// Items are those that are made side by side, Item first, for Do, and those that stay in
	// effect, for LeaveUndo.
	Items []int
	// Cause says why, for Fail, StartRollback and StopMaking.
	Cause Cause
	// At is when to look again, for Await.
	At time.Time
}

// Decide returns the next step of a Transaction as the API server last stored it, and as far
// as this process knows more of it. It is a pure function.
func Decide(t *api.Transaction, flight InFlight, now time.Time, policy Policy) Action {
	status := &t.Status
	switch {
	case status.Phase.Terminal():
		return decideEnded(t, now, policy)
	case status.Phase == api.PhaseCommitting && nothingLeft(t, flight):
		return Action{Verb: Finish}
	case status.SuspendTime != nil && !Suspended(t):
		return Action{Verb: Resume}
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

// decideRollingBack goes through the items in reverse order.
func decideRollingBack(t *api.Transaction, flight InFlight) Action {
	still, schedule := RollbackStopped(t), ScheduleOf(t)
	order := schedule.Order
	if flight.ReadyCheckDue && !still {
		return Action{Verb: CheckReady}
	}
	if i, found := unclear(t.Status.Items, order); found {
		return Action{Verb: ObserveUndo, Item: i}
	}
	spared := false
	held, behind := HeldOf(t, t.Status.Items, flight.over), BehindOf(t, schedule)
	for _, i := range slices.Backward(order) {
		switch state, closed := t.Status.Items[i].State, held.closed(t.Status.Items, i); {
		case Restoring(&t.Status.Items[i]):
			behind.Add(i)
			spared = spared || still
		case !still && behind.Holds(i):
			continue // What is rolled back before it is waited for.
		case !still && held.waits(i) && !held.stays(i):
			continue // It was refused, or what is rolled back before it was.
		case flight.over(i) && RestoredWhen(t, i):
			return Action{Verb: Record} // The wait begins with the record.
		case state == api.ItemCommitting && spared:
			continue // A later change of the same object stays in effect.
		case state == api.ItemCommitting:
			return Action{Verb: ObserveUndo, Item: i}
		case !closed && state != api.ItemRollingBack || flight.over(i):
			continue
		case still && (closed || flight.untouched(i)):
			spared = true
		case !still && held.stays(i):
			return leave(t, flight, held, i)
		case (flight.Due || closed) && flight.Known.Any(Over):
			return Action{Verb: Record}
		case state == api.ItemRollingBack && still:
			return Action{Verb: SkipUndo, Item: i}
		case state == api.ItemRollingBack:
			return Action{Verb: Undo, Item: i}
		default:
			return Action{Verb: OpenUndo, Item: i}
		}
	}
	switch {
	case flight.Known.Any(Over):
		return Action{Verb: Record}
	case spared && t.Spec.Cancel == api.CancelStop:
		return Action{Verb: AcceptPartial}
	case spared:
		return standStill(t)
	case behind.any:
		return Action{Verb: AwaitReady}
	case held.anyAside():
		return Action{Verb: RetryUndos}
	}
	return Action{Verb: FinishUndo}
}

// leave leaves item i, and all others that stay for the sake of others, in effect. Of one whose
// compensation may have begun it is to be found out first, which is possible unless a later
// change of the object is in effect.
func leave(t *api.Transaction, flight InFlight, held Held, i int) Action {
	left := func(j int) bool {
		state := t.Status.Items[j].State
		return state == api.ItemCommitted || state == api.ItemRollingBack && !flight.over(j) && (held.stay[j].above || flight.untouched(j) || flight.Known[j].NoEffect())
	}
	if !left(i) {
		return Action{Verb: SkipUndo, Item: i}
	}
	var these []int
	for j := range t.Status.Items {
		if held.stays(j) && left(j) {
			these = append(these, j)
		}
	}
	return Action{Verb: LeaveUndo, Item: i, Items: these}
}

// unclear returns the last open intent of a change that no other change of the same object
// covers: it is found out about before anything is rolled back, and one that is covered when
// its turn comes.
func unclear(items []api.Item, order []int) (int, bool) {
	if !slices.ContainsFunc(items, func(item api.Item) bool { return item.State == api.ItemCommitting }) {
		return 0, false
	}
	covered := map[api.Target]bool{}
	for _, i := range slices.Backward(order) {
		switch key := items[i].Target.Identity(); items[i].State {
		case api.ItemCommitting:
			if !covered[key] {
				return i, true
			}
		case api.ItemCommitted, api.ItemRollingBack, api.ItemUnresolved:
			covered[key] = true
		}
	}
	return 0, false
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
		return Cause{Reason: errclass.Cancelled, Message: fmt.Sprintf("spec.cancel is %s", t.Spec.Cancel)}, true
	}
	if GoesOn(t) && t.Status.Phase == api.PhaseCommitting && !canStop(t.Status.Items) {
		return Cause{}, false // What is left is to find out what has become of the changes.
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
		if !done(&t.Status.Items[i]) && (!trusted || !flight.over(i) || Gated(t.Spec.Changes[i])) {
			return false
		}
	}
	return len(t.Status.Items) > 0
}

// HasFinalizer reports whether the Transaction has the finalizer of Janus.
func HasFinalizer(t *api.Transaction) bool {
	return slices.Contains(t.Finalizers, api.Finalizer)
}
