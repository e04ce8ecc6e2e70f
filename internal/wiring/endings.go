package wiring

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/sharedlease"
	"janus.io/janus/internal/target"
	"janus.io/janus/snapshot"
)

// endings tells whether the Transactions that hold locks have ended. It is safe for use by
// several goroutines.
type endings struct {
	journal *Journal
	clock   clock.PassiveClock
	// running is, by holder, when it was last found not to have ended. That it has is not
	// kept: a failed rollback may be taken up again.
	running *lru.Cache
}

// askAgain is after how long a holder that had not ended is asked about again. A holder
// deletes its Leases when it ends: what is asked for is the exception, and a Transaction may
// be a megabyte.
const askAgain = 2 * time.Second

// mostRunning is of how many holders it is kept that they run. Who waits for one that was
// dropped asks once more.
const mostRunning = 1024

func newEndings(journal *Journal, clock clock.PassiveClock) *endings {
	return &endings{journal: journal, clock: clock, running: lru.New(mostRunning)}
}

// hasEnded reports whether a Lease is one that Janus made for a Transaction which has ended,
// or is gone: what a Transaction holds is released before that, so it was left by an
// administrator who removed the finalizer, or by a request that landed late. It is not so if
// this cannot be told, as where janusd may not read the Transaction: then the Lease expires.
func (e *endings) hasEnded(ctx context.Context, lease *coordinationv1.Lease) bool {
	name, uid, ok := madeFor(lease)
	if !ok {
		return false
	}
	if at, ok := e.running.Get(uid); ok {
		if ago := e.clock.Since(at.(time.Time)); ago >= 0 && ago < askAgain {
			return false
		}
	}
	if e.isOver(ctx, name, uid) {
		return true
	}
	e.running.Add(uid, e.clock.Now())
	return false
}

// isOver reads the Transaction. Without a resourceVersion the API server answers from etcd.
// One with the finalizer has something to release, or is about to go on with its rollback.
func (e *endings) isOver(ctx context.Context, name types.NamespacedName, uid types.UID) bool {
	obj, err := target.Confirmed(func() (*unstructured.Unstructured, error) { return e.journal.find(ctx, name) })
	if err != nil {
		return isAbsent(err, name.Name)
	}
	t, err := FromUnstructured(obj)
	if err != nil {
		return false
	}
	return t.UID != uid || t.Status.Phase.Terminal() && !plan.HasFinalizer(t)
}

// isAbsent reports whether an error says that there is no Transaction of a name. A 404 that
// names no object says that the path is not served.
func isAbsent(err error, name string) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == name
}

// madeFor returns the Transaction for which Janus made a Lease. Other tools may lock too, and
// may call themselves what they like. But they do not share locks: every entry of a shared Lease
// was written by Janus.
func madeFor(lease *coordinationv1.Lease) (name types.NamespacedName, uid types.UID, ok bool) {
	name, uid, ok = api.ParseHolder(ptr.Deref(lease.Spec.HolderIdentity, ""))
	if _, shared := lease.Annotations[sharedlease.AnnotationReaders]; shared {
		return name, uid, ok && uid != ""
	}
	ok = ok && uid != "" && lease.Annotations[api.TransactionKey] == name.String()
	for key, value := range snapshot.Labels(name.Name) {
		ok = ok && lease.Labels[key] == value
	}
	return name, uid, ok
}
