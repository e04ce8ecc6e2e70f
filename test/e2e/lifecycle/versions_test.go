package lifecycle

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

var beta = api.BetaVersion.WithResource(api.Resource.Resource)

// typed is a shell in which Transactions are applied as manifests.
type typed struct {
	*harness.Env
	t     *testing.T
	shell *testcluster.Shell
}

func newTyped(t *testing.T) typed {
	t.Helper()
	e := harness.New(t)
	return typed{Env: e, t: t, shell: e.Shell()}
}

// kubectl runs a command, with the manifest of a Transaction as its input.
func (y typed) kubectl(command, version, name, spec string) string {
	y.t.Helper()
	objects, err := harness.Decode(spec)
	require.NoError(y.t, err)
	content := objects[0].Object
	content["serviceAccountName"] = "deployer"
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "backup.janus.io/" + version, "kind": "Transaction", "metadata": map[string]any{"name": name}, "spec": content,
	})
	require.NoError(y.t, err)
	printed, err := y.shell.Run(y.t.Context(), fmt.Sprintf("kubectl %s -f - <<'END'\n%s\nEND\n", command, manifest))
	require.NoError(y.t, err, printed)
	return printed
}

// patch writes Transaction release in the newer version.
func (y typed) patch(body string) {
	y.t.Helper()
	_, err := y.Dynamic.Resource(beta).Namespace(y.Namespace).Patch(y.t.Context(), "release", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "newer"})
	require.NoError(y.t, err)
}

// A Transaction of v1beta1 that clients of both versions write commits, is remembered and is undone
// as any other.
func TestATransactionThatTwoVersionsWriteCommitsAndIsUndone(t *testing.T) {
	t.Parallel()
	y := newTyped(t)
	y.Apply(fixture.AB)
	before := dataOf(y.Env, "a", "b")
	y.Start()

	for apply, name := range map[string]string{"apply": "client-side", "apply --server-side": "server-side"} {
		y.kubectl(apply, "v1beta1", name, "suspend: true\nrevisionHistoryLimit: 5\n"+fixture.PatchAB)
		y.Await(name, "suspended", func(t *api.Transaction) bool {
			return meta.IsStatusConditionTrue(t.Status.Conditions, api.ConditionSuspended)
		})
		y.Merge("older", harness.TransactionRef+name, `{"metadata": {"labels": {"seen": "yes"}}, "spec": {"suspend": false}}`)
		txn := y.Ended(name)
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		assert.Equal(t, "2", y.Value("ConfigMap/a", "data", "version"))
		written := map[string]string{}
		for _, entry := range txn.ManagedFields {
			written[entry.Manager] = entry.APIVersion
		}
		assert.Equal(t, api.GroupVersion.String(), written["older"], "%v", written)
		assert.Contains(t, written, map[string]string{"apply": "kubectl-client-side-apply", "apply --server-side": "kubectl"}[apply])
		assert.Contains(t, y.kubectl(apply, "v1alpha1", name, "suspend: false\nrevisionHistoryLimit: 5\n"+fixture.PatchAB), name+" ", "the same manifest in the other version is the same Transaction")
		y.NothingLeft(name)

		y.kubectl(apply, "v1beta1", "undo-"+name, "{undoOf: {name: "+name+"}}")
		undo := y.Ended("undo-" + name)
		require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
		assert.Equal(t, before, dataOf(y.Env, "a", "b"))
	}
}

// What belongs to a Transaction names it in v1beta1, whichever version it is written in, and is collected.
func TestATransactionOfTheNewerVersionIsRolledBackAndCollected(t *testing.T) {
	t.Parallel()
	y := newTyped(t)
	y.Apply(fixture.AB)
	y.Refuse()
	a, b := y.Object("ConfigMap/a"), y.Object("ConfigMap/b")
	y.Start()

	y.kubectl("create", "v1beta1", "broken", fixture.PatchAB+fixture.RefusedAtCommit)
	txn := y.Ended("broken")
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	y.Same(a, "ConfigMap/a")
	y.Same(b, "ConfigMap/b")
	images := y.Object("ConfigMap/" + txn.Status.RollbackRef.Name)
	require.NotNil(t, images)
	assert.Equal(t, api.BetaVersion.String(), images.GetOwnerReferences()[0].APIVersion)

	y.kubectl("create", "v1beta1", "remembered", "revisionHistoryLimit: 5\n"+fixture.PatchAB)
	require.Equal(t, api.PhaseCommitted, y.Ended("remembered").Status.Phase)
	require.Len(t, revisionsOf(t, y.Env), 1)

	for _, how := range []struct{ name, cascade string }{{"broken", "background"}, {"remembered", "foreground"}} {
		printed, err := y.shell.Run(t.Context(), "kubectl delete --cascade="+how.cascade+" transactions.v1beta1.backup.janus.io "+how.name)
		require.NoError(t, err, printed)
		y.Gone(how.name)
	}
	y.Until("the before-images of the one are collected", func() bool { return y.Object("ConfigMap/"+images.GetName()) == nil })
	y.Until("the revision of the other is collected", func() bool { return len(revisionsOf(t, y.Env)) == 0 })
	assert.Equal(t, "2", y.Value("ConfigMap/a", "data", "version"), "and nothing else is")
}

// What a user sets of a Transaction that runs counts in either version.
func TestATransactionIsApprovedAndCancelledInTheNewerVersion(t *testing.T) {
	t.Parallel()
	y := newTyped(t)
	y.GuardApprovals()
	y.Apply(fixture.AB)
	a := y.Object("ConfigMap/a")
	y.Start()

	y.kubectl("apply", "v1beta1", "release", `{approval: {required: true}, changes: [
	  {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2"}}},
	  {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {version: "2"}}, readyWhen: {expression: "has(object.data.never)", timeout: 10m}}]}`)
	standing := y.Standing("release", 1)
	approver := harness.Approver(y.Namespace)
	config := rest.CopyConfig(y.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: approver, Groups: []string{"system:authenticated"}}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	annotations := fmt.Sprintf(`{"metadata": {"annotations": {%q: %q, %q: %q}}}`, api.ApprovedPlanAnnotation, standing.Status.Approval.Digest, api.ApprovedByAnnotation, approver)
	_, err = client.Resource(beta).Namespace(y.Namespace).Patch(t.Context(), "release", types.MergePatchType, []byte(annotations), metav1.PatchOptions{})
	require.NoError(t, err)
	y.Await("release", "halfway", func(t *api.Transaction) bool {
		return len(t.Status.Items) == 2 && t.Status.Items[0].State == api.ItemCommitted
	})

	y.patch(`{"spec": {"suspend": true}}`)
	y.Await("release", "suspended", func(t *api.Transaction) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, api.ConditionSuspended)
	})
	y.patch(`{"spec": {"suspend": false, "cancel": "Rollback"}}`)
	txn := y.Ended("release")
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	y.Same(a, "ConfigMap/a")
	y.NothingLeft("release")
}
