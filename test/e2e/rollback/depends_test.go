package rollback

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// release is a ConfigMap, a Deployment whose Pods mount it, and something that never is ready. on says what each
// depends on.
func release(onWeb, onGate string) string {
	return `
changes:
  - name: cfg
    target: {apiVersion: v1, kind: ConfigMap, name: cfg}
    type: Create
    content: {data: {a: b}}
  - name: web
    target: {apiVersion: apps/v1, kind: Deployment, name: web}
    type: Create` + onWeb + `
    content:
      spec:
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec:
            containers: [{name: web, image: example.com/web}]
            volumes: [{name: cfg, configMap: {name: cfg}}]
  - name: gate
    target: {apiVersion: v1, kind: ConfigMap, name: gate}
    type: Create` + onGate + `
    content: {data: {a: b}}
    readyWhen: {expression: "has(object.data.open)", timeout: 4s}
`
}

// dependencies are the two ways to say what depends on what.
var dependencies = map[string]string{
	"by dependsOn":            release("\n    dependsOn: [cfg]", "\n    dependsOn: [web]"),
	"by references in a list": release("", ""),
}

// annotated runs the Transaction, and a person annotates the Deployment while the gate is waited for.
func annotated(t *testing.T, spec string) *harness.Env {
	t.Helper()
	e := harness.New(t)
	e.Start(harness.WithPolicy(unaided))
	e.Submit("txn", spec)
	e.Await("txn", "waiting for the gate", func(t *api.Transaction) bool {
		return len(t.Status.Items) == 3 && t.Status.Items[2].State == api.ItemCommitted
	})
	e.Merge("person", "apps/v1 Deployment/web", `{"metadata":{"annotations":{"note":"do not touch"}}}`)
	return e
}

func TestWhatAKeptObjectDependsOnIsKept(t *testing.T) {
	t.Parallel()
	for what, spec := range dependencies {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e := annotated(t, spec)
			txn := e.Ended("txn")

			require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
			assert.NotNil(t, e.Object("ConfigMap/cfg"), "the Pods of the Deployment mount it")
			assert.NotNil(t, e.Object("apps/v1 Deployment/web"))
			assert.Nil(t, e.Object("ConfigMap/gate"))
			cfg, web, gate := txn.Status.Items[0], txn.Status.Items[1], txn.Status.Items[2]
			assert.Equal(t, []string{"cfg"}, web.DependsOn)
			assert.Equal(t, errclass.FieldConflict, web.Reason, harness.Describe(txn))
			assert.Equal(t, api.ItemRolledBack, gate.State)
			assert.Equal(t, api.ItemUnresolved, cfg.State)
			assert.Equal(t, errclass.Blocked, cfg.Reason)
			assert.Equal(t, "web", cfg.BlockedBy)
			says := fmt.Sprintf("ConfigMap %s/cfg stays as the change made it: item web (Deployment %[1]s/web), which depends on it, is not rolled back", e.Namespace)
			assert.Contains(t, cfg.Message, says)
			event := e.AwaitEvent("txn", errclass.Blocked)
			assert.Contains(t, event.Note, says)
			e.NothingLeft("txn")

			// The person lets the Deployment go, and asks for a recovery.
			require.NoError(t, e.Kube.AppsV1().Deployments(e.Namespace).Delete(context.Background(), "web", metav1.DeleteOptions{}))
			e.Merge("person", "backup.janus.io/v1alpha1 Transaction/txn", fmt.Sprintf(`{"metadata":{"annotations":{%q:"now"}}}`, api.RecoverAnnotation))
			txn = e.Await("txn", "recovered", func(t *api.Transaction) bool { return t.Status.HandledRecovery == "now" && t.Status.Phase.Terminal() })
			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			assert.Nil(t, e.Object("ConfigMap/cfg"))
			assert.Empty(t, txn.Status.Items[0].BlockedBy)
			e.NothingLeft("txn")
		})
	}
}

// An undo deletes the Deployment first, and then the ConfigMap. When it is rolled back and the ConfigMap cannot be
// made again, the Deployment that needs it is not made again either.
func TestAnUndoThatIsRolledBackLeavesWhatNeedsWhatIsMissing(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start(harness.WithPolicy(unaided), harness.Stepwise(), harness.Acting(harness.Around{Do: func(txn string, item int) {
		if txn == "undo" && item == 2 {
			e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: cfg}, data: {of: another}}")
			e.Merge("person", "backup.janus.io/v1alpha1 Transaction/undo", `{"spec":{"cancel":"Rollback"}}`)
		}
	}}))
	first := "\nchanges:\n"
	for _, name := range []string{"first", "second"} {
		first += "  - {name: " + name + ", target: {apiVersion: v1, kind: ConfigMap, name: " + name + "}, type: Create, content: {data: {a: b}}}\n"
	}
	whole := release("", "")
	txn := e.Run("txn", "revisionHistoryLimit: 2"+first+whole[strings.Index(whole, "  - name: cfg"):strings.Index(whole, "  - name: gate")])
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))

	undo := e.Run("undo", "undoOf: {name: txn}")

	require.Equal(t, api.PhaseFailed, undo.Status.Phase, harness.Describe(undo))
	web, cfg := undo.Status.Items[0], undo.Status.Items[1]
	assert.Equal(t, []string{"web"}, cfg.DependsOn, "it was undone because web was")
	assert.Equal(t, errclass.AlreadyExists, cfg.Reason, harness.Describe(undo))
	assert.Equal(t, errclass.Blocked, web.Reason, harness.Describe(undo))
	assert.Equal(t, "cfg", web.BlockedBy)
	assert.Equal(t, api.ItemRolledBack, undo.Status.Items[2].State)
	assert.Equal(t, "another", e.Value("ConfigMap/cfg", "data", "of"))
	assert.Nil(t, e.Object("apps/v1 Deployment/web"))
	e.NothingLeft("undo")
}
