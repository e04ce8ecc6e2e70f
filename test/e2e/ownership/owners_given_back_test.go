package ownership

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

const (
	sharedPolicy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: np}\nspec:\n  podSelector: {matchLabels: {app: d}}\n  policyTypes: [Ingress]\n"
	withAPort    = "  ingress: [{ports: [{port: 80}]}]\n"
	patchPolicy  = `
changes:
  - {name: np, type: Patch, target: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, name: np}, content: {spec: {podSelector: {matchLabels: {app: d}}, policyTypes: [Ingress], ingress: [{ports: [{port: 80}]}]}}}`
	labelPolicy = `
changes:
  - {name: np, type: Patch, target: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, name: np}, content: {metadata: {labels: {v: "2"}}, spec: {podSelector: {matchLabels: {app: d}}, policyTypes: [Ingress], ingress: [{ports: [{port: 80}]}]}}}`
)

// A port that its owner closes after a rollback is closed.
func TestAPortThatWasTakenWithoutAChangeIsClosedByItsOwner(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	kubectlApply(t, e, sharedPolicy+withAPort, "--server-side")
	e.Start()
	before := e.Object("networking.k8s.io/v1 NetworkPolicy/np")
	txn := e.Run("txn", labelPolicy+fixture.RefusedAtCommit)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(before, "networking.k8s.io/v1 NetworkPolicy/np")
	kubectlApply(t, e, sharedPolicy, "--server-side")
	assert.NotContains(t, e.Object("networking.k8s.io/v1 NetworkPolicy/np").Object["spec"], "ingress")
}

// To run again what is there already leaves the object as it is.
func TestATransactionThatChangesNothingLeavesTheResourceVersionAlone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	kubectlApply(t, e, sharedPolicy+withAPort, "--server-side")
	e.Start()
	before := e.Object("networking.k8s.io/v1 NetworkPolicy/np")
	committedAll(t, e.Run("txn", patchPolicy))
	assert.Equal(t, before, e.Object("networking.k8s.io/v1 NetworkPolicy/np"))
	item := e.Transaction("txn").Status.Items[0]
	assert.True(t, item.Before.Unchanged)
	assert.True(t, item.Unchanged)
}

// Of what changes nothing there is nothing to roll back, whatever others make of the object
// meanwhile.
func TestWhatHasChangedNothingIsRolledBackWithoutAWrite(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	kubectlApply(t, e, sharedPolicy+withAPort, "--server-side")
	e.Start()
	before := e.Object("networking.k8s.io/v1 NetworkPolicy/np")
	txn := e.Run("txn", patchPolicy+fixture.RefusedAtCommit)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, before, e.Object("networking.k8s.io/v1 NetworkPolicy/np"))
	assert.Equal(t, []bool{true, false, false}, []bool{txn.Status.Items[0].Unchanged, txn.Status.Items[1].Unchanged, txn.Status.Items[2].Unchanged})
	assert.Equal(t, api.ItemRolledBack, txn.Status.Items[0].State)
}

// What a Transaction has made is carried on by whom it names.
func TestWhoIsNamedAppliesWhatATransactionHasMade(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	const file = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'example.com/web:1', env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: B, value: b}]}]}}}}"
	committedAll(t, e.Run("txn", "fieldManager: gitops\nchanges:\n  - {type: Create, target: {apiVersion: apps/v1, kind: Deployment, name: web}, content: "+file+"}"))
	gitops := newOutsider(t, e, "gitops")
	_, err := gitops.apply(file, false)
	require.NoError(t, err)
	_, err = gitops.apply("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'example.com/web:1', env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}}}", false)
	require.NoError(t, err)
	assert.Nil(t, variable(e.Object(webRef), "B"))
}

// Undoing leaves owners as they were, of what was deleted too.
func TestAnUndoLeavesTheOwnersOfFieldsAsTheyWere(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	kubectlApply(t, e, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '1', y: '1'}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {x: '1'}}", "--server-side")
	kubectlApply(t, e, sharedWeb, "--server-side")
	e.Start()
	owners := map[string]map[string]string{}
	refs := []string{"ConfigMap/a", "ConfigMap/b", webRef}
	for _, ref := range refs {
		owners[ref] = ownedFields(e.Object(ref))
	}
	committedAll(t, e.Run("txn", `{revisionHistoryLimit: 10, changes: [
  {name: a, target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Update, content: {data: {x: "2"}}},
  {name: web, target: {apiVersion: apps/v1, kind: Deployment, name: web}, type: Patch, content: {spec: {template: {spec: {serviceAccountName: other}}}}},
  {name: b, target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Delete}]}`))
	committedAll(t, e.Run("undo", `{undoOf: {name: txn}}`))
	for _, ref := range refs {
		now := ownedFields(e.Object(ref))
		delete(now, "janus Apply ") // the marks of a re-created object
		assert.Equal(t, owners[ref], now, ref)
	}
}
