package memory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
)

func TestWhatIsKnownToBeClearedUpIsForgotten(t *testing.T) {
	k := clearedUp{since: map[types.UID]time.Time{}}
	now := fixture.Start
	for n := range 10_000 {
		now = now.Add(time.Minute)
		k.add(types.UID(string(rune('a'+n%26))+now.String()), now)
	}
	assert.Less(t, len(k.since), 200)
}

// Thousands may have ended lately: what is kept of each is what tells what may be left.
func TestLittleIsKeptOfATransactionThatHasEnded(t *testing.T) {
	running := fixture.Transaction("a", "b")
	running.Spec.Changes[0].Content = &runtime.RawExtension{Raw: []byte(`{"data": {"k": "v"}}`)}
	running.Spec.Changes[1].When = "object.x == 1"
	assert.Same(t, running, keptOf(running).transaction(), "it goes on")
	ended := running.DeepCopy()
	ended.Status = api.TransactionStatus{
		Phase: api.PhaseRolledBack, Version: 7, RollbackRef: &api.RollbackRef{}, Revision: 3, RevisionDigest: "d",
		Conditions: []metav1.Condition{{Type: api.ConditionReady}},
		Items: []api.Item{
			{Name: "a", Target: api.Target{Name: "a"}, Resource: "configmaps", State: api.ItemRolledBack, LockLease: "n/l", Message: "long"},
			{Name: "b", Target: api.Target{Name: "b"}, State: api.ItemSkipped},
		},
	}
	ended.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}

	noon := metav1.NewTime(time.Date(2030, 1, 2, 12, 0, 0, 0, time.Local))
	ended.Spec.LockTimeout, ended.DeletionTimestamp, ended.Status.CompletionTime = ptr.To(api.Duration("90s")), &noon, &noon

	want := &api.Transaction{ObjectMeta: metav1.ObjectMeta{
		Namespace: ended.Namespace, Name: ended.Name, UID: ended.UID, ResourceVersion: ended.ResourceVersion, DeletionTimestamp: &noon,
	}}
	want.SetGroupVersionKind(api.Kind)
	want.Spec.LockTimeout = ptr.To(api.Duration("90s"))
	want.Spec.Changes = []api.Change{{}, {When: "object.x == 1"}}
	want.Status = api.TransactionStatus{
		Phase: api.PhaseRolledBack, Version: 7, RollbackRef: &api.RollbackRef{}, Revision: 3, RevisionDigest: "d", CompletionTime: &noon,
		Items: []api.Item{
			{Target: api.Target{Name: "a"}, Resource: "configmaps", State: api.ItemRolledBack, LockLease: "n/l"},
			{Target: api.Target{Name: "b"}, State: api.ItemSkipped},
		},
	}
	assert.Equal(t, want, keptOf(ended).transaction())

	memories := New(clocktesting.NewFakeClock(noon.Time))
	memories.Recall(ended)
	require.Equal(t, 1, memories.Len())
	for _, e := range memories.entries {
		assert.Nil(t, e.txn.whole)
		assert.Nil(t, e.txn.transaction().Spec.Changes[0].Content)
	}
}

// A run notes what concerns its Transaction, and never sees what another has noted.
func TestAMemoryIsOfOneTransaction(t *testing.T) {
	one, other := fixture.Transaction("a"), fixture.Transaction("a")
	other.UID, other.Name = "another", "another"
	memories := New(clocktesting.NewFakeClock(fixture.Start))
	m, o := memories.Of(one), memories.Of(other)
	m.Failed()
	m.Doubt()
	assert.EqualValues(t, 1, m.Failures())
	assert.Positive(t, m.DoubtLeft(time.Second))
	assert.Zero(t, o.Failures())
	assert.Zero(t, o.DoubtLeft(time.Second))
	assert.Equal(t, 2, memories.Len())

	forgotten := memories.Forget(func(name types.NamespacedName) bool { return name.Name == one.Name })
	assert.Equal(t, []*api.Transaction{one}, forgotten)
	o.Forget()
	assert.Zero(t, memories.Len())
}
