package deploy_test

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// halfway has waits among its changes, one without a name, and a change that is not ready before
// someone says so.
const halfway = `changes: [
  {target: {apiVersion: v1, kind: ConfigMap, name: config}, type: Patch, content: {data: {version: "2"}}},
  {target: {apiVersion: v1, kind: ConfigMap, name: config}, type: Await, readyWhen: {expression: "object.data.version == '2'"}},
  {name: look, target: {apiVersion: v1, kind: Secret, name: key}, type: Await, readyWhen: {expression: "has(object.data)"}},
  {target: {apiVersion: v1, kind: Secret, name: key}, type: Patch, content: {stringData: {key: new}}},
  {target: {apiVersion: v1, kind: ConfigMap, name: later}, type: Create, content: {data: {a: b}},
   readyWhen: {expression: "object.data.?ready.orValue('') == 'yes'", timeout: 10m}}]`

// deletionPolicy is how a warning names its policy.
const deletionPolicy = "Validation failed for ValidatingAdmissionPolicy 'transaction-deletion.backup.janus.io' " +
	"with binding 'transaction-deletion.backup.janus.io': "

// TestADeletionHalfwayIsWarnedOf is about kubectl delete, which stops a Transaction and leaves what it
// has changed.
func TestADeletionHalfwayIsWarnedOf(t *testing.T) {
	s := newScene(t)
	s.run()
	s.Apply(before)
	shell := s.ownShell()
	// The policy is in force once a deletion is warned of.
	s.Submit("probe", "{"+halfway+"}")
	s.awaitHalfway("probe")
	s.Until("the policy is in force", func() bool { return s.warns(shell, "kubectl delete txn probe --dry-run=server") })
	s.cancel("probe")

	// What it would say is said, and nothing is deleted.
	s.Submit("release", "{"+halfway+"}")
	s.awaitHalfway("release")
	said, err := shell.Run(t.Context(), "kubectl delete txn release --dry-run=server")
	require.NoError(t, err, said)
	warning := "Warning: " + deletionPolicy + "Transaction " + s.Namespace + "/release stops halfway, and cannot be undone: " +
		"3 changes stay (ConfigMap/config, Secret/key, ConfigMap/later). " +
		"kubectl janus delete release -n " + s.Namespace + " asks before that, and kubectl janus cancel release -n " + s.Namespace + " rolls back\n"
	assert.Equal(t, warning+"transaction.backup.janus.io \"release\" deleted from "+s.Namespace+" namespace (server dry run)\n", said)
	require.Nil(t, s.Transaction("release").DeletionTimestamp)

	said, err = shell.Run(t.Context(), "kubectl delete txn release")
	require.NoError(t, err, said)
	assert.Contains(t, said, warning)
	config, err := s.admin.Resource(configMaps).Namespace(s.Namespace).Get(t.Context(), "config", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "2", config.Object["data"].(map[string]any)["version"], "as it said")

	// The plugin has said it before, and does not say it twice.
	plugin := filepath.Join(t.TempDir(), "kubectl-janus")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", plugin, "../cmd/kubectl-janus")
	built, err := build.CombinedOutput()
	require.NoError(t, err, "%s", built)
	require.NoError(t, shell.Provide("kubectl-janus", plugin))
	require.NoError(t, s.admin.Resource(configMaps).Namespace(s.Namespace).Delete(t.Context(), "later", metav1.DeleteOptions{}))
	s.Submit("asked", "{"+halfway+"}")
	s.awaitHalfway("asked")
	said, err = shell.Run(t.Context(), "kubectl janus delete asked --yes --wait")
	require.NoError(t, err, said)
	assert.Contains(t, said, "it stops, and what it has changed stays")
	assert.NotContains(t, said, "Validation failed")
}

// TestOtherDeletionsAreNotWarnedOf is about those that leave nothing half made.
func TestOtherDeletionsAreNotWarnedOf(t *testing.T) {
	s := newScene(t)
	s.run()
	s.Apply(before)
	shell := s.ownShell()
	s.Submit("probe", "{"+halfway+"}")
	s.awaitHalfway("probe")
	s.Until("the policy is in force", func() bool { return s.warns(shell, "kubectl delete txn probe --dry-run=server") })

	// It waits for the locks of the first, and has changed nothing.
	s.Submit("waiting", "{"+halfway+"}")
	s.Await("waiting", "is Preparing", func(t *api.Transaction) bool { return t.Status.Phase == api.PhasePreparing })
	assert.False(t, s.warns(shell, "kubectl delete txn waiting"))

	s.cancel("probe")
	require.Equal(t, api.PhaseRolledBack, s.Transaction("probe").Status.Phase)
	assert.False(t, s.warns(shell, "kubectl delete txn probe"))

	committed := s.Run("committed", release)
	require.Equal(t, api.PhaseCommitted, committed.Status.Phase, harness.Describe(committed))
	assert.False(t, s.warns(shell, "kubectl delete txn committed"))

	s.Submit("cautious", "{onDelete: Rollback, "+halfway+"}")
	s.awaitHalfway("cautious")
	assert.False(t, s.warns(shell, "kubectl delete txn cautious"), "it is rolled back")
	_, err := s.admin.Resource(configMaps).Namespace(s.Namespace).Get(t.Context(), "later", metav1.GetOptions{})
	require.Error(t, err, "as its onDelete says")

	// The garbage collector deletes what goes with an owner, and heeds no warnings.
	s.Submit("owned", "{"+halfway+"}")
	s.awaitHalfway("owned")
	assert.False(t, s.warns(shell, "kubectl delete txn owned --dry-run=server --as=system:serviceaccount:kube-system:generic-garbage-collector --as-group=system:masters"))
	assert.True(t, s.warns(shell, "kubectl delete txn owned"))
}

