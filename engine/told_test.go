package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/objectid"
)

// What is told when a wait is over need not be looked at before time alone decides.

var (
	gateID  = objectid.ID{Resource: "configmaps", Namespace: "shop", Name: "gate"}
	otherID = objectid.ID{Resource: "configmaps", Namespace: "shop", Name: "other"}
)

// unreadyOn is what is found of an item that depends on objects.
func unreadyOn(ids ...objectid.ID) Readiness { return Readiness{Message: "it is not ready", On: ids} }

// waitsFor runs a world whose items a and b are in effect and waited for, and returns how it waits.
func waitsFor(t *testing.T, a, b Readiness, change func(*api.Transaction)) Result {
	t.Helper()
	w := newWorld(t, "a", "b").wide(0)
	w.stored.Spec.Order = api.OrderGraph
	for i := range w.stored.Spec.Changes {
		w.stored.Spec.Changes[i].ReadyWhen = &api.ReadyWhen{Expression: "object.ready"}
	}
	if change != nil {
		change(w.stored)
	}
	w.unready["a"], w.unready["b"] = a, b
	result, _ := w.once()
	require.NoError(t, result.Err, w.transcript())
	require.Equal(t, pollInterval, result.After, w.transcript())
	return result
}

func TestAWaitSaysWhatItIsToBeToldOf(t *testing.T) {
	result := waitsFor(t, unreadyOn(gateID), unreadyOn(gateID, otherID), nil)
	assert.Equal(t, []errclass.Awaited{{ID: gateID}, {ID: otherID}}, result.Awaited)
	assert.Equal(t, types.NamespacedName{Namespace: "shop", Name: "deployer"}, result.Account)
	assert.Equal(t, plan.DefaultLockTimeout/4, result.Told, "the locks are to be renewed")
}

// What changes nothing has no locks.
func TestAWaitWithoutLocksIsLookedAtSeldom(t *testing.T) {
	w := newWorld(t, "a")
	w.stored.Spec.Changes[0].Type, w.stored.Spec.Changes[0].ReadyWhen = api.Await, &api.ReadyWhen{Expression: "object != null"}
	w.stored.Spec.Timeout = ptr.To(api.Duration("6h"))
	w.unready["a"] = unreadyOn(gateID)
	result, _ := w.once()
	require.NoError(t, result.Err, w.transcript())
	assert.Equal(t, maxToldInterval, result.Told, w.transcript())
}

func TestWhatNobodyTellsIsLookedAt(t *testing.T) {
	result := waitsFor(t, unreadyOn(gateID), unreadyOn(), nil)
	assert.Empty(t, result.Awaited)
	assert.Zero(t, result.Told)
}

// The end of a wait is nothing that happens to an object.
func TestTheTimeOfAWaitIsKept(t *testing.T) {
	result := waitsFor(t, unreadyOn(gateID), unreadyOn(gateID), func(txn *api.Transaction) {
		txn.Spec.Changes[1].ReadyWhen.Timeout = ptr.To(api.Duration("20s"))
	})
	assert.InDelta(t, 20*time.Second, result.Told, float64(time.Second))
	result = waitsFor(t, unreadyOn(gateID), unreadyOn(gateID), func(txn *api.Transaction) {
		txn.Spec.Timeout = ptr.To(api.Duration("30s"))
	})
	assert.InDelta(t, 30*time.Second, result.Told, float64(time.Second))
	result = waitsFor(t, unreadyOn(gateID), unreadyOn(gateID), func(txn *api.Transaction) {
		txn.Spec.LockTimeout = ptr.To(api.Duration("12s"))
	})
	assert.Equal(t, 3*time.Second, result.Told)
}

// An error about one change tells nothing of another that is waited for.
func TestAWaitBesideAnotherIsPolledFor(t *testing.T) {
	held := errclass.New(errclass.Retryable, errclass.Terminating, "delete", "ConfigMap a", "it is being deleted")
	held.Awaited = []errclass.Awaited{{ID: gateID}}
	for name, besides := range map[string]error{
		"told":     &errclass.Error{Class: errclass.Retryable, Reason: errclass.Terminating, Awaited: []errclass.Awaited{{ID: otherID}}},
		"not told": errclass.New(errclass.Retryable, errclass.Terminating, "delete", "ConfigMap b", "its children are being deleted"),
	} {
		both := bothPending(bothPending(nil, held), besides)
		if name == "told" {
			assert.Equal(t, []errclass.Awaited{{ID: gateID}, {ID: otherID}}, errclass.AwaitedBy(both))
		} else {
			assert.Empty(t, errclass.AwaitedBy(both))
		}
		assert.Equal(t, held.Error(), both.Error())
		assert.Len(t, held.Awaited, 1, "the error itself stays as it is")
	}
	assert.Empty(t, errclass.AwaitedBy(bothPending(errRefused, held)))
}

// Nobody tells when the lock of a holder that has died expires.
func TestALockIsLookedAtWhenItExpires(t *testing.T) {
	for until, want := range map[time.Duration]time.Duration{10 * time.Second: 10 * time.Second, time.Hour: plan.DefaultLockTimeout / 4} {
		w := newWorld(t, "a")
		w.nth = func(_ int, who string) reply {
			if who != "lock" {
				return reply{}
			}
			held := errclass.New(errclass.Retryable, errclass.LockHeld, "lock", "ConfigMap a", "another has it")
			held.Awaited, held.RetryAfter = []errclass.Awaited{{ID: gateID, Holder: types.NamespacedName{Namespace: "shop", Name: "x"}}}, until
			return reply{err: held}
		}
		result, _ := w.once()
		require.NoError(t, result.Err, w.transcript())
		assert.Equal(t, pollInterval, result.After)
		assert.Equal(t, want, result.Told)
		assert.Len(t, result.Awaited, 1)
	}
}
