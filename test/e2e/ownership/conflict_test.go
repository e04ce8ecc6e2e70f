package ownership

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// disturbed runs a Transaction that is rolled back after another client has written a
// field that it had changed.
func disturbed(t *testing.T, policy string) (*harness.Env, *api.Transaction) {
	t.Helper()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Refuse()
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.Committed(2), func() {
		e.Merge("person", "ConfigMap/a", `{"data": {"version": "person's", "more": "person's"}}`)
	})}))
	return e, e.Run("txn", "conflictPolicy: "+policy+"\n"+fixture.PatchAB+fixture.RefusedAtCommit)
}

func TestAConflictIsKeptAndReportedInTheStatus(t *testing.T) {
	t.Parallel()
	e, txn := disturbed(t, "Fail")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	item := txn.Status.Items[0]
	assert.Equal(t, api.ItemUnresolved, item.State)
	assert.Equal(t, errclass.FieldConflict, item.Reason)
	assert.Equal(t, []api.FieldConflict{{Field: ".data.version", Managers: []string{"person"}, Now: `"person's"`, Before: `"1"`}}, item.Conflicts)
	assert.Contains(t, item.Message, `.data.version of person, now "person's", was "1"`)
	assert.Equal(t, "person's", e.Value("ConfigMap/a", "data", "version"))
	assert.Equal(t, "1", e.Value("ConfigMap/b", "data", "version"), "the other item is rolled back")
	assert.Empty(t, e.ItemManagers("ConfigMap/a"))
	e.NothingLeft("txn")
}

func TestAConflictIsOverwrittenByForceAndReported(t *testing.T) {
	t.Parallel()
	e, txn := disturbed(t, "Force")
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	item := txn.Status.Items[0]
	assert.Equal(t, api.ItemRolledBack, item.State)
	assert.Equal(t, "Overwritten", item.Reason)
	assert.Equal(t, []api.FieldConflict{{Field: ".data.version", Managers: []string{"person"}, Now: `"person's"`, Before: `"1"`}}, item.Conflicts)
	assert.Equal(t, "1", e.Value("ConfigMap/a", "data", "version"))
	assert.Equal(t, "person's", e.Value("ConfigMap/a", "data", "more"), "what the Transaction did not write is kept")
	e.AwaitEvent("txn", "Overwritten")
	e.NothingLeft("txn")
}

// What Force overwrites is on record before it is gone: a crash right after the
// overwriting write loses nothing of the report.
func TestWhatForceOverwritesIsOnRecordBefore(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Refuse()
	recorded := false
	e.Start(
		harness.Recording(harness.Journaling{After: harness.Once(harness.Committed(2), func() {
			e.Merge("person", "ConfigMap/a", `{"data": {"version": "person's"}}`)
		})}),
		harness.Acting(harness.Around{Undo: func(_ string, item int) {
			if item == 0 && e.Value("ConfigMap/a", "data", "version") == "person's" {
				recorded = len(e.Transaction("txn").Status.Items[0].Conflicts) > 0
			}
		}}),
	)
	txn := e.Run("txn", "conflictPolicy: Force\n"+fixture.PatchAB+fixture.RefusedAtCommit)
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.True(t, recorded, "the last look before the field was overwritten found the conflict on record")
}

func TestTakenFieldsAreListed(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Merge("person", "ConfigMap/a", `{"data": {"version": "person's"}}`)
	e.Start()
	txn := e.Run("txn", fixture.PatchAB)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, []api.OwnedFields{{Manager: "person", Fields: []string{".data.version"}}}, txn.Status.Items[0].Taken)
	assert.Equal(t, "2", e.Value("ConfigMap/a", "data", "version"))
	assert.Empty(t, e.ItemManagers("ConfigMap/a"))
}

