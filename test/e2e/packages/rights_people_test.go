package packages

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

const transactionsPath = "/apis/backup.janus.io/v1alpha1/namespaces/orders/transactions"

// people do what the roles for them are for, in the namespace orders, where no janusd runs
// any more: what they make stays as it is. The policies let the editor name a ServiceAccount
// for a right that is none of the role, and that comes by a group.
func (d *desk) people() {
	d.t.Helper()
	d.run(`kubectl apply -f - <<'END'
apiVersion: v1
kind: List
items:
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata: {name: packages-namers, namespace: orders}
    rules: [{apiGroups: [use.janus.io], resources: [serviceaccounts], resourceNames: [orders-sa], verbs: [use]}]
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata: {name: packages-namers, namespace: orders}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: packages-namers}
    subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: packages-namers}]
END`)
	const reads = `
		kubectl AS get txn -n orders
		kubectl AS get txn -n orders kept
		kubectl AS get txn -n orders kept --subresource=status
		kubectl AS get --raw '` + transactionsPath + `?watch=true&timeoutSeconds=1'`
	const kept = `
apiVersion: backup.janus.io/v1alpha1
kind: Transaction
metadata: {name: kept}
spec:
  serviceAccountName: orders-sa
  changes: [` + red + `]
`
	d.does("editor", "kubectl AS create -n orders -f - <<'END'"+kept+"END"+`
		kubectl AS patch txn -n orders kept --type=merge -p '{"metadata": {"labels": {"a": "b"}}}'
		kubectl AS get txn -n orders kept -o yaml | kubectl AS replace -f -`+reads+`
		kubectl AS delete txn -n orders kept
		kubectl AS delete --raw `+transactionsPath)
	d.run("kubectl create -n orders -f - <<'END'" + kept + "END")
	d.does("viewer", reads)
	// janusd has made a plan of it, as far as the policy can tell.
	const plan = `
		kubectl get txn -n orders kept -o yaml | sed "s/^status:$/status:\n  approval: {plans: 1, digest: '4711'}/" |
			kubectl --as=system:serviceaccount:` + ownNamespace + `:janusd replace --subresource=status -f -`
	d.run(plan)
	const approval = `'{"metadata": {"annotations": {"backup.janus.io/approved-plan": "4711", "backup.janus.io/approved-by": "packages-approver"}}}'`
	d.does("approver", `
		kubectl AS get txn -n orders
		kubectl AS get txn -n orders kept
		kubectl AS get --raw '`+transactionsPath+`?watch=true&timeoutSeconds=1'
		kubectl AS patch txn -n orders kept --type=merge --field-manager=`+approving+` -p `+approval)
	d.run("kubectl delete txn -n orders kept")
}

// does runs a script as a user who has the role of that name.
func (d *desk) does(role, script string) {
	d.t.Helper()
	user := "packages-" + role
	d.run("kubectl create rolebinding " + user + " -n orders --clusterrole=janus-" + role + " --user=" + user)
	rights, since := d.rightsOf(rbacv1.Subject{Kind: rbacv1.UserKind, Name: user}), time.Now()
	d.until("kubectl auth can-i list txn -n orders --as="+user, "yes")
	d.run(strings.ReplaceAll(script, "AS", "--as="+user+" --as-group=packages-namers"))
	d.exactly(user, rights, since)
}
