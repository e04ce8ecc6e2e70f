package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// With onFailure Continue, a change that fails keeps only what depends on it from being made, and
// nothing is rolled back.

// GoesOn reports whether the others are made when a change fails.
func GoesOn(t *api.Transaction) bool { return t.Spec.OnFailure == api.FailureContinue }

// Failed reports whether an item has failed, of a Transaction that goes on, and it is known what has
// become of it.
func Failed(item *api.Item) bool { return item.Failed && item.State != api.ItemCommitting }

// settling is the first item that has failed and of which it is not known whether it is in effect;
// -1 if there is none.
func settling(items []api.Item, order []int) int {
	for _, i := range order {
		if items[i].Failed && items[i].State == api.ItemCommitting {
			return i
		}
	}
	return -1
}

// FailItem records that the change of an item has failed, of a Transaction that goes on. One for which
// nothing was sent is not made. The first cause is that of the Transaction.
func FailItem(t *api.Transaction, status *api.TransactionStatus, i int, cause Cause, now time.Time) error {
	SetCause(status, t.Generation, now, cause)
	item := &status.Items[i]
	item.Failed = true
	if item.State == api.ItemPending || item.State == api.ItemPrepared {
		return Skip(item, cause.Reason, cause.Message)
	}
	item.Reason, item.Message = cause.Reason, errclass.Printable(cause.Message)
	return nil
}

// SetApart records in the items of a pre-flight, of a Transaction that goes on when a change fails,
// those that were refused and what depends on them. What may heal is tried again. It reports whether
// any change is left to be made.
func SetApart(t *api.Transaction, found Preflight) (left bool, err error) {
	if !GoesOn(t) {
		return false, nil
	}
	reportProblems(found.Items, found.Problems)
	for _, p := range found.Problems {
		item := &found.Items[p.Item]
		if !Definite(p.Err) || item.Failed {
			continue
		}
		item.Failed = true
		if err := Skip(item, item.Reason, item.Message); err != nil {
			return false, err
		}
	}
	if err := SkipDependents(t, found.Items); err != nil {
		return false, err
	}
	for i := range found.Items {
		left = left || found.Items[i].Changes()
	}
	return left, nil
}

// unrefused counts the changes that would be made although others were refused.
func unrefused(items []api.Item) int {
	refused, n := false, 0
	for i := range items {
		refused = refused || items[i].Failed
		if items[i].Changes() {
			n++
		}
	}
	if !refused {
		return 0
	}
	return n
}

// SetPartlyRefused records what the pre-flight found wrong, of a Transaction that goes on without it.
func SetPartlyRefused(status *api.TransactionStatus, generation int64, now time.Time, problems []Problem) {
	cause := sumUp(status.Items, Preflight{Problems: problems})
	SetCause(status, generation, now, cause)
	status.FailedItem = firstWrong(status.Items, problems)
	setCondition(status, generation, now, condition{api.ConditionValidated, no, cause.Reason, cause.Message})
}

// LeaveUnmade records that nothing further is made, of a Transaction that goes on when a change
// fails. What may be in effect is found out about, and what is waited for is not waited for any more.
func LeaveUnmade(t *api.Transaction, status *api.TransactionStatus, cause Cause, now time.Time) error {
	SetCause(status, t.Generation, now, cause)
	for i := range status.Items {
		item := &status.Items[i]
		switch {
		case item.State == api.ItemPending, item.State == api.ItemPrepared:
			if err := Skip(item, cause.Reason, fmt.Sprintf("%s is not made: %s", item.Target.String(), cause.Message)); err != nil {
				return err
			}
		case item.State == api.ItemCommitting && !item.Failed, Unready(item):
			item.Failed, item.Reason, item.Message = true, cause.Reason, errclass.Printable(cause.Message)
		}
	}
	return nil
}

// canStop reports whether LeaveUnmade would do anything.
func canStop(items []api.Item) bool {
	for i := range items {
		if !done(&items[i]) && !items[i].Failed {
			return true
		}
	}
	return false
}

// SettleFailed records of an item that has failed what has become of it.
func SettleFailed(item *api.Item, state api.ItemState) error {
	if state == api.ItemCommitted {
		item.Failed, item.Reason, item.Message = false, "", ""
	}
	return MoveItem(item, state)
}

