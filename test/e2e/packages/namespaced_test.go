package packages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"janus.io/janus/api/v1alpha1"
)

// fixture is the namespace orders with a ServiceAccount that the installation lists, and
// with one that it does not. Both may do all that is asked of them, in default too.
const fixture = `
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ServiceAccount, metadata: {name: orders-sa, namespace: orders}}
  - {apiVersion: v1, kind: ServiceAccount, metadata: {name: other-sa, namespace: orders}}
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata: {name: packages-test}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
    subjects:
      - {kind: ServiceAccount, name: orders-sa, namespace: orders}
      - {kind: ServiceAccount, name: other-sa, namespace: orders}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: orders}, data: {colour: blue}}
  # A dry run uses nothing up: only the second Service is refused, and only when it is made.
  - {apiVersion: v1, kind: ResourceQuota, metadata: {name: services, namespace: orders}, spec: {hard: {count/services: "1"}}}
`

// submit makes a Transaction of changes to ConfigMaps and Services.
func (d *desk) submit(namespace, name, account string, changes ...string) {
	d.t.Helper()
	d.run("kubectl create -n " + namespace + " -f - <<'END'\n" +
		"apiVersion: backup.janus.io/v1alpha1\nkind: Transaction\nmetadata: {name: " + name + "}\n" +
		"spec:\n  serviceAccountName: " + account + "\n  changes:\n    - " + strings.Join(changes, "\n    - ") + "\nEND")
}

// ended waits until a Transaction has.
func (d *desk) ended(namespace, name string) v1alpha1.TransactionStatus {
	d.t.Helper()
	d.run("kubectl wait -n " + namespace + " txn/" + name + " --for=jsonpath='{.status.completionTime}' --timeout=2m")
	return read[v1alpha1.Transaction](d, "kubectl get txn -n "+namespace+" "+name).Status
}

const (
	red      = `{type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: settings}, content: {data: {colour: red}}}`
	green    = `{type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: settings}, content: {data: {colour: green}}}`
	one      = `{type: Create, target: {apiVersion: v1, kind: Service, name: one}, content: {spec: {ports: [{port: 80}]}}}`
	two      = `{type: Create, target: {apiVersion: v1, kind: Service, name: two}, content: {spec: {ports: [{port: 80}]}}}`
	elsewhat = `{type: Create, target: {apiVersion: v1, kind: ConfigMap, name: elsewhere, namespace: default}, content: {data: {a: b}}}`
)

var namespacedInstall = []string{"kubectl create namespace orders", "kubectl apply -k examples/namespaced"}

// TestNamespaced runs Transactions with exactly the rights of the namespaced overlay,
// as an example of this repository sets it up for another namespace.
func TestNamespaced(t *testing.T) {
	d := newDesk(t)
	before := d.everything()
	d.all(namespacedInstall)
	d.run(rollout)
	d.run("kubectl apply -f - <<'END'" + fixture + "END")
	d.until("kubectl get quota services -n orders -o jsonpath='{.status.used}'", `{"count/services":"0"}`)
	startJanusd(d)

	for _, binding := range read[rbacv1.ClusterRoleBindingList](d, "kubectl get clusterrolebindings").Items {
		for _, subject := range binding.Subjects {
			if subject.Name == "janusd" {
				assert.Equal(t, "system:auth-delegator", binding.RoleRef.Name, "this gives janusd rights in the whole cluster")
			}
		}
	}

	d.submit("orders", "commits", "orders-sa", red)
	require.Equal(t, v1alpha1.PhaseCommitted, d.ended("orders", "commits").Phase)
	assert.Equal(t, "red", d.run("kubectl get configmap settings -n orders -o jsonpath='{.data.colour}'"))

	d.submit("orders", "rolls-back", "orders-sa", green, one, two)
	status := d.ended("orders", "rolls-back")
	require.Equal(t, v1alpha1.PhaseRolledBack, status.Phase)
	assert.Contains(t, status.Items[2].Message, "exceeded quota")
	assert.Equal(t, v1alpha1.ItemRolledBack, status.Items[1].State, "the first Service was there")
	assert.Equal(t, "red", d.run("kubectl get configmap settings -n orders -o jsonpath='{.data.colour}'"))
	assert.Empty(t, d.run("kubectl get services -n orders -o name"))

	d.submit("orders", "is-another", "other-sa", green)
	d.failed("is-another", `serviceaccounts "other-sa" is forbidden: User "system:serviceaccount:janus-system:janusd" cannot impersonate resource "serviceaccounts"`)

	d.submit("orders", "is-elsewhere", "orders-sa", elsewhat)
	d.failed("is-elsewhere", `cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "default"`)

	assert.Equal(t, "red", d.run("kubectl get configmap settings -n orders -o jsonpath='{.data.colour}'"))
	assert.Empty(t, d.run("kubectl get configmap elsewhere -n default --ignore-not-found"))
	assert.NotEmpty(t, d.run("kubectl get events -n orders --field-selector=reason=RolledBack -o name"), "it may write events")

	// While janusd is there to take the finalizers off.
	d.run("kubectl delete txn --all -n orders --timeout=1m")
	d.run("kubectl delete -k examples/namespaced --timeout=2m")
	d.run("kubectl delete namespace orders && kubectl delete clusterrolebinding packages-test")
	d.same(before, nil)
}

// failed waits until a Transaction has failed for a reason, with nothing changed.
func (d *desk) failed(name, because string) {
	d.t.Helper()
	status := d.ended("orders", name)
	assert.Equal(d.t, v1alpha1.PhaseFailed, status.Phase)
	for _, condition := range status.Conditions {
		if condition.Type == v1alpha1.ConditionReady {
			assert.Equal(d.t, "AccessDenied", condition.Reason)
			assert.Contains(d.t, condition.Message, because)
			assert.Contains(d.t, condition.Message, "nothing was changed")
		}
	}
}
