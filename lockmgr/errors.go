package lockmgr

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HeldError says that another client holds a lock.
type HeldError struct {
	Key Key
	// Lease is the namespace/name of the Lease that is in the way. It may be a
	// stand-in, and so not where our own Lease would be.
	Lease string
	// Holder is the identity in that Lease, or the first of those that share it.
	Holder string
	// Others is how many share it with Holder.
	Others int
	// Shared is set if the Lease is shared, so that one holder's end does not free it.
	Shared bool
	// Waits is set if Holder does not hold the lock, but waits to have it alone and comes first.
	Waits bool
	// Forged is set if Holder is the caller, and another client has written that: marks.go says how
	// this is told.
	Forged bool
	// Since is when Holder has taken it by its own clock, and Lasts for how long it has it after each
	// renewal; zero where the Lease does not say so of one holder.
	Since time.Time
	Lasts time.Duration
	// Until is how long by our clock the record must still stand unchanged
	// until it may be taken over; it is never zero. Where the record's time is
	// over and it is in the way for another reason, it is when to look again; so it is
	// where the caller has to say again that it waits.
	Until time.Duration

	// wanted is the Lease as it was read if the holder may enter itself there as the next.
	wanted *coordinationv1.Lease
}

func (e *HeldError) Error() string {
	switch {
	case e.Waits:
		return fmt.Sprintf("lock of %s is wanted: %q comes first at Lease %s for up to %s", e.Key, e.Holder, e.Lease, e.Until)
	case e.Forged:
		return fmt.Sprintf("lock of %s is held: another client has written holder %q into Lease %s, for up to %s", e.Key, e.Holder, e.Lease, e.Until)
	case e.Others > 0:
		return fmt.Sprintf("lock of %s is held: Lease %s has holder %q and %d more for up to %s", e.Key, e.Lease, e.Holder, e.Others, e.Until)
	default:
		return fmt.Sprintf("lock of %s is held: Lease %s has holder %q for up to %s", e.Key, e.Lease, e.Holder, e.Until)
	}
}

// LostError says that another holder has a lock that was thought ours.
type LostError struct {
	Lock
	// Holder is the identity of who has it now.
	Holder string
	// Forged is set as in HeldError.
	Forged bool
}

func (e *LostError) Error() string {
	if e.Forged {
		return fmt.Sprintf("lock of %s is lost: another client has written holder %q into Lease %s", e.Key, e.Holder, e.Lock)
	}
	return fmt.Sprintf("lock of %s is lost: Lease %s has holder %q", e.Key, e.Lock, e.Holder)
}

// NamespaceTerminatingError says that the Lease of a target cannot be created
// because its namespace is being deleted. Err is the API server's answer.
type NamespaceTerminatingError struct {
	Key       Key
	Namespace string
	Err       error
}

func (e *NamespaceTerminatingError) Error() string {
	return fmt.Sprintf("lock of %s: namespace %s is being deleted: %v", e.Key, e.Namespace, e.Err)
}

func (e *NamespaceTerminatingError) Unwrap() error { return e.Err }

// UnseenError says that Release may not check whether the holder has a lock which
// this process does not remember. Err is the API server's answer.
type UnseenError struct {
	Lock
	Err error
}

func (e *UnseenError) Error() string {
	return fmt.Sprintf("lock of %s: this process may not look at Lease %s: %v", e.Key, e.Lock, e.Err)
}

func (e *UnseenError) Unwrap() error { return e.Err }

func isHeld(err error) bool {
	target := (*HeldError)(nil)
	return errors.As(err, &target)
}

func isLost(err error) bool {
	target := (*LostError)(nil)
	return errors.As(err, &target)
}

func isTerminating(err error) bool {
	target := (*NamespaceTerminatingError)(nil)
	return errors.As(err, &target)
}

// isTyped says whether the error is one of this package, which name the target
// themselves.
func isTyped(err error) bool { return isHeld(err) || isLost(err) || isTerminating(err) }

// isNamespaceMissing says whether a create was refused because the namespace
// does not exist. A 404 that names something else comes from elsewhere, such
// as a proxy, and says nothing about the namespace.
func isNamespaceMissing(err error) bool {
	details := detailsOf(err)
	return apierrors.IsNotFound(err) && details != nil && details.Kind == "namespaces"
}

func isNamespaceTerminating(err error) bool {
	return apierrors.IsForbidden(err) && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// isOutdated says whether a conditional write was refused because the Lease is
// not the one it was conditioned on, or is gone.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

// isRefusal says whether the answer to a create proves that no Lease was made.
// "Already exists" does not: client-go repeats requests by itself, and then the
// Lease that exists may be of the first try.
func isRefusal(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

func detailsOf(err error) *metav1.StatusDetails {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return nil
	}
	return status.Status().Details
}
