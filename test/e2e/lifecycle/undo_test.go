package lifecycle

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

const allTypes = `{revisionHistoryLimit: 10, changes: [
  {name: patch, target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2", added: "2"}}},
  {name: update, target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Update, content: {data: {version: "2"}}},
  {name: again, target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {version: "3"}}},
  {name: create, target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Create, content: {data: {version: "2"}}},
  {name: adapt, target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Patch, content: {data: {version: "3"}}},
  {name: drop, target: {apiVersion: v1, kind: ConfigMap, name: dropped}, type: Delete},
  {name: absent, target: {apiVersion: v1, kind: ConfigMap, name: never-there}, type: Delete},
  {name: shift, target: {apiVersion: v1, kind: ConfigMap, name: moved}, type: Patch, content: {data: {version: "2"}}},
  {name: remove, target: {apiVersion: v1, kind: ConfigMap, name: moved}, type: Delete}]}`

// dataOf returns the data of ConfigMaps; <nil> for one that is not there.
func dataOf(e *harness.Env, names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		var content any
		if obj := e.Object("ConfigMap/" + name); obj != nil {
			content = obj.Object["data"]
		}
		out[name] = fmt.Sprint(content)
	}
	return out
}

// ownersOf names who owns a value of data.
func ownersOf(t *testing.T, e *harness.Env, name string) (managers []string) {
	t.Helper()
	obj := e.Object("ConfigMap/" + name)
	require.NotNil(t, obj)
	for _, entry := range obj.GetManagedFields() {
		managers = append(managers, entry.Manager)
	}
	return managers
}

// An undo reverses every type of change, and can be undone itself.
func TestACommittedTransactionIsUndoneAndThatIsUndone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: dropped}, data: {version: \"1\"}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: moved}, data: {version: \"1\"}}")
	e.Start()
	all := []string{"a", "b", "made", "dropped", "moved", "never-there"}
	before, owners := dataOf(e, all...), ownersOf(t, e, "a")
	txn := e.Run("release", allTypes)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	after := dataOf(e, all...)
	require.NotEqual(t, before, after)

	undo := e.Run("undo", `{revisionHistoryLimit: 10, undoOf: {revision: 1}}`)
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	assert.Equal(t, before, dataOf(e, all...))
	assert.Equal(t, owners, ownersOf(t, e, "a"), "the fields belong to those who had set them")
	assert.NotContains(t, e.Object(harness.TransactionRef + "undo").Object["spec"], "changes", "what follows from undoOf is not stored")
	assert.Equal(t, "8/8", undo.Status.Progress)
	assert.Equal(t, &api.Undoing{UndoneRevision: api.UndoneRevision{Name: "release", UID: txn.UID, Revision: 1, Digest: txn.Status.RevisionDigest}}, undo.Status.Undoing)
	var did []string
	for _, item := range undo.Status.Items {
		did = append(did, item.Name+" "+string(item.Type))
	}
	assert.Equal(t, []string{"remove Create", "shift Update", "drop Create", "adapt Update", "create Delete", "again Update", "update Update", "patch Update"}, did)

	redo := e.Run("redo", `{revisionHistoryLimit: 10, undoOf: {name: undo}}`)
	require.Equal(t, api.PhaseCommitted, redo.Status.Phase, harness.Describe(redo))
	assert.Equal(t, after, dataOf(e, all...))
	assert.Equal(t, int64(3), redo.Status.Revision)
	for _, name := range []string{"release", "undo", "redo"} {
		e.NothingLeft(name)
	}
}

// An undo can be seen before it is made, with what stands in its way.
func TestAnUndoIsPlanned(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start()
	require.Equal(t, api.PhaseCommitted, e.Run("release", "revisionHistoryLimit: 10"+fixture.PatchAB).Status.Phase)
	now := dataOf(e, "a", "b")

	plan := e.Run("plan", `{dryRun: true, undoOf: {name: release}}`)
	require.Equal(t, api.PhasePlanned, plan.Status.Phase, harness.Describe(plan))
	assert.Equal(t, now, dataOf(e, "a", "b"), "nothing is changed")
	var would []string
	for _, item := range plan.Status.Items {
		for _, field := range item.Plan.Fields {
			would = append(would, fmt.Sprintln(item.Type, item.Target.Name, field.Field, field.Before, field.After))
		}
	}
	assert.Equal(t, []string{"Update b .data.version \"2\" \"1\"\n", "Update a .data.version \"2\" \"1\"\n"}, would)
	assert.Zero(t, plan.Status.Revision)
	e.NothingLeft("plan")

	e.Merge("person", "ConfigMap/a", `{"data": {"version": "9"}}`)
	refused := e.Run("refused", `{dryRun: true, undoOf: {name: release}}`)
	require.Equal(t, api.PhaseFailed, refused.Status.Phase, harness.Describe(refused))
	assert.Contains(t, harness.Describe(refused), `.data.version of person, now "9", was "1"`)
	assert.Equal(t, map[string]string{"a": "map[other:1 version:9]", "b": "map[other:1 version:2]"}, dataOf(e, "a", "b"))
}

