package random

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// The tests of this file are inputs that fuzzing has found, one each.

// Null in place of the metadata once ended janusd, and with it every Transaction.
func TestContentWhoseMetadataIsNull(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	e.Apply(fixture.AB)
	a, b := e.Object("ConfigMap/a"), e.Object("ConfigMap/b")
	e.Start()
	spec := `
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {metadata: null, data: {version: "2"}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Update, content: {metadata: null, data: {version: "2"}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: c}, type: Create, content: {metadata: null, data: {version: "2"}}}
`
	txn := e.Run("bad", spec+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(a, "ConfigMap/a")
	e.Same(b, "ConfigMap/b")
	e.Same(nil, "ConfigMap/c")

	txn = e.Run("good", spec)

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	for _, name := range []string{"a", "b", "c"} {
		assert.Equal(t, "2", e.Value("ConfigMap/"+name, "data", "version"))
	}
	assert.Equal(t, "<absent>", e.Value("ConfigMap/b", "data", "other"), "an Update replaces")
	e.NothingLeft("good")
}

// client-go refuses such a name without asking, which was once taken for a server
// that does not answer.
func TestATargetWhoseNameIsPartOfAPath(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	for i, change := range []string{"name: .}, type: Delete", "name: ..}, type: Create, content: {}"} {
		began := time.Now()

		txn := e.Run(fmt.Sprint("txn-", i), "changes: [{target: {apiVersion: v1, kind: ConfigMap, "+change+"}]")

		assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
		_, reason, message := harness.Condition(txn, api.ConditionReady)
		assert.Equal(t, errclass.Invalid, reason)
		assert.Contains(t, message, "no object can have the name")
		assert.Less(t, time.Since(began), 10*time.Second)
	}
}

// An apply takes away what its manager owns and does not set. A client that makes
// the manager of an item own a field between prepare and commit would have Janus
// remove the field, and no rollback would know of it.
func TestAnItemsManagerThatSomebodyHasMadeOwnFields(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start(harness.Acting(harness.Around{Do: func(name string, item int) {
		if item != 0 {
			return
		}
		manager := fmt.Sprintf("janus-%s-0", string(e.Transaction(name).UID)[:8])
		e.Merge("forger", "ConfigMap/a", `{"metadata":{"managedFields":[{"manager":"`+manager+`","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:version":{},"f:other":{}}}}]}}`)
	}}))

	txn := e.Run("txn", fixture.PatchAB)

	assert.Equal(t, map[string]any{"version": "1", "other": "1"}, e.Object("ConfigMap/a").Object["data"])
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.Drifted, txn.Status.Items[0].Reason)
	assert.Contains(t, txn.Status.Items[0].Message, "the field manager of this item")
	e.NothingLeft("txn")
}

// Anyone who takes the owner off a before-image must not make our finalizer stay.
func TestABeforeImageWithoutAnOwner(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]string{"committed": "", "rolledback": fixture.RefusedAtCommit} {
		e := harness.New(t)
		e.Refuse()
		e.Apply(fixture.AB)
		e.Start(harness.Acting(harness.Around{Do: func(_ string, item int) {
			if item == 1 {
				e.Merge("person", "ConfigMap/"+name+"-rollback", `{"metadata":{"ownerReferences":null}}`)
			}
		}}))

		txn := e.Run(name, fixture.PatchAB+last)

		assert.True(t, strings.EqualFold(name, string(txn.Status.Phase)), harness.Describe(txn))
		left, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=janus,janus.io/transaction=" + name})
		require.NoError(t, err)
		for _, cm := range left.Items {
			assert.Empty(t, cm.Finalizers)
		}
		assert.Len(t, left.Items, map[string]int{"committed": 0, "rolledback": 1}[name])
	}
}

// Whose record is what would be deleted?
func TestATransactionThatDeletesItself(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	e.Start()
	for name, target := range map[string]string{
		"itself":   "{apiVersion: backup.janus.io/v1alpha1, kind: Transaction, name: itself}",
		"its-kind": "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: transactions.backup.janus.io}",
	} {
		txn := e.Run(name, "changes: [{target: "+target+", type: Delete, acceptLoss: true}]")

		assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
		_, reason, message := harness.Condition(txn, api.ConditionReady)
		assert.Equal(t, errclass.Irreversible, reason)
		assert.Contains(t, message, "the Transaction itself")
		e.NothingLeft(name)
	}
}
