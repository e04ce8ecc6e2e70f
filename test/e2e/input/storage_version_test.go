package input

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// migration is a cluster of its own, since the CRD is the whole cluster's.
type migration struct {
	*harness.Env
	t       *testing.T
	cluster *testcluster.Cluster
	shell   *testcluster.Shell
}

func newMigration(t *testing.T) *migration {
	t.Helper()
	cluster, err := testcluster.Start(testcluster.Options{ControllerManager: true, CRDs: "../../../deploy/crd"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	e := harness.On(t, cluster)
	return &migration{Env: e, t: t, cluster: cluster, shell: e.Shell()}
}

// storedAs are the versions in which etcd has Transactions, by their names.
func (m *migration) storedAs() map[string]string {
	m.t.Helper()
	prefix := "/registry/backup.janus.io/transactions/" + m.Namespace + "/"
	all, err := m.cluster.Stored(m.t.Context(), prefix)
	require.NoError(m.t, err)
	out := map[string]string{}
	for _, stored := range all {
		var found metav1.TypeMeta
		require.NoError(m.t, json.Unmarshal(stored.Value, &found), "%s", stored.Key)
		out[strings.TrimPrefix(stored.Key, prefix)] = strings.TrimPrefix(found.APIVersion, "backup.janus.io/")
	}
	return out
}

// store moves the storage version, and waits until the API server goes by it.
func (m *migration) store(version string) {
	m.t.Helper()
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/versions/0/storage", "value": %t}, {"op": "replace", "path": "/spec/versions/1/storage", "value": %t}]`,
		version == "v1alpha1", version == "v1beta1")
	m.run("kubectl patch crd transactions.backup.janus.io --type=json -p '" + patch + "'")
	probe := "probe-" + version
	m.Until("what is created is stored as "+version, func() bool {
		m.Submit(probe, "{suspend: true, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: none}, type: Delete}]}")
		as := m.storedAs()[probe]
		m.Delete(probe, metav1.DeletePropagationBackground)
		m.Gone(probe)
		return as == version
	})
}

func (m *migration) run(command string) {
	m.t.Helper()
	printed, err := m.shell.Run(m.t.Context(), command)
	require.NoError(m.t, err, printed)
}

// definition reads the CRD.
func (m *migration) definition() *unstructured.Unstructured {
	m.t.Helper()
	crd, err := m.Dynamic.Resource(crds).Get(m.t.Context(), api.Resource.Resource+"."+api.Resource.Group, metav1.GetOptions{})
	require.NoError(m.t, err)
	return crd
}

func (m *migration) storedVersions() []string {
	m.t.Helper()
	versions, _, err := unstructured.NestedStringSlice(m.definition().Object, "status", "storedVersions")
	require.NoError(m.t, err)
	return versions
}

// rewrite writes every Transaction as it is, as docs/storage-version.md says.
func (m *migration) rewrite() {
	m.t.Helper()
	m.run(`kubectl get txn -A --no-headers -o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name |
  while read -r namespace name; do kubectl patch txn -n "$namespace" "$name" --type=merge -p '{}' </dev/null; done`)
}

// halfway is a Transaction whose last change waits until someone says that it is ready.
const halfway = `{revisionHistoryLimit: 5, changes: [
  {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {version: "2.0"}}},
  {target: {apiVersion: v1, kind: ConfigMap, name: app-2}, type: Patch, content: {data: {version: "2.0"}},
   readyWhen: {expression: "object.data.?ready.orValue('') == 'yes'", timeout: 10m}}]}`

// waits reports whether a Transaction has made both changes, and waits for the last.
func waits(t *api.Transaction) bool {
	return t.Status.Phase == api.PhaseCommitting && harness.CommittedItems(t) == 2
}

// The stored version is moved there and back under a Transaction that runs and others that have
// ended. Nothing else of them changes.
func TestTheStorageVersionIsMovedUnderTransactions(t *testing.T) {
	t.Parallel()
	m := newMigration(t)
	m.Apply(fixture.TwoConfigMaps)
	m.Start()
	first := m.Run("first", "revisionHistoryLimit: 5\n"+fixture.TwoPatches)
	require.Equal(t, api.PhaseCommitted, first.Status.Phase, harness.Describe(first))
	require.Equal(t, api.PhaseFailed, m.Run("failed", `{changes: [{target: {apiVersion: v1, kind: Wrong, name: x}, type: Delete}]}`).Status.Phase)
	assert.Equal(t, map[string]string{"first": "v1alpha1", "failed": "v1alpha1"}, m.storedAs())

	undone := "first"
	for _, move := range []struct{ from, to string }{{"v1alpha1", "v1beta1"}, {"v1beta1", "v1alpha1"}} {
		t.Run(move.from+" to "+move.to, func(t *testing.T) {
			m.t = t
			undo := m.Run("undo-before-"+move.to, "{undoOf: {name: "+undone+"}}")
			require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
			m.Merge("someone", "ConfigMap/app-2", `{"data": {"ready": null}}`)
			running := "running-to-" + move.to
			m.Submit(running, halfway)
			m.Await(running, "halfway", waits)
			ended := m.Object(harness.TransactionRef + "first")

			m.store(move.to)
			assert.Equal(t, []string{move.from, move.to}, m.storedVersions())
			assert.Equal(t, move.from, m.storedAs()["first"], "what nobody writes stays as it was stored")
			m.rewrite()
			for name, version := range m.storedAs() {
				assert.Equal(t, move.to, version, "%s", name)
			}
			assert.Len(t, m.storedAs(), len(m.Names("backup.janus.io/v1alpha1 Transaction", "")), "all were looked at")
			m.run(`kubectl patch crd transactions.backup.janus.io --subresource=status --type=merge -p '{"status": {"storedVersions": ["` + move.to + `"]}}'`)
			assert.Equal(t, []string{move.to}, m.storedVersions())

			m.Merge("someone", "ConfigMap/app-2", `{"data": {"ready": "yes"}}`)
			txn := m.Ended(running)
			require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			m.NothingLeft(running)
			now := m.Object(harness.TransactionRef + "first")
			assert.NotEqual(t, ended.GetResourceVersion(), now.GetResourceVersion(), "it was written")
			now.SetResourceVersion(ended.GetResourceVersion())
			assert.Equal(t, ended.Object, now.Object, "and nothing else of it changed, owners of fields included")
			undone = running
		})
	}

	// What was remembered in one version is undone in the other.
	undo := m.Run("undo-last", "{undoOf: {name: "+undone+"}}")
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	assert.Equal(t, "1.0", m.Value("ConfigMap/app", "data", "version"))
}

// A CRD without the stored version is refused, so that no older version of Janus makes Transactions
// unreadable.
func TestADefinitionWithoutTheStoredVersionIsRefused(t *testing.T) {
	t.Parallel()
	m := newMigration(t)
	older := m.definition()
	versions, _, err := unstructured.NestedSlice(older.Object, "spec", "versions")
	require.NoError(t, err)
	withoutBeta := func() error {
		crd := m.definition()
		require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions[:1], "spec", "versions"))
		_, err := m.Dynamic.Resource(crds).Update(t.Context(), crd, metav1.UpdateOptions{})
		return err
	}
	m.store("v1beta1")
	require.ErrorContains(t, withoutBeta(), "v1beta1 was previously a storage version, and must remain in spec.versions until a storage migration")
	m.store("v1alpha1")
	require.ErrorContains(t, withoutBeta(), "v1beta1 was previously a storage version")
	m.rewrite()
	m.run(`kubectl patch crd transactions.backup.janus.io --subresource=status --type=merge -p '{"status": {"storedVersions": ["v1alpha1"]}}'`)
	m.Start()
	m.Apply(fixture.TwoConfigMaps)
	m.Submit("running", halfway)
	m.Await("running", "halfway", waits)
	m.Merge("by-beta", "backup.janus.io/v1beta1 Transaction/running", `{"metadata": {"labels": {"a": "b"}}}`)
	require.NoError(t, withoutBeta(), "as an older version of Janus has it")

	// An owner of fields by a version that is gone is no obstacle.
	m.Merge("someone", "ConfigMap/app-2", `{"data": {"ready": "yes"}}`)
	txn := m.Ended("running")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	undo := m.Run("undo", "{undoOf: {name: running}}")
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	assert.Equal(t, "b", m.Transaction("running").Labels["a"])
}

