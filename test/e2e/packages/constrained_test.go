package packages

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

const (
	rolesChange   = `{type: Create, target: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: more}, content: {rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}}`
	widgetsChange = `{type: Create, target: {apiVersion: example.com/v1, kind: Widget, name: a}, content: {spec: {size: 1}}}`

	widgetsKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
    - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`
)

// TestConstrainedImpersonation has janusd commit, roll back, undo, wait and survive without the
// right to impersonate, and then does with its token, as a ServiceAccount that may do everything,
// what an attacker would.
func TestConstrainedImpersonation(t *testing.T) {
	d := newDesk(t)
	before := d.everything()
	d.all([]string{"kubectl create namespace orders", "kubectl apply -k examples/constrained"})
	d.run("kubectl apply -f - <<'END'" + rightsFixture + "\n---" + widgetsKind + "END")
	d.knows("impersonate-on:serviceaccount:patch secrets -n orders")
	d.knows("list leases -n " + ownNamespace)
	d.run("kubectl wait crd/widgets.example.com --for=condition=Established")

	first := startJanusd(d, quickly)
	d.commitsAndHistory()
	d.rollsBack()
	d.waits()
	d.reachesOut(true)
	second := d.isKilled(first, true)
	d.create("custom", "changes:\n    - "+widgetsChange)
	d.ends("custom", v1alpha1.PhaseCommitted)
	d.create("custom-back", "undoOf: {name: custom}")
	d.ends("custom-back", v1alpha1.PhaseCommitted)
	d.create("custom-again", "undoOf: {name: custom-back}") // Its status is restored, too.
	d.ends("custom-again", v1alpha1.PhaseCommitted)
	d.create("grants", "changes:\n    - "+red+"\n    - "+rolesChange)
	d.ends("grants", v1alpha1.PhaseFailed)
	d.failed("grants", `cannot impersonate-on:serviceaccount:get resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "orders"; `+
		`the installation of Janus has to let janusd act as that ServiceAccount for it`)

	d.escapes("orders:orders-sa", "orders")
	d.run("kubectl delete txn --all -n orders --timeout=1m")
	second.stop()
	d.run("kubectl delete -k examples/constrained --timeout=2m && kubectl delete crd widgets.example.com")
	d.run("kubectl delete namespace orders && kubectl delete clusterrolebinding packages-test")
	d.same(before, nil)
}

// TestConstrainedImpersonationInOneNamespace is the same by the chart, and for the listed
// ServiceAccounts of one namespace.
func TestConstrainedImpersonationInOneNamespace(t *testing.T) {
	helm, err := testcluster.Helm()
	require.NoError(t, err)
	d := newDesk(t)
	require.NoError(t, d.shell.Provide("helm", helm))
	before := d.everything()
	d.run("kubectl create namespace orders && kubectl create namespace janus-system")
	d.run("helm install janus deploy/chart/janus --namespace janus-system --values examples/namespaced/values.yaml --set constrainedImpersonation.enabled=true")
	d.run("kubectl apply -f - <<'END'" + rightsFixture + "END")
	d.knows("impersonate-on:serviceaccount:patch secrets -n orders")
	d.knows("impersonate-on:serviceaccount:create selfsubjectaccessreviews.authorization.k8s.io")
	j := startJanusd(d, quickly)
	d.commitsAndHistory()
	d.rollsBack()
	d.waits()
	d.create("of-the-cluster", `changes: [{type: Create, target: {apiVersion: v1, kind: Namespace, name: packages-room}, content: {}}]`)
	d.failed("of-the-cluster", `cannot impersonate-on:serviceaccount:get resource "namespaces"`)

	d.escapes("orders:orders-sa", "orders")
	d.refused("kubectl --as=system:serviceaccount:orders:orders-sa get configmaps -n default", "elsewhere")
	d.refused("kubectl --as=system:serviceaccount:orders:default get configmaps -n orders", "as a ServiceAccount that is not listed")
	d.run("kubectl delete txn --all -n orders --timeout=1m")
	j.stop()
	d.run(`kubectl patch configmap held -n orders --type=merge -p '{"metadata": {"finalizers": null}}'`)
	d.run("helm uninstall janus --namespace janus-system --wait")
	d.run("kubectl delete crd transactions.backup.janus.io && kubectl delete namespace orders janus-system && kubectl delete clusterrolebinding packages-test")
	d.same(before, nil)
}

// refused wants a command to be refused to who has janusd's token because of the impersonation:
// the ServiceAccount may do all of it.
func (d *desk) refused(command, why string) {
	d.t.Helper()
	token := d.run("kubectl create token -n " + ownNamespace + " janusd")
	said, err := d.shell.Run(d.t.Context(), strings.Replace(command, "kubectl ", "kubectl --kubeconfig="+kubeconfig(d, token)+" ", 1)+" 2>&1")
	require.Error(d.t, err, "%s: %s", why, said)
	assert.Regexp(d.t, `User "`+janusdUser+`" cannot impersonate`, said, why)
}

// escapes tries to get with the token of janusd, as a ServiceAccount that may do everything, what
// would be free of the constraints.
func (d *desk) escapes(account, namespace string) {
	d.t.Helper()
	as := "kubectl --as=system:serviceaccount:" + account + " "
	for why, command := range map[string]string{
		"a token of the ServiceAccount": as + "create token default -n " + namespace,
		"a token of another":            as + "create token default -n kube-system",
		"rights":                        as + "create clusterrolebinding more --clusterrole=cluster-admin --user=me",
		"a right in the namespace":      as + "create role more -n " + namespace + " --verb=get --resource=secrets",
		"a certificate": "echo '{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: more}, spec: {request: AAAA, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth]}}' | " +
			as + "create --validate=false -f -",
		"a shell":                    "echo '{}' | " + as + "create --raw /api/v1/namespaces/" + namespace + "/pods/any/exec -f -",
		"a way through a Service":    as + "get --raw /api/v1/namespaces/" + namespace + "/services/any/proxy/",
		"the kubelets":               as + "get --raw /api/v1/nodes/any/proxy/pods",
		"to be in another group":     as + "--as-group=system:masters get secrets -n " + namespace,
		"to be marked":               as + "--as-user-extra=backup.janus.io/made-by=janusd get secrets -n " + namespace,
		"to be somebody":             "kubectl --as=admin get secrets -n " + namespace,
		"to be a node":               "kubectl --as=system:node:any get secrets -n " + namespace,
		"all at once":                as + "delete --raw /api/v1/namespaces/" + namespace + "/configmaps",
		"a webhook":                  as + "get validatingwebhookconfigurations",
		"to turn off the policies":   as + "delete validatingadmissionpolicybinding --all",
		"the definitions of kinds":   as + "delete crd transactions.backup.janus.io",
		"what is of no object":       as + "get --raw /metrics",
		"Transactions in their name": as + "get transactions -n " + namespace,
		"locks in their name":        as + "get leases -n " + namespace,
	} {
		d.refused(command, why)
	}
	token := d.run("kubectl create token -n " + ownNamespace + " janusd")
	said, err := d.shell.Run(d.t.Context(), `echo '{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: more, annotations: {kubernetes.io/service-account.name: default}}}' | `+
		"kubectl --kubeconfig="+kubeconfig(d, token)+" create --validate=false -n "+namespace+" -f - 2>&1")
	require.Error(d.t, err)
	assert.Contains(d.t, said, "as itself janusd makes Secrets of type Opaque alone")
	assert.Equal(d.t, "yes", d.run("kubectl auth can-i create clusterrolebindings --as=system:serviceaccount:"+account+" 2>/dev/null"), "the ServiceAccount may do all of it")
}
