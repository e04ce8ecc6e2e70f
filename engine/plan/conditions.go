package plan

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Reasons of conditions that are not causes of failure.
const (
	reasonPassed       = "AllValidationsPassed"
	reasonHeld         = "LocksHeld"
	reasonReleased     = "Released"
	reasonNotNeeded    = "NotNeeded"
	reasonNothingToDo  = "NothingCommitted"
	reasonIncomplete   = "RollbackIncomplete"
	reasonNotYet       = "NotYet"
	ReasonFinished     = "Finished"
	reasonRunning      = "Running"
	reasonSuspended    = "Suspended"
	reasonResumed      = "Resumed"
	reasonContinued    = "Continued"
	messageNothingDone = "nothing was changed"
)

// Summarize derives from the phase and the items everything in the status that
// is there for readers: progress, failed item, duration and conditions.
func Summarize(t *api.Transaction, now time.Time) {
	status := &t.Status
	committed, wanted := 0, len(t.Spec.Changes)
	if t.Spec.UndoOf != nil {
		wanted = len(status.Items) // They tell what is to be changed.
	}
	for i := range status.Items {
		switch item := &status.Items[i]; {
		case item.Type == api.Await && (item.Failed || Unready(item)):
			// An Await is in effect when what it waits for is so.
		case item.Committed:
			committed++
		case NotWanted(item):
			wanted--
		}
	}
	status.Progress = fmt.Sprintf("%d/%d", committed, wanted)
	if status.CompletionTime != nil && status.StartTime != nil && status.Duration == "" {
		status.Duration = length(status.CompletionTime.Sub(status.StartTime.Time))
	}
	if Accepted(t) && t.Generation != status.ObservedGeneration && Unchanged(t) {
		status.ObservedGeneration = t.Generation
	}
	restateCause(t, now)
	for _, c := range conditions(status, wanted) {
		setCondition(status, t.Generation, now, c)
	}
	for _, c := range approvalConditions(t) {
		setCondition(status, t.Generation, now, c)
	}
	for _, c := range suspension(status) {
		setCondition(status, t.Generation, now, c)
	}
}

// length writes a duration. The API keeps times by the second.
func length(d time.Duration) string {
	if d < time.Second {
		return "<1s"
	}
	return d.String()
}

// SetValidated records that the pre-flight has let the changes pass.
func SetValidated(status *api.TransactionStatus, generation int64, now time.Time, found Preflight) {
	setCondition(status, generation, now, condition{api.ConditionValidated, yes, reasonPassed, tried(found)})
}

// SetInvalid records, of a Transaction for which no intent is on record, why it is about to
// end. What the pre-flight said of the changes does not hold any more.
func SetInvalid(status *api.TransactionStatus, generation int64, now time.Time, cause Cause) {
	SetFailure(status, generation, now, cause)
	setCondition(status, generation, now, condition{api.ConditionValidated, no, cause.Reason, errclass.Printable(cause.Message)})
}

// SetRefused records what the pre-flight found wrong.
func SetRefused(status *api.TransactionStatus, generation int64, now time.Time, found Preflight) {
	reportProblems(status.Items, found.Problems)
	cause := sumUp(status.Items, found)
	if others := unrefused(status.Items); others > 0 {
		cause.Message = errclass.Printable(fmt.Sprintf("%s; the %d others would be made, because spec.onFailure is Continue", cause.Message, others))
	}
	SetCause(status, generation, now, cause)
	status.FailedItem = firstWrong(status.Items, found.Problems)
}

// SetWaiting records what a Transaction that runs waits for.
func SetWaiting(status *api.TransactionStatus, generation int64, now time.Time, err error) {
	reason, message := errclass.ReasonOf(err), errclass.Message(err)
	setCondition(status, generation, now, condition{api.ConditionReconciling, yes, reason, message})
	setCondition(status, generation, now, condition{api.ConditionReady, no, reason, message})
	if reason == errclass.LockHeld {
		setCondition(status, generation, now, condition{api.ConditionLocked, no, reason, message})
	}
}

type condition struct {
	kind    string
	status  metav1.ConditionStatus
	reason  string
	message string
}

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

func allInEffect(total int) string {
	if total == 1 {
		return "the change is in effect"
	}
	return fmt.Sprintf("all %d changes are in effect", total)
}

// conditions returns every condition that the phase implies, in the polarity that
// kstatus understands: Reconciling while running, Ready on success, Stalled on any
// other end.
func conditions(status *api.TransactionStatus, total int) []condition {
	reason, cause := RecordedCause(status)
	switch status.Phase {
	case api.PhaseCommitted:
		done := allInEffect(total) + skippedOf(status)
		return []condition{
			{api.ConditionLocked, no, reasonReleased, "all locks are released"},
			{api.ConditionSucceeded, yes, string(status.Phase), done},
			{api.ConditionReady, yes, string(status.Phase), done},
			{api.ConditionReconciling, no, ReasonFinished, done},
			{api.ConditionStalled, no, ReasonFinished, done},
			{api.ConditionRolledBack, no, reasonNotNeeded, done},
		}
	case api.PhasePlanned:
		return plannedConditions(status)
	case api.PhaseRolledBack:
		return ended(reason, cause+"; every change that had landed is rolled back",
			condition{api.ConditionRolledBack, yes, string(status.Phase), "every change that had landed is rolled back"})
	case api.PhaseFailed:
		return failedConditions(status, reason, cause)
	case api.PhaseRollingBack:
		return []condition{
			{api.ConditionReady, no, reason, "rolling back: " + cause},
			{api.ConditionReconciling, yes, string(status.Phase), "rolling back what has landed: " + cause},
			{api.ConditionStalled, no, reasonRunning, "the rollback is running"},
			{api.ConditionRolledBack, no, string(status.Phase), "the rollback is running"},
		}
	default:
		return running(status)
	}
}

