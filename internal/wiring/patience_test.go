package wiring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
)

// accountFirst makes a ServiceAccount and then a Pod that runs as it.
func accountFirst() *api.Transaction {
	account := api.Target{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "shop", Name: "worker"}
	pod := api.Target{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "a"}
	return &api.Transaction{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "up", UID: "t"},
		Spec: api.TransactionSpec{ServiceAccountName: "deployer", Changes: []api.Change{
			{Name: "account", Type: api.Create, Target: account}, {Name: "pod", Type: api.Create, Target: pod, Content: &runtime.RawExtension{}},
		}},
		Status: api.TransactionStatus{Phase: api.PhaseCommitting, Items: []api.Item{
			{Name: "account", Target: account, Resource: "serviceaccounts", State: api.ItemCommitted},
			{Name: "pod", Target: pod, Resource: "pods", DeferredBy: "account", State: api.ItemPending},
		}},
	}
}

func withPod(t *testing.T) *api.Transaction {
	t.Helper()
	txn := accountFirst()
	txn.Spec.Changes[1].Content.Raw = []byte(`{"spec": {"serviceAccountName": "worker"}}`)
	return txn
}

func TestARefusalIsBorneForAWhileWhenTheTurnHasCome(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1, 0))
	txn := withPod(t)
	p := session{shared: &shared{patience: newPatience(clock)}, txn: txn}
	borne := p.bear(t.Context(), 1, noAccount)
	assert.Equal(t, errclass.Retryable, errclass.ClassOf(borne))
	assert.Equal(t, errclass.NotInEffect, errclass.ReasonOf(borne))
	assert.Positive(t, errclass.RetryAfter(borne))
	require.ErrorContains(t, borne, "what item account has changed may not be in effect everywhere yet")
	clock.Step(patienceTime - time.Millisecond)
	assert.True(t, errclass.Is(p.bear(t.Context(), 1, noAccount), errclass.NotInEffect))
	clock.Step(time.Millisecond)
	assert.Equal(t, noAccount, p.bear(t.Context(), 1, noAccount), "it counts from then on")
}

func TestARefusalIsBorneNoLongerWhenTheClockIsSetBack(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(100, 0))
	p := newPatience(clock)
	assert.False(t, p.over("t", 0))
	clock.SetTime(time.Unix(30, 0))
	assert.False(t, p.over("t", 0))
	clock.Step(patienceTime)
	assert.True(t, p.over("t", 0), "the time counts from when it was set back")
}

func TestWhatNoEarlierChangeIsTheReasonOfIsNotBorne(t *testing.T) {
	txn := withPod(t)
	p := session{shared: &shared{patience: newPatience(clocktesting.NewFakeClock(time.Unix(1, 0)))}, txn: txn}
	assert.Equal(t, tooSmall, p.bear(t.Context(), 1, tooSmall))
	assert.Equal(t, webhookDead, p.bear(t.Context(), 1, webhookDead))
	txn.Status.Phase = api.PhasePreparing
	assert.Equal(t, noAccount, p.bear(t.Context(), 1, noAccount), "its turn has not come")
	assert.NoError(t, p.bear(t.Context(), 1, nil))
}

func TestAVersionThatIsToBeServedIsWaitedFor(t *testing.T) {
	txn := withPod(t)
	p := session{shared: &shared{patience: newPatience(clocktesting.NewFakeClock(time.Unix(1, 0)))}, txn: txn}
	txn.Status.Items[1].Deferred = true
	waits := p.bear(t.Context(), 1, notServed)
	assert.Equal(t, errclass.Retryable, errclass.ClassOf(waits))
	assert.Equal(t, errclass.KindNotFound, errclass.ReasonOf(waits))
}

// What is refused under the lock, though the pre-flight could not try it or it was accepted
// then, is deferred as well, as long as nothing is changed.
func TestWhatIsRefusedUnderTheLockIsDeferredToo(t *testing.T) {
	txn := withPod(t)
	txn.Status.Phase = api.PhasePreparing
	txn.Status.Items[0].State, txn.Status.Items[1].DeferredBy = api.ItemPending, ""
	prepared, problems := make([]engine.PreparedItem, 2), []error{nil, noAccount}
	require.NoError(t, session{shared: &shared{}, txn: txn}.deferAgain(t.Context(), []int{0, 1}, prepared, problems))
	assert.Equal(t, []error{nil, nil}, problems)
	assert.Equal(t, "account", prepared[1].DeferredBy)

	problems = []error{noAccount, tooSmall}
	require.NoError(t, session{shared: &shared{}, txn: txn}.deferAgain(t.Context(), []int{0, 1}, make([]engine.PreparedItem, 2), problems))
	assert.Equal(t, []error{noAccount, tooSmall}, problems, "nothing comes before the one, and nothing explains the other")

	txn.Status.Items[0].State = api.ItemSkipped
	problems = []error{nil, noAccount}
	require.NoError(t, session{shared: &shared{}, txn: txn}.deferAgain(t.Context(), []int{0, 1}, make([]engine.PreparedItem, 2), problems))
	assert.Equal(t, noAccount, problems[1], "what is skipped is no reason")
}