// Where the API server serves StorageVersionMigrations, as docs/storage-version.md says that 1.37 does,
// one of them writes every Transaction, and takes the old version off the list.
func TestTheControlPlaneMovesWhatIsStored(t *testing.T) {
	t.Parallel()
	m := newMigration(t)
	served, err := m.shell.Run(t.Context(), "kubectl api-resources --api-group=storagemigration.k8s.io --no-headers")
	require.NoError(t, err)
	printed, err := m.shell.Run(t.Context(), "kubectl get --raw /version")
	require.NoError(t, err)
	var server version.Info
	require.NoError(t, json.Unmarshal([]byte(printed), &server), "%s", printed)
	minor, err := strconv.Atoi(server.Minor)
	require.NoError(t, err)
	require.Equal(t, minor >= 37, strings.Contains(served, "StorageVersionMigration"), "1.%d serves: %s", minor, served)
	if minor < 37 {
		return
	}
	m.Apply(fixture.TwoConfigMaps)
	m.Start()
	require.Equal(t, api.PhaseCommitted, m.Run("first", "revisionHistoryLimit: 5\n"+fixture.TwoPatches).Status.Phase)
	m.Submit("running", halfway)
	m.Await("running", "halfway", waits)
	ended := m.Object(harness.TransactionRef + "first")

	for _, move := range []string{"v1beta1", "v1alpha1"} {
		m.store(move)
		require.Len(t, m.storedVersions(), 2)
		m.run(`kubectl create -f - <<'EOF'
apiVersion: storagemigration.k8s.io/v1
kind: StorageVersionMigration
metadata: {name: transactions}
spec:
  resource: {group: backup.janus.io, resource: transactions}
EOF`)
		m.run("kubectl wait --for=condition=Succeeded storageversionmigration/transactions --timeout=5m || { kubectl get storageversionmigrations -o yaml; exit 1; }")
		assert.Equal(t, map[string]string{"first": move, "running": move}, m.storedAs())
		m.Until("the other version is taken off the list", func() bool { return slices.Equal([]string{move}, m.storedVersions()) })
		m.run("kubectl delete storageversionmigration transactions")
	}

	m.Merge("someone", "ConfigMap/app-2", `{"data": {"ready": "yes"}}`)
	txn := m.Ended("running")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	m.NothingLeft("running")
	now := m.Object(harness.TransactionRef + "first")
	now.SetResourceVersion(ended.GetResourceVersion())
	assert.Equal(t, ended.Object, now.Object, "nothing of it but its version has changed")
}
