package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// A way to install Janus: the commands for the version before, for this one over it, for
// this one again, and those that take it away. All but the first are on docs/install.md.
type way struct {
	title                                 string
	previous, upgrade, install, uninstall []string
	// prepare makes the files that the commands name in $DIST.
	prepare func(d *desk, dist string)
	// stays is what the uninstallation leaves on purpose, and forget removes it.
	stays, forget []string
}

const (
	previous           = "test/e2e/packages/testdata/previous/install.yaml"
	makeManifests      = "make -s manifests DIST=$DIST"
	deleteTransactions = "kubectl delete txn --all -A --wait"
)

var ways = []way{
	{
		title:     "kustomize",
		previous:  []string{"kubectl apply -f " + previous},
		upgrade:   []string{"kubectl apply -k deploy/"},
		install:   []string{"kubectl apply -k deploy/"},
		uninstall: []string{"kubectl delete -k deploy/"},
	},
	{
		title:     "install.yaml",
		prepare:   manifests,
		previous:  []string{"kubectl apply -f " + previous},
		upgrade:   []string{"kubectl apply -f $DIST/install.yaml"},
		install:   []string{"kubectl apply -f $DIST/install.yaml"},
		uninstall: []string{"kubectl delete -f $DIST/install.yaml"},
	},
	{
		title:   "Helm",
		prepare: previousChart,
		previous: []string{
			"kubectl create namespace janus-system",
			"kubectl label namespace janus-system pod-security.kubernetes.io/enforce=restricted",
			"helm install janus $DIST/previous --namespace janus-system",
		},
		upgrade: []string{"helm upgrade janus deploy/chart/janus --namespace janus-system"},
		install: []string{
			"kubectl create namespace janus-system",
			"kubectl label namespace janus-system pod-security.kubernetes.io/enforce=restricted",
			"helm install janus deploy/chart/janus --namespace janus-system",
		},
		uninstall: []string{"helm uninstall janus --namespace janus-system --wait", "kubectl delete namespace janus-system"},
		// The API server makes an APIService of each version by itself.
		stays: []string{
			"CustomResourceDefinition <none> transactions.backup.janus.io",
			"APIService <none> v1alpha1.backup.janus.io",
			"APIService <none> v1beta1.backup.janus.io",
		},
		forget: []string{"kubectl delete crd transactions.backup.janus.io"},
	},
}

// manifests runs make, which needs Go and its caches, where the test is run: a shell has a
// home of its own.
func manifests(d *desk, dist string) {
	run := exec.CommandContext(d.t.Context(), "bash", "-c", makeManifests)
	run.Dir = harness.Root()
	run.Env = append(os.Environ(), "DIST="+dist)
	said, err := run.CombinedOutput()
	require.NoError(d.t, err, "%s", said)
}

// previousChart makes a chart of the manifests of the version before.
func previousChart(d *desk, dist string) {
	templates := filepath.Join(dist, "previous", "templates")
	require.NoError(d.t, os.MkdirAll(templates, 0o750))
	require.NoError(d.t, os.WriteFile(filepath.Join(dist, "previous", "Chart.yaml"),
		[]byte("{apiVersion: v2, name: janus, version: 0.0.0-a, appVersion: previous}\n"), 0o600))
	manifests, err := os.ReadFile(filepath.Join("testdata", "previous", "install.yaml"))
	require.NoError(d.t, err)
	var documents []string
	for document := range strings.SplitSeq(string(manifests), "\n---\n") {
		if !strings.Contains(document, "\nkind: Namespace\n") {
			documents = append(documents, document)
		}
	}
	require.NoError(d.t, os.WriteFile(filepath.Join(templates, "all.yaml"), []byte(strings.Join(documents, "\n---\n")), 0o600))
}

// TestInstallUpgradeUninstall goes each way from beginning to end while a Transaction
// runs, and finds the cluster as it was.
func TestInstallUpgradeUninstall(t *testing.T) {
	for _, w := range ways {
		t.Run(w.title, func(t *testing.T) {
			d := newDesk(t)
			dist := t.TempDir()
			d.dist = dist
			helm, err := testcluster.Helm()
			require.NoError(t, err)
			require.NoError(t, d.shell.Provide("helm", helm))
			if w.prepare != nil {
				w.prepare(d, dist)
			}
			before := d.everything()

			d.all(w.previous)
			d.run(rollout)
			d.upgradeUnderATransaction(w)
			d.all(w.uninstall)
			d.same(before, w.stays)

			// Again, over what has stayed.
			d.all(w.install)
			d.run(rollout)
			assert.Equal(t, "restricted", d.run(`kubectl get namespace janus-system -o jsonpath='{.metadata.labels.pod-security\.kubernetes\.io/enforce}'`))
			d.all(w.uninstall)
			d.same(before, w.stays)
			d.all(w.forget)
			d.same(before, nil)
		})
	}
}

// upgradeUnderATransaction has one wait while the version changes, and end after that.
func (d *desk) upgradeUnderATransaction(w way) {
	d.t.Helper()
	order := "kubectl explain txn.spec.order"
	assert.Empty(d.t, d.run(order+" 2>/dev/null || true"), "the version before does not know it")
	d.run("kubectl apply -f - <<'END'" + shop + "END")
	old := startJanusd(d)
	d.submit("shop", "lives", "shop-sa", first, second)
	d.until("kubectl get txn -n shop lives -o jsonpath='{.status.phase} {.status.conditions[?(@.type==\"Ready\")].reason}'", "Committing NotReady")

	d.all(w.upgrade)
	d.run(rollout)
	old.stop()
	assert.Equal(d.t, "Committing", d.run("kubectl get txn -n shop lives -o jsonpath='{.status.phase}'"))
	replacement := startJanusd(d)
	d.run(`kubectl patch configmap second -n shop --type=merge -p '{"data":{"go":"on"}}'`)
	assert.Equal(d.t, v1alpha1.PhaseCommitted, d.ended("shop", "lives").Phase)
	assert.Equal(d.t, "red red", d.run("kubectl get configmaps first second -n shop -o jsonpath='{.items[*].data.colour}'"))
	d.until(order+" >/dev/null && echo known", "known")

	d.run(deleteTransactions)
	replacement.stop()
	d.run("kubectl delete namespace shop && kubectl delete clusterrolebinding packages-test")
}

// shop is a namespace with two ConfigMaps, of which the second waits for another client.
const shop = `
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
  - {apiVersion: v1, kind: ServiceAccount, metadata: {name: shop-sa, namespace: shop}}
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata: {name: packages-test}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
    subjects: [{kind: ServiceAccount, name: shop-sa, namespace: shop}]
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: shop}, data: {colour: blue}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: second, namespace: shop}, data: {colour: blue, go: wait}}
`

const (
	first  = `{type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: first}, content: {data: {colour: red}}}`
	second = `{type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: second}, content: {data: {colour: red}}, readyWhen: {expression: "object.data.go == 'on'"}}`
)