func failedConditions(status *api.TransactionStatus, reason, cause string) []condition {
	if EndedInPart(status) {
		message := inPart(status, cause)
		return ended(reason, message, condition{api.ConditionRolledBack, no, reasonContinued, message})
	}
	unresolved := DescribeUnresolved(status)
	if len(unresolved) == 0 {
		invalid := ended(reason, cause+"; "+messageNothingDone,
			condition{api.ConditionRolledBack, no, reasonNothingToDo, messageNothingDone})
		if !meta.IsStatusConditionTrue(status.Conditions, api.ConditionValidated) {
			invalid = append(invalid, condition{api.ConditionValidated, no, reason, cause})
		}
		return invalid
	}
	if message, stopped := stoppedWith(status, unresolved); stopped {
		return ended(reason, message, condition{api.ConditionRolledBack, no, reason, message})
	}
	what := "not rolled back"
	if len(namesOf(status.Items, notReady)) == len(unresolved) {
		what = "rolled back, and not ready"
	}
	message := errclass.Printable(fmt.Sprintf("%s: %s; the rollback began because: %s", what, strings.Join(unresolved, "; "), cause))
	return ended(reasonIncomplete, message, condition{api.ConditionRolledBack, no, reasonIncomplete, message})
}

func ended(reason, message string, rolledBack condition) []condition {
	return []condition{
		{api.ConditionLocked, no, reasonReleased, "all locks are released"},
		{api.ConditionReady, no, reason, message},
		{api.ConditionReconciling, no, ReasonFinished, "nothing more is done"},
		{api.ConditionStalled, yes, reason, message},
		rolledBack,
	}
}

func running(status *api.TransactionStatus) []condition {
	phase := status.Phase
	if phase == "" {
		phase = api.PhasePending
	}
	step := map[api.Phase]string{
		api.PhasePending:    "validating the changes",
		api.PhasePreparing:  "taking the locks and saving the before-images",
		api.PhasePrepared:   "ready to make the changes",
		api.PhaseCommitting: "making the changes",
	}[phase]
	locked := condition{api.ConditionLocked, no, reasonNotYet, "the locks are not all held yet"}
	if phase == api.PhasePrepared || phase == api.PhaseCommitting {
		locked = condition{api.ConditionLocked, yes, reasonHeld, "every target is locked"}
	}
	succeeded := condition{api.ConditionSucceeded, unknown, string(phase), step}
	if cause, failing := Failure(status); failing {
		succeeded.reason, succeeded.message = cause.Reason, cause.Message
	} else if reason, cause := RecordedCause(status); reason != "" {
		succeeded = condition{api.ConditionSucceeded, no, reason, cause}
	}
	out := []condition{
		locked, succeeded,
		{api.ConditionReady, no, string(phase), step},
		{api.ConditionReconciling, yes, string(phase), step},
		{api.ConditionStalled, no, reasonRunning, step},
		{api.ConditionRolledBack, no, reasonNotNeeded, "nothing has failed"},
	}
	switch validated := meta.FindStatusCondition(status.Conditions, api.ConditionValidated); {
	case phase == api.PhasePending, validated == nil:
		out = append(out, condition{api.ConditionValidated, unknown, reasonNotYet, "the changes have not been tried yet"})
	case locked.status == yes && validated.Status == unknown:
		// Of a Transaction that was accepted by a Janus that had no pre-flight.
		out = append(out, condition{api.ConditionValidated, yes, reasonPassed, "every change that can be tried was accepted"})
	}
	return out
}

// DescribeUnresolved says of each Unresolved item why it could not be rolled back: first of those
// that block others, since what they say is what to do something about.
func DescribeUnresolved(status *api.TransactionStatus) []string {
	var out, blocked []string
	for i := range status.Items {
		item := &status.Items[i]
		text := fmt.Sprintf("item %s (%s): %s", item.Name, item.Target.String(), item.Message)
		switch {
		case isBlocked(item):
			blocked = append(blocked, text)
		case item.State == api.ItemUnresolved:
			out = append(out, text)
		}
	}
	return append(out, blocked...)
}

func setCondition(status *api.TransactionStatus, generation int64, now time.Time, c condition) {
	next := metav1.Condition{
		Type: c.kind, Status: c.status, Reason: c.reason, Message: c.message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	}
	if old := meta.FindStatusCondition(status.Conditions, c.kind); old != nil && old.Status == next.Status && !old.LastTransitionTime.IsZero() {
		next.LastTransitionTime = old.LastTransitionTime
	}
	meta.RemoveStatusCondition(&status.Conditions, c.kind)
	status.Conditions = append(status.Conditions, next)
}

// plannedConditions are those of a Transaction that was to be tried only.
func plannedConditions(status *api.TransactionStatus) []condition {
	phase := string(status.Phase)
	done := "planned; " + messageNothingDone + ", because spec.dryRun is set"
	if c := meta.FindStatusCondition(status.Conditions, api.ConditionValidated); c != nil {
		done += "; " + c.Message
	}
	done = errclass.Printable(done)
	return []condition{
		{api.ConditionLocked, no, reasonNotNeeded, done},
		{api.ConditionSucceeded, yes, phase, done},
		{api.ConditionReady, yes, phase, done},
		{api.ConditionReconciling, no, ReasonFinished, done},
		{api.ConditionStalled, no, ReasonFinished, done},
		{api.ConditionRolledBack, no, reasonNotNeeded, done},
	}
}