// What another client has changed since stays, and all of it is named before anything is done,
// unless it is to be overwritten.
func TestAnUndoDoesNotOverwriteWhatHasComeAfter(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start()
	require.Equal(t, api.PhaseCommitted, e.Run("release", "revisionHistoryLimit: 10"+fixture.PatchAB).Status.Phase)
	e.Merge("person", "ConfigMap/a", `{"data": {"version": "9", "other": "9"}}`)
	require.Equal(t, api.PhaseCommitted, e.Run("later", `{changes: [{target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {version: "8"}}}]}`).Status.Phase)

	undo := e.Run("undo", `{undoOf: {name: release}}`)
	require.Equal(t, api.PhaseFailed, undo.Status.Phase, harness.Describe(undo))
	message := harness.Describe(undo)
	assert.Contains(t, message, errclass.FieldConflict)
	for _, part := range []string{"ConfigMap " + e.Namespace + "/a", ".data.version of person", `now "9", was "1"`, "ConfigMap " + e.Namespace + "/b", "nothing was changed"} {
		assert.Contains(t, message, part)
	}
	assert.NotContains(t, message, ".data.other", "the Transaction has not set it")
	assert.Equal(t, map[string]string{"a": "map[other:9 version:9]", "b": "map[other:1 version:8]"}, dataOf(e, "a", "b"))
	e.NothingLeft("undo")

	forced := e.Run("forced", `{conflictPolicy: Force, undoOf: {name: release}}`)
	require.Equal(t, api.PhaseCommitted, forced.Status.Phase, harness.Describe(forced))
	assert.Equal(t, map[string]string{"a": "map[other:9 version:1]", "b": "map[other:1 version:1]"}, dataOf(e, "a", "b"))
	assert.Contains(t, forced.Status.Items[1].Warnings[0], ".data.version")
}

func TestAnUndoOfACreationKeepsWhatOthersHaveMadeOfIt(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	create := `{revisionHistoryLimit: 10, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Create, content: {data: {version: "1"}}}]}`
	require.Equal(t, api.PhaseCommitted, e.Run("release", create).Status.Phase)
	e.Merge("person", "ConfigMap/made", `{"data": {"theirs": "1"}}`)
	undo := e.Run("undo", `{undoOf: {name: release}}`)
	require.Equal(t, api.PhaseFailed, undo.Status.Phase)
	assert.Contains(t, harness.Describe(undo), ".data.theirs of person")

	require.NoError(t, e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), "made", metav1.DeleteOptions{}))
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: made}, data: {version: "1"}}`)
	foreign := e.Run("foreign", `{conflictPolicy: Force, undoOf: {name: release}}`)
	require.Equal(t, api.PhaseFailed, foreign.Status.Phase)
	assert.Contains(t, harness.Describe(foreign), "it is not the object that was created")
	assert.NotNil(t, e.Object("ConfigMap/made"))
}

// Admission gives a Pod a volume with a name by chance: that of the dry run is not that of the Pod.
func TestTheCreationOfAPodIsRolledBackAndUndone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	const create = "{target: {apiVersion: v1, kind: Pod, name: made}, type: Create, content: {spec: {containers: [{name: a, image: 'registry.example/a:1'}]}}}"
	require.Equal(t, api.PhaseCommitted, e.Run("release", "{revisionHistoryLimit: 10, changes: ["+create+"]}").Status.Phase)
	require.Contains(t, fmt.Sprint(e.Object("v1 Pod/made").Object["spec"]), "kube-api-access-")
	undo := e.Run("undo", "{undoOf: {name: release}}")
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	e.Until("the Pod is gone", func() bool { return e.Object("v1 Pod/made") == nil })

	// Another client takes the field owners off, so that values alone tell who has written the Pod.
	e.Submit("lost", "changes:\n  - "+create+`
  - {target: {apiVersion: v1, kind: ConfigMap, name: after}, type: Create, content: {data: {a: b}}, readyWhen: {expression: "has(object.data.go)", timeout: 5s}}
