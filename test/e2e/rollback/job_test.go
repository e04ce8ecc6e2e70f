package rollback

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// The template of a Job can be changed while it is suspended, and its controller has stopped it.
const (
	begins = `
changes:
- {name: template, type: Patch, target: {apiVersion: batch/v1, kind: Job, name: work}, content: {spec: {template: {metadata: {labels: {a: new}}, spec: {nodeSelector: {disk: ssd}}}}}}
- {name: begin, type: Patch, target: {apiVersion: batch/v1, kind: Job, name: work}, content: {spec: {suspend: false}}, readyWhen: {expression: "has(object.status.active) && object.status.active == 1", timeout: 1m}}
`
	never = `- {name: never, type: Await, target: {apiVersion: v1, kind: ConfigMap, name: never}, readyWhen: {status: Ready, timeout: 1s}}`
)

func suspendedJob(t *testing.T) (*harness.Env, func() (label, disk string, suspended bool)) {
	t.Helper()
	e := harness.New(t)
	e.Apply(`{apiVersion: batch/v1, kind: Job, metadata: {name: work}, spec: {suspend: true, template: {metadata: {labels: {a: old}}, spec: {restartPolicy: Never, containers: [{name: a, image: "registry.example/a:1"}]}}}}`)
	return e, func() (label, disk string, suspended bool) {
		job := e.Object("batch/v1 Job/work").Object
		label, _, _ = unstructured.NestedString(job, "spec", "template", "metadata", "labels", "a")
		disk, _, _ = unstructured.NestedString(job, "spec", "template", "spec", "nodeSelector", "disk")
		suspended, _, _ = unstructured.NestedBool(job, "spec", "suspend")
		return label, disk, suspended
	}
}

func TestAJobIsStoppedBeforeItsTemplateIsRolledBack(t *testing.T) {
	t.Parallel()
	e, job := suspendedJob(t)
	before := e.Object("batch/v1 Job/work")
	e.Start()
	txn := e.Run("txn", begins+never)
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	label, disk, suspended := job()
	assert.Equal(t, []any{"old", "", true}, []any{label, disk, suspended})
	e.Same(before, "batch/v1 Job/work")
	e.NothingLeft("txn")
}

// So does an undo, and a Transaction that suspends one and changes it.
func TestAJobIsStoppedBeforeItsTemplateIsChanged(t *testing.T) {
	t.Parallel()
	e, job := suspendedJob(t)
	e.Start()
	txn := e.Run("txn", "revisionHistoryLimit: 5"+begins)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	txn = e.Run("undo", "undoOf: {name: txn}")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	label, disk, suspended := job()
	assert.Equal(t, []any{"old", "", true}, []any{label, disk, suspended})

	txn = e.Run("again", begins)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	txn = e.Run("move", `
changes:
- {name: stop, type: Patch, target: {apiVersion: batch/v1, kind: Job, name: work}, content: {spec: {suspend: true}}}
- {name: template, type: Patch, target: {apiVersion: batch/v1, kind: Job, name: work}, content: {spec: {template: {spec: {nodeSelector: {disk: hdd}}}}}}
- {name: begin, type: Patch, target: {apiVersion: batch/v1, kind: Job, name: work}, content: {spec: {suspend: false}}}
`)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	label, disk, suspended = job()
	assert.Equal(t, []any{"new", "hdd", false}, []any{label, disk, suspended})
}