// SkipDependents skips what depends on changes that are skipped, or have failed. An intent that
// another process may have acted on is found out about.
func SkipDependents(t *api.Transaction, items []api.Item) error {
	now := *t
	now.Status.Items = items
	t = &now
	order, err := Order(t)
	if err != nil {
		return err
	}
	needs, err := needsOf(t)
	if err != nil {
		return err
	}
	byName := map[string]int{}
	for i := range items {
		byName[items[i].Name] = i
	}
	for _, i := range order {
		item := &items[i]
		on, reason := hindrance(t, items, needs[i], i, byName)
		switch {
		case on < 0:
		case item.State == api.ItemPending || item.State == api.ItemPrepared:
			err = Skip(item, reason, hindered(item, &items[on], reason))
		case item.State == api.ItemCommitting && reason == reasonDependencyFailed && !item.Failed:
			item.Failed, item.Reason, item.Message = true, reason, errclass.Printable(hindered(item, &items[on], reason))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hindrance is the item because of which item i is not made; -1 if there is none. What depends on a
// change that has failed is whatever it refers to, on earlier changes of its object, and on what makes
// room for it: all of them may be missing. What is skipped because it is not wanted keeps only those
// from being made that say so.
func hindrance(t *api.Transaction, items []api.Item, needs []int, i int, byName map[string]int) (on int, reason string) {
	if i >= len(t.Spec.Changes) {
		return -1, ""
	}
	all := needs
	for _, name := range items[i].DependsOn {
		if j, ok := byName[name]; ok && j != i {
			all = append(all[:len(all):len(all)], j)
		}
	}
	for _, j := range all {
		if Failed(&items[j]) || items[j].State == api.ItemSkipped && items[j].Reason == reasonDependencyFailed {
			return j, reasonDependencyFailed
		}
	}
	if deletesInstead(t, items, i) {
		return -1, ""
	}
	for _, name := range t.Spec.Changes[i].DependsOn {
		if j, ok := byName[name]; ok && items[j].State == api.ItemSkipped {
			return j, reasonDependencySkipped
		}
	}
	return -1, ""
}

func hindered(item, on *api.Item, reason string) string {
	if reason == reasonDependencySkipped {
		return fmt.Sprintf("%s is left as it is: it depends on %s, which is skipped", item.Target.String(), on.Name)
	}
	if on.Failed {
		return fmt.Sprintf("%s is not made: it depends on %s, which has failed", item.Target.String(), on.Name)
	}
	return fmt.Sprintf("%s is not made: it depends on %s, which is not made", item.Target.String(), on.Name)
}

// NotWanted reports whether a change was not made because it was not to be.
func NotWanted(item *api.Item) bool {
	return item.State == api.ItemSkipped && (item.Reason == ReasonWhenFalse || item.Reason == reasonDependencySkipped || item.Reason == reasonDependencyDeleted || item.Reason == ReasonNotActivated)
}

// Unmade reports whether a change has failed that did not stop the others, or was not made because of
// one.
func Unmade(status *api.TransactionStatus) bool {
	for i := range status.Items {
		if item := &status.Items[i]; item.Failed || item.State == api.ItemSkipped && !NotWanted(item) {
			return true
		}
	}
	return false
}

// restateCause corrects why a Transaction does not commit, if the item that failed first has turned out
// to be in effect: the next one that failed tells why, or one that was not made after that. A cause
// without an item, as that the time is over, holds as long as something is not in effect.
func restateCause(t *api.Transaction, now time.Time) {
	status := &t.Status
	first, holds := IndexOf(status.Items, status.FailedItem), false
	if first >= 0 {
		holds = status.Items[first].Failed
	} else if reason, _ := RecordedCause(status); reason == "" || Unmade(status) {
		holds = true
	}
	if !GoesOn(t) || status.Phase != api.PhaseCommitting || holds {
		return
	}
	status.FailedItem = ""
	meta.RemoveStatusCondition(&status.Conditions, api.ConditionSucceeded)
	for _, unmade := range []func(*api.Item) bool{
		func(item *api.Item) bool { return item.Failed },
		func(item *api.Item) bool { return item.State == api.ItemSkipped && !NotWanted(item) },
	} {
		if i := slices.IndexFunc(status.Items, func(item api.Item) bool { return unmade(&item) }); i >= 0 {
			item := &status.Items[i]
			SetCause(status, t.Generation, now, Cause{Reason: item.Reason, Message: item.Message, Item: item.Name})
			return
		}
	}
}

// inPart says what such a Transaction has not made, and what of it has failed.
func inPart(status *api.TransactionStatus, cause string) string {
	var failed, unmade []string
	for i := range status.Items {
		switch item := &status.Items[i]; {
		case item.Failed:
			failed = append(failed, item.Name)
		case item.State == api.ItemSkipped && !NotWanted(item), item.State == api.ItemRejected:
			unmade = append(unmade, item.Name)
		}
	}
	message := fmt.Sprintf("%s changes are in effect, and nothing is rolled back, because spec.onFailure is Continue", status.Progress)
	if len(failed) > 0 {
		message += "; failed: items " + enumerate(failed)
	}
	if len(unmade) > 0 {
		message += "; not made: items " + enumerate(unmade)
	}
	return errclass.Printable(message + "; " + cause)
}

// NoteHandOver records what went wrong when the fields were handed over. Of what has failed, or was not
// made, that comes after why.
func NoteHandOver(items []api.Item, problems map[int]string) {
	for i, problem := range problems {
		item := &items[i]
		if !item.Failed && item.State != api.ItemSkipped {
			item.Reason, item.Message = ReasonManagerStays, errclass.Printable(problem)
			continue
		}
		item.Message = errclass.Printable(errclass.Cut(item.Message, 600) + "; fields not handed over: " + problem)
	}
}
