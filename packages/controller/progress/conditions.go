package progress

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// The reasons of conditions, beside those of findings.
const (
	AllValidationsPassed   = "AllValidationsPassed"
	ValidationInProgress   = "ValidationInProgress"
	ValidationFailed       = "ValidationFailed"
	WaitingForLock         = "WaitingForLock"
	InstallationPending    = "InstallationPending"
	InstallationInProgress = "InstallationInProgress"
	InstallationComplete   = "InstallationComplete"
	InstallationFailed     = "InstallationFailed"
	TransactionInProgress  = "TransactionInProgress"
	TransactionComplete    = "TransactionComplete"
	DryRun                 = "DryRun"
	ReconcileSuccess       = "ReconcileSuccess"
	ReconcileError         = "ReconcileError"
)

// maxMessage is how long the message of a condition may be, in bytes.
const maxMessage = 4096

// set sets a condition of the generation that there is now.
func set(p *api.PackageTransaction, now time.Time, kind string, status metav1.ConditionStatus, reason, message string) {
	// What is not as the API server stores it would be written again and again.
	message = errclass.Cut(errclass.OneLine(message), maxMessage)
	p.Status.ObservedGeneration = p.Generation
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: p.Generation, LastTransitionTime: metav1.Time{Time: now},
	})
}

// same reports whether two statuses say the same.
func same(a, b *api.PackageTransactionStatus) bool { return equality.Semantic.DeepEqual(a, b) }

// Queued says for whom a PackageTransaction waits; false if it says so already.
func Queued(p *api.PackageTransaction, holder string, now time.Time) bool {
	before := p.Status.DeepCopy()
	message := "waiting for PackageTransaction " + holder + ", which changes packages"
	set(p, now, api.Validated, metav1.ConditionUnknown, WaitingForLock, message)
	set(p, now, api.Installed, metav1.ConditionUnknown, InstallationPending, "Installation pending validation completion")
	set(p, now, api.Ready, metav1.ConditionUnknown, WaitingForLock, message)
	set(p, now, api.Synced, metav1.ConditionTrue, ReconcileSuccess, "")
	return !same(before, &p.Status)
}

// Begin records that a PackageTransaction has the lock, with the number that came with it.
func Begin(p *api.PackageTransaction, number int64, now time.Time) {
	p.Status.TransactionNumber = number
	p.Status.StartTime = &metav1.Time{Time: now}
	set(p, now, api.Validated, metav1.ConditionUnknown, ValidationInProgress, "The change is being checked")
	set(p, now, api.Installed, metav1.ConditionUnknown, InstallationPending, "Installation pending validation completion")
	set(p, now, api.Ready, metav1.ConditionUnknown, TransactionInProgress, "Transaction is currently executing")
	set(p, now, api.Synced, metav1.ConditionTrue, ReconcileSuccess, "")
}

// Unsynced records an error of janusd's own; false if that is known already.
func Unsynced(p *api.PackageTransaction, err error, now time.Time) bool {
	before := p.Status.DeepCopy()
	set(p, now, api.Synced, metav1.ConditionFalse, ReconcileError, err.Error())
	return !same(before, &p.Status)
}

func succeeded(p *api.PackageTransaction, now time.Time, message string) {
	p.Status.CompletionTime, p.Status.RetryTime = &metav1.Time{Time: now}, nil
	set(p, now, api.Installed, metav1.ConditionTrue, InstallationComplete, message)
	set(p, now, api.Ready, metav1.ConditionTrue, TransactionComplete, message)
	set(p, now, api.Synced, metav1.ConditionTrue, ReconcileSuccess, "")
}

// ended records an end that is not a good one, of the checks or of the installation.
func ended(p *api.PackageTransaction, now time.Time, what, reason, message string) {
	p.Status.CompletionTime, p.Status.RetryTime = &metav1.Time{Time: now}, nil
	summary := InstallationFailed
	if what == api.Validated {
		summary = ValidationFailed
		set(p, now, api.Installed, metav1.ConditionUnknown, InstallationPending, "Installation pending validation completion")
	}
	set(p, now, what, metav1.ConditionFalse, reason, message)
	set(p, now, api.Ready, metav1.ConditionFalse, summary, message)
	set(p, now, api.Stalled, metav1.ConditionTrue, summary, message)
	set(p, now, api.Synced, metav1.ConditionTrue, ReconcileSuccess, "")
}

// failed counts a failed attempt, and says when the next begins if there is one.
func failed(p *api.PackageTransaction, policy Policy, now time.Time, what, reason, message string) {
	p.Status.Failures++
	limit := int64(5)
	if p.Spec.RetryLimit != nil {
		limit = *p.Spec.RetryLimit
	}
	if p.Status.Failures >= limit {
		ended(p, now, what, reason, message)
		return
	}
	delay := policy.RetryBase
	for n := int64(1); n < p.Status.Failures && delay < policy.RetryMax; n++ {
		delay *= 2
	}
	at := metav1.NewTime(now.Add(min(delay, policy.RetryMax)))
	p.Status.RetryTime = &at
	set(p, now, what, metav1.ConditionFalse, reason, message)
	set(p, now, api.Ready, metav1.ConditionUnknown, TransactionInProgress,
		fmt.Sprintf("attempt %d of %d has failed, the next begins at %s: %s", p.Status.Failures, limit, at.UTC().Format(time.RFC3339), message))
	set(p, now, api.Synced, metav1.ConditionTrue, ReconcileSuccess, "")
}

// AccessDenied is the reason if the ServiceAccount may not read what the checks need, or is none.
const AccessDenied = "AccessDenied"

// Unchecked records that a check could not be made. That is counted, whatever the reason: it
// may be another one later, but nobody is waited for forever.
func Unchecked(p *api.PackageTransaction, policy Policy, now time.Time, reason, why string) {
	p.Status.ProposedLockPackages = nil
	failed(p, policy, now, api.Validated, reason, why)
}

// Unmade records that the API server refuses the Transaction of the attempt.
func Unmade(p *api.PackageTransaction, policy Policy, now time.Time, why string) {
	failed(p, policy, now, api.Installed, InstallationFailed, "the Transaction could not be created: "+why)
}

// Taken records that the name of the Transaction of the attempt is taken.
func Taken(p *api.PackageTransaction, policy Policy, now time.Time) {
	failed(p, policy, now, api.Installed, InstallationFailed, "a Transaction "+p.Spec.ServiceAccountRef.Namespace+"/"+Name(p)+" exists that is not of this PackageTransaction: delete it")
}
