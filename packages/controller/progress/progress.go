package progress

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/packages/image"
)

// Action is what comes next.
type Action int

const (
	// Wait does nothing until Step.After is over.
	Wait Action = iota
	// Record writes the status that was changed, and asks again.
	Record
	// Plan checks the change, and makes the Transaction of the attempt.
	Plan
	// Abort deletes the Transaction, which rolls it back.
	Abort
	// End releases the lock: nothing more is to be done.
	End
)

// Step is what comes next.
type Step struct {
	Action Action
	// After is how long to wait.
	After time.Duration
}

// Policy is how long to wait.
type Policy struct {
	// Look is how often a Transaction is looked at.
	Look time.Duration
	// RetryBase is the wait after the first failed attempt. It doubles up to RetryMax.
	RetryBase, RetryMax time.Duration
}

// DefaultPolicy is what the API promises.
var DefaultPolicy = Policy{Look: time.Second, RetryBase: 10 * time.Second, RetryMax: 5 * time.Minute}

// Attempt is the number of the attempt that is under way, or comes next.
func Attempt(p *api.PackageTransaction) int64 { return p.Status.Failures + 1 }

// Name is the name of the Transaction of that attempt. The generation is not in it: the spec
// cannot change, and to delete the PackageTransaction makes it another.
func Name(p *api.PackageTransaction) string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%s/%d", api.GroupVersion, api.Kind.Kind, p.Name, p.UID, Attempt(p)))
	const longest = 45
	root := subject(p)
	return strings.Trim(root[:min(longest, len(root))], "-.") + "-" + hex.EncodeToString(hash[:4])
}

// subject is the name of the package that the change is about.
func subject(p *api.PackageTransaction) string {
	switch {
	case p.Spec.Install != nil:
		return p.Spec.Install.Package.Metadata.Name
	case p.Spec.Replace != nil:
		return p.Spec.Replace.Package.Metadata.Name
	case p.Spec.Delete != nil:
		return image.Name(p.Spec.Delete.Source)
	default:
		return strings.ToLower(string(p.Spec.Change))
	}
}

// Next decides what comes next. t is the Transaction of the attempt; nil if there is none. If
// the action is Record, the status of p is what is to be written.
func Next(p *api.PackageTransaction, t *txn.Transaction, policy Policy, now time.Time) Step {
	s := &p.Status
	switch {
	case p.DeletionTimestamp != nil && t != nil && !over(t) && t.DeletionTimestamp == nil:
		return Step{Action: Abort}
	case p.DeletionTimestamp != nil && t != nil && !over(t):
		return Step{Action: Wait, After: policy.Look}
	case p.DeletionTimestamp != nil, s.CompletionTime != nil:
		return Step{Action: End}
	case t != nil:
		return follow(p, t, policy, now)
	case s.TransactionRef != nil && s.TransactionRef.Name == Name(p):
		failed(p, policy, now, api.Installed, InstallationFailed, fmt.Sprintf("Transaction %s/%s was deleted: what came of it is not known", s.TransactionRef.Namespace, s.TransactionRef.Name))
		return Step{Action: Record}
	case s.RetryTime != nil && s.RetryTime.After(now):
		return Step{Action: Wait, After: s.RetryTime.Sub(now)}
	default:
		return Step{Action: Plan}
	}
}

// over reports whether nothing more happens to a Transaction. One that was deleted and that
// janusd has let go of does not run any more, whatever its phase says.
func over(t *txn.Transaction) bool {
	return t.Status.Phase.Terminal() || abandoned(t)
}

func abandoned(t *txn.Transaction) bool {
	if t.DeletionTimestamp == nil || t.Status.Phase.Terminal() {
		return false
	}
	for _, f := range t.Finalizers {
		if f == txn.Finalizer {
			return false
		}
	}
	return true
}

// follow takes over what became of the Transaction.
func follow(p *api.PackageTransaction, t *txn.Transaction, policy Policy, now time.Time) Step {
	before := p.Status.DeepCopy()
	p.Status.TransactionRef = &api.TransactionRef{Namespace: t.Namespace, Name: t.Name}
	of := t.Namespace + "/" + t.Name
	ready := meta.FindStatusCondition(t.Status.Conditions, txn.ConditionReady)
	why := "Transaction " + of + " is " + strings.ToLower(string(t.Status.Phase))
	if ready != nil && ready.Message != "" {
		why = ready.Message
	}
	switch phase := t.Status.Phase; {
	case phase == txn.PhaseCommitted:
		succeeded(p, now, "Transaction "+of+" has committed")
	case phase == txn.PhaseRolledBack:
		failed(p, policy, now, api.Installed, InstallationFailed, "Transaction "+of+" was rolled back: "+why)
	case phase == txn.PhaseFailed && nothingDone(t):
		failed(p, policy, now, api.Installed, InstallationFailed, "Transaction "+of+" has changed nothing: "+why)
	case phase.Terminal():
		ended(p, now, api.Installed, InstallationFailed, "Transaction "+of+" could not be rolled back: "+why+"; see kubectl janus recover "+t.Name+" -n "+t.Namespace)
	case abandoned(t):
		failed(p, policy, now, api.Installed, InstallationFailed, "Transaction "+of+" was deleted before it had ended")
	default:
		message := "Transaction " + of + " is running"
		if t.Status.Progress != "" {
			message += ": " + t.Status.Progress + " changes"
		}
		set(p, now, api.Installed, metav1.ConditionUnknown, InstallationInProgress, message)
		set(p, now, api.Ready, metav1.ConditionUnknown, TransactionInProgress, message)
		set(p, now, api.Synced, metav1.ConditionTrue, ReconcileSuccess, "")
	}
	if same(before, &p.Status) {
		return Step{Action: Wait, After: policy.Look}
	}
	return Step{Action: Record}
}

// nothingDone reports whether a Transaction that is Failed has changed nothing.
func nothingDone(t *txn.Transaction) bool {
	c := meta.FindStatusCondition(t.Status.Conditions, txn.ConditionRolledBack)
	return c != nil && c.Reason == nothingCommitted
}

// nothingCommitted is the reason of the condition RolledBack of such a Transaction.
const nothingCommitted = "NothingCommitted"
