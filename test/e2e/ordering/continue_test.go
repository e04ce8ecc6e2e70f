package ordering

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// A change that is not ready in time, one that exists and one that a policy refuses keep only what
// depends on them from being made. Nothing is rolled back, and who owns the fields is as after a
// commit.
func TestWhatDoesNotDependOnAFailureIsMade(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: there}, data: {a: old}}`)
	e.Submit("part", `
onFailure: Continue
timeout: 2m
changes:
- {name: exists, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: there}, content: {data: {a: new}}}
- {name: over, type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: there}, content: {data: {b: new}}}
- name: unready
  type: Create
  target: {apiVersion: v1, kind: ConfigMap, name: unready}
  content: {data: {a: b}}
  readyWhen: {expression: object.data.a == "c", timeout: 2s}
- name: reader
  type: Create
  target: {apiVersion: v1, kind: Pod, name: reader}
  content: {spec: {containers: [{name: main, image: example.com/main, envFrom: [{configMapRef: {name: unready}}]}]}}
- {name: apart, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: apart}, content: {data: {a: b}}}
`)
	txn := e.Ended("part")
	require.Equal(t, api.PhaseFailed, txn.Status.Phase)
	want := []struct {
		state  api.ItemState
		reason string
		failed bool
	}{
		{api.ItemSkipped, errclass.AlreadyExists, true},
		{api.ItemSkipped, "DependencyFailed", false},
		{api.ItemCommitted, errclass.ReadyTimeout, true},
		{api.ItemSkipped, "DependencyFailed", false},
		{api.ItemCommitted, "", false},
	}
	for i, item := range txn.Status.Items {
		assert.Equal(t, want[i].state, item.State, "%s: %s", item.Name, item.Message)
		assert.Equal(t, want[i].reason, item.Reason, item.Name)
		assert.Equal(t, want[i].failed, item.Failed, item.Name)
	}
	assert.Equal(t, "2/5", txn.Status.Progress)
	assert.Equal(t, "exists", txn.Status.FailedItem)
	status, reason, message := harness.Condition(txn, api.ConditionReady)
	assert.Equal(t, string(metav1.ConditionFalse), status)
	assert.Equal(t, errclass.AlreadyExists, reason)
	assert.Contains(t, message, "2/5 changes are in effect, and nothing is rolled back, because spec.onFailure is Continue; failed: items exists, unready; not made: items over, reader; ")
	require.NotNil(t, e.Object("ConfigMap/apart"))
	require.NotNil(t, e.Object("ConfigMap/unready"))
	for _, entry := range e.Object("ConfigMap/there").GetManagedFields() {
		assert.NotContains(t, entry.Manager, "janus", "nothing of it was touched")
	}
	e.NothingLeft("part")
}
