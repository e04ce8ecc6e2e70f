package wiring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
)

// left is a Lease as Janus makes one for a Transaction.
func left(t *api.Transaction) *coordinationv1.Lease {
	h := holderOf(t)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "janus-lock-x", Labels: h.Labels, Annotations: h.Annotations},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(h.Identity)},
	}
}

// lockedBy is a Transaction that may have a lock.
func lockedBy(phase api.Phase, finalizers ...string) *api.Transaction {
	t := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deploy", UID: "u", Finalizers: finalizers}}
	t.Status.Phase = phase
	return t
}

// asked is an API server that has these Transactions, and counts how often it is asked.
func asked(t *testing.T, clock *clocktesting.FakePassiveClock, stored ...*api.Transaction) (*endings, *fake.FakeDynamicClient) {
	t.Helper()
	scheme := runtime.NewScheme()
	var objects []runtime.Object
	for _, txn := range stored {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(txn)
		require.NoError(t, err)
		obj := &unstructured.Unstructured{Object: content}
		obj.SetGroupVersionKind(api.Kind)
		objects = append(objects, obj)
	}
	client := fake.NewSimpleDynamicClient(scheme, objects...)
	return newEndings(NewJournal(client), clock), client
}

func reads(client *fake.FakeDynamicClient) int { return len(client.Actions()) }

func TestAHolderHasEndedIfItsTransactionHasOrIsGone(t *testing.T) {
	another := lockedBy(api.PhaseCommitting)
	another.UID = "another"
	for name, c := range map[string]struct {
		stored *api.Transaction
		want   bool
	}{
		"committed":                           {lockedBy(api.PhaseCommitted), true},
		"rolled back":                         {lockedBy(api.PhaseRolledBack), true},
		"failed":                              {lockedBy(api.PhaseFailed), true},
		"gone":                                {nil, true},
		"another of its name":                 {another, true},
		"new":                                 {lockedBy(""), false},
		"preparing":                           {lockedBy(api.PhasePreparing, api.Finalizer), false},
		"committing":                          {lockedBy(api.PhaseCommitting, api.Finalizer), false},
		"rolling back":                        {lockedBy(api.PhaseRollingBack, api.Finalizer), false},
		"its finalizer was removed":           {lockedBy(api.PhaseCommitting), false},
		"its rollback is about to be resumed": {lockedBy(api.PhaseFailed, api.Finalizer), false},
	} {
		t.Run(name, func(t *testing.T) {
			var stored []*api.Transaction
			if c.stored != nil {
				stored = append(stored, c.stored)
			}
			e, _ := asked(t, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), stored...)
			assert.Equal(t, c.want, e.hasEnded(t.Context(), left(lockedBy(api.PhaseCommitting))))
		})
	}
}

// A Lease that Janus did not make is waited for, whatever its holder is called.
func TestALeaseOfAnotherToolIsNoTransactions(t *testing.T) {
	for name, change := range map[string]func(*coordinationv1.Lease){
		"a name of the same form": func(l *coordinationv1.Lease) { l.Labels, l.Annotations = nil, nil },
		"labels alone":            func(l *coordinationv1.Lease) { l.Annotations = nil },
		"no labels":               func(l *coordinationv1.Lease) { l.Labels = nil },
		"taken over by another":   func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("ci/deploy/1234") },
		"a person":                func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("alice") },
		"no uid":                  func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("shop/deploy/") },
		"nobody":                  func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil },
	} {
		t.Run(name, func(t *testing.T) {
			e, client := asked(t, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
			lease := left(lockedBy(api.PhaseCommitted))
			change(lease)
			assert.False(t, e.hasEnded(t.Context(), lease))
			assert.Zero(t, reads(client))
		})
	}
}

// What cannot be found out is no end.
func TestAHolderHasNotEndedIfThatCannotBeTold(t *testing.T) {
	resource := api.Resource.GroupResource()
	for name, err := range map[string]error{
		"janusd may not read it": apierrors.NewForbidden(resource, "deploy", nil),
		"the API server is busy": apierrors.NewTooManyRequests("wait", 1),
		"it is not known":        apierrors.NewInternalError(assert.AnError),
		"the path is not served": apierrors.NewGenericServerResponse(404, "get", resource, "", "404 page not found", 0, true),
	} {
		t.Run(name, func(t *testing.T) {
			e, client := asked(t, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
			client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
			assert.False(t, e.hasEnded(t.Context(), left(lockedBy(api.PhaseCommitted))))
		})
	}
	t.Run("it is denied once", func(t *testing.T) {
		e, client := asked(t, clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), lockedBy(api.PhaseCommitting, api.Finalizer))
		denied := 0
		client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			denied++
			return denied == 1, nil, apierrors.NewNotFound(resource, "deploy")
		})
		assert.False(t, e.hasEnded(t.Context(), left(lockedBy(api.PhaseCommitted))))
		assert.Equal(t, 2, denied)
	})
}

// However many wait for a holder that runs, it is read every two seconds. That it has ended is
// read each time: it may take its rollback up again.
func TestAHolderThatRunsIsNotReadAgainAtOnce(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	running := lockedBy(api.PhaseCommitting, api.Finalizer)
	e, client := asked(t, clock, running)
	for range 5 {
		assert.False(t, e.hasEnded(t.Context(), left(running)))
	}
	assert.Equal(t, 1, reads(client))
	successor := lockedBy(api.PhaseCommitting)
	successor.UID = types.UID("successor")
	assert.True(t, e.hasEnded(t.Context(), left(successor)), "another holder is asked about")
	before := reads(client)
	clock.SetTime(clock.Now().Add(askAgain))
	assert.False(t, e.hasEnded(t.Context(), left(running)))
	clock.SetTime(time.Unix(0, 0))
	assert.False(t, e.hasEnded(t.Context(), left(running)), "the clock was turned back")
	assert.Equal(t, before+2, reads(client))

	e, client = asked(t, clock, lockedBy(api.PhaseFailed))
	for range 3 {
		assert.True(t, e.hasEnded(t.Context(), left(running)))
	}
	assert.Equal(t, 3, reads(client))
}
