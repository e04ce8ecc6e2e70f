package lifecycle

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// commit runs a Transaction that is remembered, with changes of ConfigMaps such as "Patch a 2",
// which sets the version.
func commit(t *testing.T, e *harness.Env, name string, changes ...string) *api.Transaction {
	t.Helper()
	spec := "revisionHistoryLimit: 20\nchanges:\n"
	for _, text := range changes {
		var kind, target, version string
		_, err := fmt.Sscan(text+" -", &kind, &target, &version)
		require.NoError(t, err)
		content := fmt.Sprintf(", content: {data: {version: %q}}", version)
		if kind == string(api.Delete) {
			content = ""
		}
		spec += fmt.Sprintf("  - {name: %s, target: {apiVersion: v1, kind: ConfigMap, name: %s}, type: %s%s}\n", target, target, kind, content)
	}
	txn := e.Run(name, spec)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	return txn
}

func undoneBy(txn *api.Transaction) (out []string) {
	for _, item := range txn.Status.Items {
		out = append(out, fmt.Sprint(item.Name, " ", item.Type, " ", item.Target.Name))
	}
	return out
}

// All that has committed since a revision is undone by one change for each object, whatever became
// of the object in between; and that is undone like any other.
func TestANamespaceIsTakenBackToARevision(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: old}, data: {version: \"1\"}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: again}, data: {version: \"1\", mine: \"1\"}}")
	e.Start()
	all := []string{"a", "b", "old", "again", "made", "short"}
	first := commit(t, e, "one", "Patch a 2")
	before, owners, others := dataOf(e, all...), ownersOf(t, e, "a"), ownersOf(t, e, "b")
	uid := e.Object("ConfigMap/a").GetUID()

	commit(t, e, "two", "Patch a 3", "Create made 3", "Create short 3", "Delete again")
	commit(t, e, "three", "Patch a 4", "Patch made 4", "Patch old 4", "Create again 4")
	e.Run("back", "revisionHistoryLimit: 20\nchanges:\n  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: \"9\"}}}\n  - {target: {apiVersion: v1, kind: ConfigMap, name: none}, type: Update, content: {data: {version: \"9\"}}}")
	four := commit(t, e, "four", "Delete short", "Delete old", "Patch b 5")
	after := dataOf(e, all...)

	plan := e.Run("plan", `{dryRun: true, undoOf: {toRevision: 1}}`)
	require.Equal(t, api.PhasePlanned, plan.Status.Phase, harness.Describe(plan))
	assert.Equal(t, after, dataOf(e, all...), "nothing is changed")

	undo := e.Run("undo", `{revisionHistoryLimit: 20, undoOf: {toRevision: 1}}`)
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	assert.Equal(t, before, dataOf(e, all...))
	assert.Equal(t, owners, ownersOf(t, e, "a"), "the fields belong to their former owners")
	assert.Equal(t, others, ownersOf(t, e, "b"))
	assert.Equal(t, uid, e.Object("ConfigMap/a").GetUID())
	assert.ElementsMatch(t, []string{fmt.Sprintf("r%d-b Update b", four.Status.Revision), fmt.Sprintf("r%d-old Create old", four.Status.Revision), "r3-again Update again", "r3-made Delete made", "r3-a Update a"}, undoneBy(undo))
	assert.Equal(t, undoneBy(plan), undoneBy(undo))
	assert.Equal(t, "four", undo.Status.Undoing.Name)
	assert.Len(t, undo.Status.Undoing.Earlier, 2)
	assert.Equal(t, int64(2), undo.Status.Undoing.Earlier[1].Revision)
	e.NothingLeft("undo")

	redo := e.Run("redo", `{revisionHistoryLimit: 20, undoOf: {name: undo}}`)
	require.Equal(t, api.PhaseCommitted, redo.Status.Phase, harness.Describe(redo))
	assert.Equal(t, after, dataOf(e, all...))

	// An undo and its undo are revisions, too: to undo them all is to undo the others.
	whole := e.Run("whole", `{revisionHistoryLimit: 20, undoOf: {toRevision: 1}}`)
	require.Equal(t, api.PhaseCommitted, whole.Status.Phase, harness.Describe(whole))
	assert.Equal(t, before, dataOf(e, all...))
	none := e.Run("none", fmt.Sprintf(`{revisionHistoryLimit: 20, undoOf: {toRevision: %d}}`, undo.Status.Revision-1))
	require.Equal(t, api.PhaseCommitted, none.Status.Phase, harness.Describe(none))
	assert.Equal(t, after, dataOf(e, all...), "undo, redo and whole are undone")
	start := e.Run("start", `{undoOf: {toRevision: 0}}`)
	require.Equal(t, api.PhaseCommitted, start.Status.Phase, harness.Describe(start))
	assert.Equal(t, map[string]string{"a": "map[other:1 version:1]", "b": "map[other:1 version:1]"}, dataOf(e, "a", "b"))
	assert.NotNil(t, first)
	for _, name := range []string{"redo", "whole", "none", "start"} {
		e.NothingLeft(name)
	}
}