// A ServiceAccount that may create and not patch leaves the manager of the item on
// the object, and is told nothing: nobody else can be in its way.
func TestAnObjectMayBeMadeWithoutTheRightToPatchIt(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(strings.TrimPrefix(strings.ReplaceAll(fixture.LimitedTo("get, create, delete"), "$NS", e.Namespace), "\n---"))
	e.Start()
	txn := e.Run("txn", `
serviceAccountName: limited
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: made}
    type: Create
    content: {data: {a: b}}
`)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Empty(t, txn.Status.Items[0].Message)
	assert.Len(t, e.ItemManagers("ConfigMap/made"), 1)
}

// What a rollback leaves to its former owner is listed beside a conflict too.
func TestReclaimedFieldsAreListedBesideConflicts(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Merge("former", "ConfigMap/a", `{"data": {"other": "former's"}}`)
	e.Refuse()
	e.Start(harness.Acting(harness.Around{Undo: func(_ string, item int) {
		if item == 0 {
			e.Merge("person", "ConfigMap/a", `{"data": {"version": "person's"}}`)
			e.Merge("former", "ConfigMap/a", `{"data": {"other": "former's again"}}`)
		}
	}}))
	txn := e.Run("txn", `
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2", other: "2"}}}`+fixture.RefusedAtCommit)
	item := txn.Status.Items[0]
	assert.Equal(t, errclass.FieldConflict, item.Reason, harness.Describe(txn))
	require.Len(t, item.Conflicts, 1)
	assert.Equal(t, ".data.version", item.Conflicts[0].Field)
	assert.Equal(t, []api.OwnedFields{{Manager: "former", Fields: []string{".data.other"}}}, item.Reclaimed)
}

// An object that the rollback has re-created is known by its uid when an earlier
// change of it is rolled back, whatever another client has written meanwhile.
func TestSomebodyWritesARecreatedObjectBeforeAnEarlierChangeIsRolledBack(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Refuse()
	e.Start(harness.Acting(harness.Around{Undo: func(_ string, item int) {
		if item == 0 {
			e.Merge("person", "ConfigMap/a", `{"data": {"version": "person's"}}`)
		}
	}}))
	txn := e.Run("txn", `
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Update, content: {data: {version: "2"}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Delete}`+fixture.RefusedAtCommit)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.FieldConflict, txn.Status.Items[0].Reason, harness.Describe(txn))
	assert.Equal(t, e.Object("ConfigMap/a").GetUID(), txn.Status.Items[1].RecreatedUID)
	assert.Equal(t, "1", e.Value("ConfigMap/a", "data", "other"), "the other field is rolled back")
}

// With the object of another client in place of the created one, what was created would be lost.
func TestWhatAnotherClientMakesInPlaceOfACreatedObjectIsNotChanged(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start(harness.Acting(harness.Around{Do: func(_ string, item int) {
		if item != 1 {
			return
		}
		maps := e.Kube.CoreV1().ConfigMaps(e.Namespace)
		_ = maps.Delete(context.Background(), "config", metav1.DeleteOptions{})
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config"}, Data: map[string]string{"theirs": "yes"}}
		_, err := maps.Create(context.Background(), theirs, metav1.CreateOptions{FieldManager: "person"})
		assert.NoError(t, err)
	}}))

	txn := e.Run("txn", `
changes:
  - {name: made, target: {apiVersion: v1, kind: ConfigMap, name: config}, type: Create, content: {data: {a: made}}}
  - {name: other, target: {apiVersion: v1, kind: ConfigMap, name: other}, type: Create, content: {data: {a: b}}}
  - {name: changed, target: {apiVersion: v1, kind: ConfigMap, name: config}, type: Patch, content: {data: {b: changed}}}
`)

	assert.Equal(t, "changed", txn.Status.FailedItem)
	assert.Equal(t, errclass.Drifted, txn.Status.Items[2].Reason)
	assert.Contains(t, txn.Status.Items[2].Message, "another client has deleted it, or deleted and re-created it, since item made changed it")
	assert.Equal(t, map[string]any{"theirs": "yes"}, e.Object("ConfigMap/config").Object["data"], "theirs is kept")
	assert.Nil(t, e.Object("ConfigMap/other"), "what had landed is rolled back")
	e.NothingLeft("txn")
}