// TestWhatStaysIsTold is about every state in which a deletion can find the items: it writes the status
// as janusd does.
func TestWhatStaysIsTold(t *testing.T) {
	s := newScene(t)
	shell := s.ownShell()
	config := rest.CopyConfig(s.in.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: janusd.User, Groups: janusd.Groups}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	for title, c := range map[string]struct {
		items []api.Item
		said  string
	}{
		"sent": {[]api.Item{item(0, api.ItemCommitting), item(1, api.ItemPrepared)}, "none of its changes is known to be in effect, and perhaps ConfigMap/c0. "},
		"one":  {[]api.Item{item(0, api.ItemCommitted), item(1, api.ItemCommitting), item(2, api.ItemCommitting)}, "1 change stays (ConfigMap/c0), and perhaps ConfigMap/c1, ConfigMap/c2. "},
		"many": {items(6, api.ItemCommitted), "6 changes stay. "},
		"much": {append(items(6, api.ItemCommitted), items(6, api.ItemCommitting)...), "6 changes stay, and perhaps 6 more. "},
		"most": {items(1000, api.ItemCommitted), "1000 changes stay. "},
		"none": {[]api.Item{item(0, api.ItemRejected), item(1, api.ItemSkipped), item(2, api.ItemPrepared)}, "none of its changes is known to be in effect. "},
	} {
		txn := transaction("default")
		txn.SetGenerateName("")
		txn.SetName(title)
		require.NoError(t, s.create(api.Resource, txn, metav1.CreateOptions{}))
		transactions := client.Resource(api.Resource).Namespace(s.Namespace)
		txn, err := transactions.Get(t.Context(), title, metav1.GetOptions{})
		require.NoError(t, err)
		status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&api.TransactionStatus{Phase: api.PhaseCommitting, Items: c.items})
		require.NoError(t, err)
		txn.Object["status"] = status
		_, err = transactions.UpdateStatus(t.Context(), txn, metav1.UpdateOptions{})
		require.NoError(t, err)
		s.Until("the policy is in force", func() bool { return s.warns(shell, "kubectl delete --dry-run=server txn "+title) })
		said, err := shell.Run(t.Context(), "kubectl delete txn "+title)
		require.NoError(t, err, said)
		assert.Contains(t, said, "stops halfway, and cannot be undone: "+c.said+"kubectl janus delete "+title, title)
	}
}

func item(i int, state api.ItemState) api.Item {
	return api.Item{Name: strconv.Itoa(i), State: state, Target: api.Target{APIVersion: "v1", Kind: "ConfigMap", Name: "c" + strconv.Itoa(i)}}
}

func items(n int, state api.ItemState) []api.Item {
	var out []api.Item
	for i := range n {
		out = append(out, item(i, state))
	}
	return out
}

// ownShell is a shell in the namespace of the scene.
func (s *scene) ownShell() *testcluster.Shell {
	s.t.Helper()
	shell, err := testcluster.Shared(s.t).NewShell(s.Namespace, s.t.TempDir())
	require.NoError(s.t, err)
	s.t.Cleanup(func() { assert.NoError(s.t, shell.Close()) })
	return shell
}

// warns runs a deletion, and reports whether the policy has warned of it.
func (s *scene) warns(shell *testcluster.Shell, command string) bool {
	s.t.Helper()
	said, err := shell.Run(s.t.Context(), command)
	require.NoError(s.t, err, said)
	return strings.Contains(said, "Warning: "+deletionPolicy)
}

func (s *scene) awaitHalfway(name string) {
	s.t.Helper()
	s.Await(name, "waits for its last change", func(t *api.Transaction) bool {
		return len(t.Status.Items) == 5 && t.Status.Items[3].State == api.ItemCommitted && t.Status.Items[4].CreatedUID != ""
	})
}

// cancel rolls a Transaction back.
func (s *scene) cancel(name string) {
	s.t.Helper()
	_, err := s.admin.Resource(api.Resource).Namespace(s.Namespace).Patch(s.t.Context(), name, "application/merge-patch+json",
		[]byte(`{"spec":{"cancel":"Rollback"}}`), metav1.PatchOptions{})
	require.NoError(s.t, err)
	s.Ended(name)
}