// Fields have owners by more than one Transaction. What one has left to its fieldManager is no
// other client's, for those before it.
func TestWhatCommitsHaveLeftToManagersIsUndone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	run := func(name, manager, kind, data string) {
		txn := e.Run(name, fmt.Sprintf(`{revisionHistoryLimit: 20, fieldManager: %s, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: made}, type: %s, content: {data: {%s}}}]}`, manager, kind, data))
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	}
	run("one", "helm", "Create", `version: "1"`)
	run("two", "argocd", "Patch", `version: "2", more: "2"`)
	run("three", "flux", "Patch", `more: "3", most: "3"`)

	undo := e.Run("undo", `{undoOf: {toRevision: 1}}`)
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	assert.Equal(t, map[string]string{"made": "map[version:1]"}, dataOf(e, "made"))
	run("again", "argocd", "Patch", `version: "2", more: "2"`)

	gone := e.Run("gone", `{undoOf: {toRevision: 0}}`)
	require.Equal(t, api.PhaseFailed, gone.Status.Phase, harness.Describe(gone))
	assert.Contains(t, harness.Describe(gone), "Transaction undo is not remembered", "its own limit is that of janusd: 0")
}

// What another client has changed after any of them is a conflict, and nothing is changed. What
// none of them has set stays as another client has left it.
func TestWhoCameInBetweenIsTold(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start()
	commit(t, e, "one", "Patch a 2", "Patch b 2")
	e.Merge("person", "ConfigMap/a", `{"data": {"version": "person", "other": "person"}}`)
	commit(t, e, "two", "Patch a 3")
	e.Merge("person", "ConfigMap/b", `{"data": {"other": "person"}}`)
	now := dataOf(e, "a", "b")

	undo := e.Run("undo", `{undoOf: {toRevision: 0}}`)
	require.Equal(t, api.PhaseFailed, undo.Status.Phase, harness.Describe(undo))
	for _, part := range []string{errclass.FieldConflict, "another client has changed it since revision 1, Transaction one: .data.version of person", `now "person", was "1"`, "nothing was changed"} {
		assert.Contains(t, harness.Describe(undo), part)
	}
	assert.Equal(t, now, dataOf(e, "a", "b"))
	e.NothingLeft("undo")

	forced := e.Run("forced", `{conflictPolicy: Force, undoOf: {toRevision: 0}}`)
	require.Equal(t, api.PhaseCommitted, forced.Status.Phase, harness.Describe(forced))
	assert.Equal(t, map[string]string{"a": "map[other:person version:1]", "b": "map[other:person version:1]"}, dataOf(e, "a", "b"))
	var warnings []string
	for _, item := range forced.Status.Items {
		warnings = append(warnings, item.Warnings...)
	}
	assert.Contains(t, fmt.Sprint(warnings), "since revision 1, Transaction one")
}

// Who deletes and creates in between makes another object, which is not what was changed before.
func TestAnObjectThatWasReplacedInBetweenIsNotTakenBack(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start()
	commit(t, e, "one", "Patch a 2", "Delete b")
	require.NoError(t, e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}))
	e.Apply(fixture.AB)
	commit(t, e, "two", "Patch a 3", "Patch b 3")
	now := dataOf(e, "a", "b")

	undo := e.Run("undo", `{conflictPolicy: Force, undoOf: {toRevision: 0}}`)
	require.Equal(t, api.PhaseFailed, undo.Status.Phase, harness.Describe(undo))
	assert.Contains(t, harness.Describe(undo), "another client has deleted and re-created it since revision 1, Transaction one")
	assert.Contains(t, harness.Describe(undo), "another client has created it since revision 1, Transaction one")
	assert.Equal(t, now, dataOf(e, "a", "b"))
}

