package rollback

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// owned makes a ConfigMap that another ConfigMap owns.
func owned(e *harness.Env) {
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}")
	uid := string(e.Object("ConfigMap/owner").GetUID())
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: " + uid + "}]}, data: {a: b}}")
}

func TestADeletedObjectWhoseOwnerIsThereIsRecreated(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	owned(e)
	e.Refuse()
	e.Start()
	before := e.Object("ConfigMap/owned")

	txn := e.Run("delete-owned", `
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: owned}
    type: Delete
`+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(before, "ConfigMap/owned")
	e.NothingLeft("delete-owned")
}

// The owner comes back under a new uid, and what it owned with a reference to that,
// whichever of them the Transaction deletes first.
func TestADeletedObjectWhoseOwnerWasRecreatedBelongsToTheNewOne(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{"child first": {"owned", "owner"}, "owner first": {"owner", "owned"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			owned(e)
			e.Refuse()
			e.Start()
			owner, child := e.Object("ConfigMap/owner"), e.Object("ConfigMap/owned")

			txn := e.Run("delete-both", `
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: `+order[0]+`}
    type: Delete
  - target: {apiVersion: v1, kind: ConfigMap, name: `+order[1]+`}
    type: Delete
`+fixture.RefusedAtCommit)

			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			e.Same(owner, "ConfigMap/owner")
			uid := e.Object("ConfigMap/owner").GetUID()
			assert.NotEqual(t, owner.GetUID(), uid)
			want, err := fieldmerge.Reown(child, func(types.UID) types.UID { return uid })
			require.NoError(t, err)
			e.Same(want, "ConfigMap/owned")
			e.NothingLeft("delete-both")
		})
	}
}

// The owner is gone for good: the object is made without it, and RolledBack would be
// a lie.
func TestADeletedObjectWhoseOwnerIsGoneIsMadeWithoutItAndReported(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	owned(e)
	e.Refuse()
	// The compensation is sent again once it is on record that the object was created.
	gone := sync.OnceValue(func() error {
		return e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), "owner", metav1.DeleteOptions{})
	})
	e.Start(harness.Acting(harness.Around{Undo: func(_ string, item int) {
		if item == 0 {
			assert.NoError(t, gone())
		}
	}}))

	txn := e.Run("delete-owned", `
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: owned}
    type: Delete
`+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	_, reason, message := harness.Condition(txn, api.ConditionReady)
	assert.Equal(t, "RollbackIncomplete", reason)
	assert.Contains(t, message, "its owner ConfigMap owner")
	assert.Equal(t, errclass.OwnerGone, txn.Status.Items[0].Reason)
	assert.Equal(t, api.ItemUnresolved, txn.Status.Items[0].State)
	assert.Empty(t, e.Object("ConfigMap/owned").GetOwnerReferences())
	e.NothingLeft("delete-owned")
}
