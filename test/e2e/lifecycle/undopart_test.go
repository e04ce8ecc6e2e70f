package lifecycle

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/revision"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// inPart makes some of its changes: one is refused when it is sent, one before, one is not ready, and one
// depends on what is refused.
const inPart = `{revisionHistoryLimit: 10, onFailure: Continue, changes: [
  {name: patch, target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2", added: "2"}}},
  {name: refused, target: {apiVersion: v1, kind: ConfigMap, name: refused-c}, type: Create, content: {data: {version: "2"}}},
  {name: there, target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Create, content: {data: {version: "2"}}},
  {name: after, target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {version: "3"}}},
  {name: unready, target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Create, content: {data: {version: "2"}}, readyWhen: {expression: object.data.version == "3", timeout: 1s}},
  {name: drop, target: {apiVersion: v1, kind: ConfigMap, name: dropped}, type: Delete}]}`

const toDrop = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: dropped}, data: {version: \"1\"}}"

// What has failed with changes in effect is remembered with these, and they are undone, by name and
// with all others since a revision. What was not made is left as it is.
func TestWhatWasMadeInPartIsUndone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB + toDrop)
	e.Refuse()
	e.Start()
	all := []string{"a", "b", "made", "dropped", "refused-c"}
	before, owners, others := dataOf(e, all...), ownersOf(t, e, "a"), e.Object("ConfigMap/b").GetResourceVersion()
	part := e.Run("part", inPart)
	require.Equal(t, api.PhaseFailed, part.Status.Phase, harness.Describe(part))
	after := dataOf(e, all...)
	assert.Equal(t, "3/6", part.Status.Progress)
	assert.Equal(t, api.ItemRejected, part.Status.Items[1].State, "it was sent")
	require.Equal(t, int64(1), part.Status.Revision)
	e.NothingLeft("part")
	kept := revisionsOf(t, e)
	require.Len(t, kept, 1)
	var of revision.Revision
	require.NoError(t, json.Unmarshal(kept[0].Data.Raw, &of))
	var names []string
	for _, item := range of.Items {
		names = append(names, item.Name)
	}
	assert.Equal(t, []string{"patch", "unready", "drop"}, names, "what is in effect, and nothing else")

	plan := e.Run("plan", `{dryRun: true, undoOf: {name: part}}`)
	require.Equal(t, api.PhasePlanned, plan.Status.Phase, harness.Describe(plan))
	undo := e.Run("undo", `{revisionHistoryLimit: 10, undoOf: {name: part}}`)
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	assert.Equal(t, []string{"drop Create dropped", "unready Delete made", "patch Update a"}, undoneBy(undo))
	assert.Equal(t, undoneBy(plan), undoneBy(undo))
	assert.Equal(t, before, dataOf(e, all...))
	assert.Equal(t, owners, ownersOf(t, e, "a"), "the fields belong to those who had set them")
	assert.Equal(t, others, e.Object("ConfigMap/b").GetResourceVersion(), "what was not made is not touched")
	e.NothingLeft("undo")

	redo := e.Run("redo", `{revisionHistoryLimit: 10, undoOf: {revision: 2}}`)
	require.Equal(t, api.PhaseCommitted, redo.Status.Phase, harness.Describe(redo))
	assert.Equal(t, after, dataOf(e, all...))
	commit(t, e, "more", "Patch a 4")
	whole := e.Run("whole", `{undoOf: {toRevision: 0}}`)
	require.Equal(t, api.PhaseCommitted, whole.Status.Phase, harness.Describe(whole))
	assert.Len(t, whole.Status.Undoing.Earlier, 3)
	assert.Equal(t, before, dataOf(e, all...))
	assert.Equal(t, owners, ownersOf(t, e, "a"))
	e.NothingLeft("whole")
}

// It takes the place of an older one in the history, and is forgotten with its before-images like any other.
func TestWhatWasMadeInPartIsForgotten(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB + toDrop)
	e.Refuse()
	e.Start()
	e.Run("one", setTo("7", 1))
	part := e.Run("part", `{revisionHistoryLimit: 1, onFailure: Continue, changes: [
  {target: {apiVersion: v1, kind: ConfigMap, name: dropped}, type: Delete},
  {target: {apiVersion: v1, kind: ConfigMap, name: refused-c}, type: Create, content: {data: {version: "2"}}}]}`)
	require.Equal(t, api.PhaseFailed, part.Status.Phase, harness.Describe(part))
	require.NotNil(t, part.Status.RollbackRef)
	assert.Equal(t, []string{"janus-revision-2"}, namesOf(revisionsOf(t, e)))
	e.Run("two", setTo("8", 1))
	assert.Equal(t, []string{"janus-revision-3"}, namesOf(revisionsOf(t, e)))
	undo := e.Run("undo", "undoOf: {name: part}")
	require.Equal(t, api.PhaseFailed, undo.Status.Phase, harness.Describe(undo))
	assert.Contains(t, harness.Describe(undo), errclass.NotRemembered)
	assert.Nil(t, e.Object("ConfigMap/"+part.Status.RollbackRef.Name), "its before-images are gone")

	none := e.Run("none", `{revisionHistoryLimit: 5, onFailure: Continue, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: refused-c}, type: Create, content: {data: {version: "2"}}}]}`)
	require.Equal(t, api.PhaseFailed, none.Status.Phase, harness.Describe(none))
	assert.Nil(t, none.Status.RollbackRef, "nothing is in effect")
	assert.Equal(t, []string{"janus-revision-3"}, namesOf(revisionsOf(t, e)))
	e.NothingLeft("none")
}

// What another client has changed since stays, and is named.
func TestAnUndoOfWhatWasMadeInPartOverwritesNobody(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB + toDrop)
	e.Refuse()
	e.Start()
	require.Equal(t, api.PhaseFailed, e.Run("part", inPart).Status.Phase)
	e.Merge("person", "ConfigMap/a", `{"data": {"version": "9"}}`)
	now := dataOf(e, "a", "made", "dropped")
	undo := e.Run("undo", "undoOf: {name: part}")
	require.Equal(t, api.PhaseFailed, undo.Status.Phase, harness.Describe(undo))
	assert.Contains(t, harness.Describe(undo), `.data.version of person, now "9", was "1"`)
	assert.Equal(t, now, dataOf(e, "a", "made", "dropped"))
}