// All that has changed something since must be remembered, or nothing is undone.
func TestAllThatHasChangedSomethingSinceMustBeRemembered(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start()
	refused := func(name string, to int, says ...string) {
		t.Helper()
		undo := e.Run(name, fmt.Sprintf(`{undoOf: {toRevision: %d}}`, to))
		require.Equal(t, api.PhaseFailed, undo.Status.Phase, harness.Describe(undo))
		for _, part := range append(says, errclass.NotRemembered) {
			assert.Contains(t, harness.Describe(undo), part)
		}
		assert.Zero(t, undo.Status.Items)
		e.NothingLeft(name)
	}
	refused("nothing", 0, "nothing has committed since")
	commit(t, e, "one", "Patch a 2")
	e.Run("plain", setTo("3", 0))
	refused("unnumbered", 1, "Transaction plain is not remembered")
	e.Delete("plain", metav1.DeletePropagationBackground)
	e.Gone("plain")

	e.Submit("part", `{revisionHistoryLimit: 20, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Create, content: {data: {version: "2"}}}, {target: {apiVersion: v1, kind: ConfigMap, name: none}, type: Await, readyWhen: {expression: object != null}}]}`)
	e.Await("part", "waiting", func(txn *api.Transaction) bool {
		return len(txn.Status.Items) > 0 && txn.Status.Items[0].State == api.ItemCommitted
	})
	e.Merge("person", harness.TransactionRef+"part", `{"spec": {"cancel": "Stop"}}`)
	part := e.Ended("part")
	require.Equal(t, api.PhaseFailed, part.Status.Phase, harness.Describe(part))
	refused("in-part", 1, fmt.Sprintf("Transaction part (number %d) has left changes in effect", part.Status.Revision))
	e.Delete("part", metav1.DeletePropagationBackground)
	e.Gone("part")

	commit(t, e, "same", "Patch b 1")
	refused("not-since", 2, "nothing has committed since that has changed something")
	e.Run("only", setTo("5", 1))
	refused("pruned", 0, "the revision of Transaction one (number 1): it does not exist")
}

// A field that nobody owned was left to the fieldManager of the newest. For the one before, that is
// no claim of another client.
func TestAFieldThatALaterCommitLeftToItsManagerIsUndone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	commit(t, e, "one", "Create made 1")
	commit(t, e, "two", "Patch made 2")
	three := e.Run("three", `{revisionHistoryLimit: 20, fieldManager: argocd, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Patch, content: {data: {version: "3"}}}]}`)
	require.Equal(t, api.PhaseCommitted, three.Status.Phase, harness.Describe(three))
	require.Contains(t, ownersOf(t, e, "made"), "argocd")

	undo := e.Run("undo", `{revisionHistoryLimit: 20, undoOf: {toRevision: 1}}`)
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	assert.Equal(t, map[string]string{"made": "map[version:1]"}, dataOf(e, "made"))
	gone := e.Run("gone", `{undoOf: {toRevision: 0}}`)
	require.Equal(t, api.PhaseCommitted, gone.Status.Phase, harness.Describe(gone))
	assert.Nil(t, e.Object("ConfigMap/made"))
}

// Fields that were released go back to who had them. Where more of the target is undone, those who
// have got them keep them, too.
func TestAReleaseIsUndoneWithAllSinceARevision(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		further []string
		owners  []string
	}{
		"and nothing else of its target": {[]string{"Patch b 2"}, []string{harness.Manager, "person"}},
		"and a later change of it":       {[]string{"Patch a 2"}, []string{harness.Manager, "person", "helm"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Apply(fixture.AB)
			e.Start()
			e.Merge("person", "ConfigMap/a", `{"data": {"version": "person"}}`)
			before := dataOf(e, "a", "b")
			require.Equal(t, []string{harness.Manager, "person"}, ownersOf(t, e, "a"))

			release := e.Run("release", `{revisionHistoryLimit: 20, fieldManager: helm, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, release: {managers: [person]}}]}`)
			require.Equal(t, api.PhaseCommitted, release.Status.Phase, harness.Describe(release))
			require.ElementsMatch(t, []string{harness.Manager, "helm"}, ownersOf(t, e, "a"))
			commit(t, e, "later", c.further...)

			undo := e.Run("undo", `{undoOf: {toRevision: 0}}`)
			require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
			assert.Equal(t, before, dataOf(e, "a", "b"))
			assert.ElementsMatch(t, c.owners, ownersOf(t, e, "a"))
			e.NothingLeft("undo")
		})
	}
}

// By force an undo of a release overwrites what another client has written since. Undone itself, it puts
// that back.
func TestWhatTheUndoOfAReleaseHasOverwrittenIsPutBack(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start()
	e.Merge("person", "ConfigMap/a", `{"data": {"version": "person"}}`)
	release := e.Run("release", `{revisionHistoryLimit: 20, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, release: {managers: [person]}}]}`)
	require.Equal(t, api.PhaseCommitted, release.Status.Phase, harness.Describe(release))
	e.Merge("another", "ConfigMap/a", `{"data": {"version": "another's"}}`)
	before := dataOf(e, "a", "b")

	undo := e.Run("undo", `{revisionHistoryLimit: 20, conflictPolicy: Force, undoOf: {name: release}}`)
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	require.Equal(t, "person", e.Value("ConfigMap/a", "data", "version"))
	require.Contains(t, ownersOf(t, e, "a"), "person")

	again := e.Run("again", `{undoOf: {name: undo}}`)
	require.Equal(t, api.PhaseCommitted, again.Status.Phase, harness.Describe(again))
	assert.Equal(t, before, dataOf(e, "a", "b"))
	assert.NotContains(t, ownersOf(t, e, "a"), "person")
	e.NothingLeft("again")
}
