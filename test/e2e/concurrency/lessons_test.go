package concurrency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// The tests of files lessons*_test.go, here and in test/e2e/lifecycle, are named after what
// went wrong in another implementation of the same idea, line by line.

// onB is a line on which the reply to the patch of b is lost, or Janus dies of it.
func onB(f faultinject.Fault) *faultinject.Line { return harness.FaultAt("PATCH configmaps/b", f) }

func TestKillAfterTheReplyToBRestartAfterTheLockHasExpired(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Refuse()
	a, b := e.Object("ConfigMap/a"), e.Object("ConfigMap/b")
	line := onB(faultinject.CrashAfter)
	transport, process := harness.Through(line)
	first := e.Start(transport)
	e.Submit("txn", fixture.PatchAB+fixture.RefusedAtCommit)
	<-process.Crashed()
	died := time.Now()
	first.Stop()
	e.Until("the lock has expired", func() bool { return time.Since(died) > time.Second })

	next, _ := harness.Through(line)
	e.Start(next)

	txn := e.Ended("txn")
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(a, "ConfigMap/a")
	e.Same(b, "ConfigMap/b")
	e.NothingLeft("txn")
}

func TestReplyToBLostWithoutACrash(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Refuse()
	a, b := e.Object("ConfigMap/a"), e.Object("ConfigMap/b")
	line := onB(faultinject.LostReply)
	transport, _ := harness.Through(line)
	e.Start(transport)

	txn := e.Run("txn", fixture.PatchAB+fixture.RefusedAtCommit)

	assert.Empty(t, line.Missed())
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(a, "ConfigMap/a")
	e.Same(b, "ConfigMap/b")
}

func TestKillAfterTheReplyToBAndAPersonRewritesBBeforeTheRestart(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	a := e.Object("ConfigMap/a")
	line := onB(faultinject.CrashAfter)
	transport, process := harness.Through(line)
	first := e.Start(transport)
	e.Submit("txn", fixture.PatchAB)
	<-process.Crashed()
	first.Stop()
	e.Merge("person", "ConfigMap/b", `{"data": {"version": "person's"}}`)

	next, _ := harness.Through(line)
	e.Start(next)

	txn := e.Ended("txn")
	assert.Equal(t, "person's", e.Value("ConfigMap/b", "data", "version"))
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.Drifted, txn.Status.Items[1].Reason)
	e.Same(a, "ConfigMap/a")
	e.NothingLeft("txn")
}

func TestKillAfterCreateAndRestartAtOnce(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	line := harness.FaultAt("POST services/a", faultinject.CrashAfter)
	transport, process := harness.Through(line)
	first := e.Start(transport)
	e.Submit("txn", "changes:"+fixture.RefusedAtCommit)
	<-process.Crashed()
	first.Stop()
	next, _ := harness.Through(line)
	e.Start(next)

	txn := e.Ended("txn")

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Len(t, harness.Changing(line, e.Namespace, "services", "a"), 1)
	assert.NotNil(t, e.Object("Service/a"))
	e.NothingLeft("txn")
}

func TestSpecChangesGrowsWhileItRuns(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	var refusal error
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.Committed(1), func() {
		_, refusal = e.Dynamic.Resource(api.Resource).Namespace(e.Namespace).Patch(t.Context(), "txn", types.JSONPatchType,
			[]byte(`[{"op": "add", "path": "/spec/changes/-", "value": {"target": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}, "type": "Delete"}}]`),
			metav1.PatchOptions{FieldManager: "person"})
	})}))

	txn := e.Run("txn", fixture.PatchAB)

	require.ErrorContains(t, refusal, "spec is immutable but for suspend and cancel: create another Transaction instead")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Len(t, txn.Status.Items, 2)
	e.NothingLeft("txn")
}

func TestAPersonEditsOtherFieldsBetweenCommitAndRollback(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Refuse()
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.Committed(2), func() {
		e.Merge("person", "ConfigMap/a", `{"data": {"other": "person's", "more": "person's"}}`)
	})}))

	txn := e.Run("txn", fixture.PatchAB+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, map[string]any{"version": "1", "other": "person's", "more": "person's"}, e.Object("ConfigMap/a").Object["data"])
}

func TestCreateOverAForeignObjectAndALaterItemFails(t *testing.T) {
	t.Parallel()
	foreign := `{apiVersion: v1, kind: ConfigMap, metadata: {name: made}, data: {of: others}}`
	spec := `
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: a}
    type: Patch
    content: {data: {version: "2"}}
  - target: {apiVersion: v1, kind: ConfigMap, name: made}
    type: Create
    content: {data: {of: janus}}
` + fixture.RefusedAtCommit
	t.Run("there before", func(t *testing.T) {
		e := harness.New(t)
		e.Apply(fixture.AB + "---\n" + foreign)
		before := e.Object("ConfigMap/made")
		e.Start()
		txn := e.Run("txn", spec)
		assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
		e.Same(before, "ConfigMap/made")
		e.NothingLeft("txn")
	})
	t.Run("there when it is made", func(t *testing.T) {
		e := harness.New(t)
		e.Apply(fixture.AB)
		a := e.Object("ConfigMap/a")
		e.Start(harness.Acting(harness.Around{Do: func(_ string, item int) {
			if item == 1 {
				e.Apply(foreign)
			}
		}}))
		txn := e.Run("txn", spec)
		assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
		assert.Equal(t, "others", e.Value("ConfigMap/made", "data", "of"))
		e.Same(a, "ConfigMap/a")
		e.NothingLeft("txn")
	})
}

func TestTargetSaysConfigMapVictimAndContentSaysSecretOther(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: victim}, data: {a: b}}`)
	victim := e.Object("ConfigMap/victim")
	e.Start()
	for _, kind := range []string{"Create", "Update", "Patch"} {
		name := map[string]string{"Create": "create", "Update": "update", "Patch": "patch"}[kind]
		txn := e.Run(name, `
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: victim}
    type: `+kind+`
    content: {apiVersion: v1, kind: Secret, metadata: {name: other}, stringData: {a: b}}
`)
		assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
		e.Same(victim, "ConfigMap/victim")
		assert.Nil(t, e.Object("Secret/other"))
		e.NothingLeft(name)
	}
}

func TestDeleteOfAnObjectWithAFinalizerThenRollback(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: slow, finalizers: [example.com/hold]}, data: {a: b}}`)
	before := e.Object("ConfigMap/slow")
	e.Start()
	e.Submit("txn", `
timeout: 3s
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: slow}
    type: Delete
`)
	e.Await("txn", "RollingBack", harness.InPhase(api.PhaseRollingBack))
	assert.NotNil(t, e.Object("ConfigMap/slow").GetDeletionTimestamp())
	e.Merge("person", "ConfigMap/slow", `{"metadata": {"finalizers": null}}`)

	txn := e.Ended("txn")

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(before, "ConfigMap/slow")
	assert.Nil(t, e.Object("ConfigMap/slow").GetDeletionTimestamp())
	e.NothingLeft("txn")
}

func TestRollbackOfADeletedJob(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
`)
	before := e.Object("batch/v1 Job/job")
	e.Start()

	txn := e.Run("txn", `
changes:
  - target: {apiVersion: batch/v1, kind: Job, name: job}
    type: Delete
`)

	// It would run again, so it is refused before anything is done.
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, before.GetUID(), e.Object("batch/v1 Job/job").GetUID())
	e.NothingLeft("txn")
}