`)
	e.Await("lost", "the Pod is made", func(txn *api.Transaction) bool {
		return len(txn.Status.Items) > 0 && txn.Status.Items[0].State == api.ItemCommitted
	})
	e.Merge("person", "v1 Pod/made", `{"metadata": {"managedFields": [{}]}}`)
	lost := e.Ended("lost")
	assert.Equal(t, api.PhaseRolledBack, lost.Status.Phase, harness.Describe(lost))
	assert.Nil(t, e.Object("v1 Pod/made"))
}

// An undo that fails half-way is rolled back like any other.
func TestAnUndoIsRolledBackIfItFails(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	require.Equal(t, api.PhaseCommitted, func() api.Phase {
		j := e.Start()
		defer j.Stop()
		return e.Run("release", "revisionHistoryLimit: 10"+fixture.PatchAB).Status.Phase
	}())
	after := dataOf(e, "a", "b")
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.Committed(1), func() {
		e.Merge("person", "ConfigMap/a", `{"data": {"version": "9"}}`)
	})}))
	undo := e.Run("undo", `{undoOf: {revision: 1}}`)
	require.Equal(t, api.PhaseRolledBack, undo.Status.Phase, harness.Describe(undo))
	after["a"] = "map[other:1 version:9]"
	assert.Equal(t, after, dataOf(e, "a", "b"))
	e.NothingLeft("undo")
}

func TestWhatIsNotRememberedIsNotUndone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start()
	e.Run("plain", setTo("2", 0))
	e.Run("old", setTo("3", 1))
	e.Run("new", setTo("4", 1))
	e.Apply("{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: janus-revision-9}, revision: 9, data: {made-by: person}}")
	for of, says := range map[string]string{
		"{name: plain}": "Committed and is not remembered", "{name: old}": "janus-revision-1: it does not exist",
		"{revision: 7}": "janus-revision-7: it does not exist", "{name: nobody}": "it does not exist", "{revision: 9}": "janus-revision-9",
	} {
		name := "undo-" + string(rune('a'+len(says)%26)) + fmt.Sprint(len(of))
		undo := e.Run(name, `{undoOf: `+of+`}`)
		assert.Equal(t, api.PhaseFailed, undo.Status.Phase, of)
		assert.Contains(t, harness.Describe(undo), says, of)
		e.NothingLeft(name)
	}
}

// The content of a Secret is in Secrets alone, also on its way back.
func TestAnUndoKeepsTheContentOfSecretsInSecrets(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: before-canary}}`)
	e.Start()
	e.Run("change", `{revisionHistoryLimit: 5, changes: [{target: {apiVersion: v1, kind: Secret, name: s}, type: Delete}]}`)
	require.Nil(t, e.Object("Secret/s"))
	undo := e.Run("undo", `{revisionHistoryLimit: 5, undoOf: {name: change}}`)
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	assert.Equal(t, "YmVmb3JlLWNhbmFyeQ==", e.Value("Secret/s", "data", "password"))
	assert.Nil(t, e.Object("ConfigMap/undo-rollback"))
	for _, text := range []string{fmt.Sprint(e.Object("backup.janus.io/v1alpha1 Transaction/undo")), string(revisionsOf(t, e)[1].Data.Raw)} {
		assert.NotContains(t, text, "canary")
		assert.NotContains(t, text, "YmVmb3JlLWNhbmFyeQ")
	}
}

// Whatever version names it, it is one object.
func TestAnUndoOfChangesOfOneObjectByTwoVersions(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {maxReplicas: 3, minReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}}")
	e.Start()
	change := func(version string, most int) string {
		return fmt.Sprintf("  - {target: {apiVersion: autoscaling/%s, kind: HorizontalPodAutoscaler, name: h}, type: Patch, content: {spec: {maxReplicas: %d}}}\n", version, most)
	}

	e.Run("release", "revisionHistoryLimit: 10\nchanges:\n"+change("v1", 5)+change("v2", 6))
	undo := e.Run("undo", "{undoOf: {name: release}}")

	assert.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	most, _, _ := unstructured.NestedInt64(e.Object("autoscaling/v2 HorizontalPodAutoscaler/h").Object, "spec", "maxReplicas")
	assert.Equal(t, int64(3), most)
}
