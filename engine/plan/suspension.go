package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// Suspended reports whether nothing further is to be begun.
func Suspended(t *api.Transaction) bool {
	return t.Spec.Suspend && t.Spec.Cancel == "" && t.DeletionTimestamp == nil
}

// RollbackStopped reports whether nothing further is to be rolled back.
func RollbackStopped(t *api.Transaction) bool {
	return Suspended(t) || t.Spec.Cancel == api.CancelStop
}

// standStill records that the Transaction is suspended, once.
func standStill(t *api.Transaction) Action {
	if t.Status.SuspendTime == nil {
		return Action{Verb: Suspend}
	}
	return Action{Verb: StaySuspended}
}

// Accepted reports whether a Transaction has been validated. One whose plan stands, or stands
// again, has been.
func Accepted(t *api.Transaction) bool {
	return t.Status.Phase != "" && t.Status.Phase != api.PhasePending || t.Status.Approval != nil
}

// suspension returns the conditions that tell whether a Transaction stands still; none
// before it ever has.
func suspension(status *api.TransactionStatus) []condition {
	if status.SuspendTime != nil {
		message := fmt.Sprintf("suspended; %s changes are in effect, and nothing further is begun until spec.suspend is false or spec.cancel is set", status.Progress)
		return []condition{
			{api.ConditionSuspended, yes, reasonSuspended, message},
			{api.ConditionReady, no, reasonSuspended, message},
			{api.ConditionReconciling, yes, reasonSuspended, message},
		}
	}
	if meta.FindStatusCondition(status.Conditions, api.ConditionSuspended) == nil {
		return nil
	}
	return []condition{{api.ConditionSuspended, no, reasonResumed, "spec.suspend does not hold the Transaction up"}}
}

// OrPending is the phase, or Pending if there is none yet.
func OrPending(phase api.Phase) api.Phase {
	if phase == "" {
		return api.PhasePending
	}
	return phase
}

// InEffect reports whether a finding says that the change has been accepted.
func InEffect(finding outcome.Finding) bool {
	return finding == outcome.Applied || finding == outcome.Applying
}

// stoppedWith says what is in effect of a Transaction that was stopped, if nothing but
// that is why.
func stoppedWith(status *api.TransactionStatus, unresolved []string) (string, bool) {
	names := namesOf(status.Items, func(item *api.Item) bool { return left(item) && !notReady(item) })
	waits := namesOf(status.Items, func(item *api.Item) bool { return left(item) && notReady(item) })
	if len(names)+len(waits) < len(unresolved) {
		return "", false
	}
	_, cause := RecordedCause(status)
	message := cause + "; stopped"
	if len(names) > 0 {
		message += fmt.Sprintf(", and left in effect: items %s; set spec.cancel to Rollback to roll them back", strings.Join(names, ", "))
	}
	if len(waits) > 0 {
		message += fmt.Sprintf("; restored, and not waited for: items %s", strings.Join(waits, ", "))
	}
	return errclass.Printable(message), true
}

// Unchanged reports whether the spec is as it was accepted, but for suspend and cancel.
func Unchanged(t *api.Transaction) bool {
	if t.Status.SpecDigest == "" {
		return t.Generation == t.Status.ObservedGeneration
	}
	return t.Status.SpecDigest == SpecDigest(&t.Spec)
}

// SpecDigest is of all that may not change in a spec.
func SpecDigest(spec *api.TransactionSpec) string {
	fixed := *spec
	fixed.Suspend, fixed.Cancel = false, ""
	if fixed.UndoOf != nil {
		fixed.Changes = nil // They follow from it.
	}
	text, err := json.Marshal(fixed)
	if err != nil {
		return "" // Content that came in as JSON goes out as JSON.
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
