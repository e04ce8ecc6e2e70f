package packages

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/lockmgr"
)

// rightsFixture is what Transactions in the namespace orders need, and a user who may
// scrape metrics. The ServiceAccount may do everything: it is not its rights that count
// here.
const rightsFixture = `
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ServiceAccount, metadata: {name: orders-sa, namespace: orders}}
  - {apiVersion: v1, kind: ServiceAccount, metadata: {name: scraper, namespace: orders}}
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRoleBinding
    metadata: {name: packages-test}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
    subjects: [{kind: ServiceAccount, name: orders-sa, namespace: orders}]
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: orders}, data: {colour: blue}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: orders, finalizers: [example.com/held]}}
  - {apiVersion: v1, kind: Secret, metadata: {name: key, namespace: orders}, stringData: {colour: blue}}
  # A dry run uses nothing up: the second Service is refused only when it is made.
  - {apiVersion: v1, kind: ResourceQuota, metadata: {name: services, namespace: orders}, spec: {hard: {count/services: "1"}}}
`

// owned are ConfigMaps with an owner that knows how to take its fields again.
func owned(colour string) string {
	var out strings.Builder
	for _, name := range ownedNames {
		fmt.Fprintf(&out, "\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: orders}, data: {colour: %s}}\n", name, colour)
	}
	return "kubectl apply -f - <<'END'" + out.String() + "END\n"
}

var ownedNames = []string{"first", "second", "third", "fourth", "fifth", "sixth"}

// paints changes a ConfigMap and a Secret, so that there are before-images of both kinds.
func paints(colour string) string {
	return strings.ReplaceAll(`
    - {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: settings}, content: {data: {colour: PAINT}}}
    - {type: Patch, target: {apiVersion: v1, kind: Secret, name: key}, content: {stringData: {colour: PAINT}}}`, "PAINT", colour)
}

// create makes a Transaction in the namespace orders.
func (d *desk) create(name, spec string) {
	d.t.Helper()
	d.run("kubectl create -n orders -f - <<'END'\napiVersion: backup.janus.io/v1alpha1\nkind: Transaction\nmetadata: {name: " + name + "}\n" +
		"spec:\n  serviceAccountName: orders-sa\n  " + strings.TrimSpace(spec) + "\nEND")
}

// ends waits for the end of a Transaction, and wants it to be in a phase.
func (d *desk) ends(name string, phase v1alpha1.Phase) {
	d.t.Helper()
	assert.Equal(d.t, string(phase), d.run("kubectl wait -n orders txn/"+name+
		" --for=jsonpath='{.status.completionTime}' --timeout=2m -o jsonpath='{.status.phase}'"), name)
}

// commitsAndHistory commits one Transaction, and another for which the first is forgotten,
// and undoes that.
func (d *desk) commitsAndHistory() {
	d.t.Helper()
	d.create("plans", "dryRun: true\n  changes:"+paints("red"))
	d.ends("plans", v1alpha1.PhasePlanned)
	d.create("commits", "revisionHistoryLimit: 1\n  changes:"+paints("red"))
	d.ends("commits", v1alpha1.PhaseCommitted)
	d.create("follows", "revisionHistoryLimit: 1\n  changes:"+paints("green"))
	d.ends("follows", v1alpha1.PhaseCommitted)
	d.create("undoes", "revisionHistoryLimit: 1\n  undoOf: {name: follows}")
	d.ends("undoes", v1alpha1.PhaseCommitted)
	assert.Equal(d.t, "red", d.run("kubectl get configmap settings -n orders -o jsonpath='{.data.colour}'"))

	d.create("expires", "ttlSecondsAfterFinished: 0\n  changes:"+paints("red"))
	d.run("kubectl wait -n orders txn/expires --for=delete --timeout=1m")
}

// never makes a change one that does not become ready.
func never(change string) string {
	return strings.Replace(change, "type: Patch", `readyWhen: {expression: "object.data.colour == 'none'"}, type: Patch`, 1)
}

// lands waits until a change of a Transaction has landed.
func (d *desk) lands(name string, item int) {
	d.t.Helper()
	d.until(fmt.Sprintf("kubectl get txn -n orders %s -o jsonpath='{.status.items[%d].state}'", name, item), "Committed")
}

// rollsBack has a Transaction refused, one cancelled, one deleted, and one whose fields
// their owner has taken again.
func (d *desk) rollsBack() {
	d.t.Helper()
	d.until("kubectl get quota services -n orders -o jsonpath='{.status.used}'", `{"count/services":"0"}`)
	d.create("rolls-back", "changes:"+paints("green")+"\n    - "+one+"\n    - "+two)
	d.ends("rolls-back", v1alpha1.PhaseRolledBack)

	for name, end := range map[string]string{
		"is-cancelled": `kubectl patch txn -n orders is-cancelled --type=merge -p '{"spec": {"suspend": true}}' &&
			kubectl patch txn -n orders is-cancelled --type=merge -p '{"spec": {"cancel": "Rollback"}}'`,
		"is-deleted": "kubectl delete txn -n orders is-deleted --cascade=foreground --timeout=2m",
	} {
		d.create(name, "onDelete: Rollback\n  changes:\n    - "+never(green))
		d.lands(name, 0)
		d.run(end)
	}
	d.ends("is-cancelled", v1alpha1.PhaseRolledBack)

	d.isReclaimed()
	assert.Equal(d.t, "red", d.run("kubectl get configmap settings -n orders -o jsonpath='{.data.colour}'"))
}

// isReclaimed has a Transaction rolled back whose fields their owner has taken again, and
// wants to be told of each item, however few writes of the status they ended in.
func (d *desk) isReclaimed() {
	d.t.Helper()
	d.run(owned("blue"))
	var changes []string
	for _, name := range ownedNames {
		changes = append(changes, strings.Replace(green, "name: settings", "name: "+name, 1))
	}
	last := len(changes) - 1
	changes[last] = never(changes[last])
	d.create("is-reclaimed", "changes:\n    - "+strings.Join(changes, "\n    - "))
	d.lands("is-reclaimed", last)
	d.run(owned("black") + `kubectl patch txn -n orders is-reclaimed --type=merge -p '{"spec": {"cancel": "Rollback"}}'`)
	d.ends("is-reclaimed", v1alpha1.PhaseRolledBack)
	var told []string
	for i := range ownedNames {
		told = append(told, fmt.Sprintf("status.items{%d}", i))
	}
	d.until(`kubectl get events -n orders --field-selector=involvedObject.name=is-reclaimed,reason=Reclaimed`+
		` -o jsonpath='{range .items[*]}{.involvedObject.fieldPath}{"\n"}{end}' | sort`, strings.Join(told, "\n"))
}

// waits has a Transaction wait for the lock of a holder that does not renew it.
func (d *desk) waits() {
	d.t.Helper()
	lock := lockmgr.Key{ID: objectid.ID{Resource: "configmaps", Namespace: "orders", Name: "settings"}, Kind: "ConfigMap"}.LeaseName()
	d.run("kubectl create -f - <<'END'\n" +
		"{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: " + lock + ", namespace: orders}," +
		" spec: {holderIdentity: somebody, leaseDurationSeconds: 1, renewTime: '" + time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") + "'}}\nEND")
	d.create("waits", "changes:"+paints("red"))
	d.ends("waits", v1alpha1.PhaseCommitted)
}

// reachesOut has targets in another namespace and, where janusd may lock them, a namespace
// that a Transaction makes with an object in it.
func (d *desk) reachesOut(all bool) {
	d.t.Helper()
	d.create("is-elsewhere", "changes:\n    - "+elsewhat)
	if !all {
		d.ends("is-elsewhere", v1alpha1.PhaseFailed)
		return
	}
	d.ends("is-elsewhere", v1alpha1.PhaseCommitted)
	d.create("makes-room", `changes:
    - {type: Create, target: {apiVersion: v1, kind: Namespace, name: packages-room}, content: {}}
    - {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: table, namespace: packages-room}, content: {data: {a: b}}}`)
	d.ends("makes-room", v1alpha1.PhaseCommitted)
	d.run("kubectl delete configmap elsewhere -n default && kubectl delete namespace packages-room")
}

// isKilled kills janusd while it waits for a finalizer. The next one takes its place, buries
// it and finishes its work.
func (d *desk) isKilled(j *janusd, all bool) *janusd {
	d.t.Helper()
	d.create("has-ended", "changes:\n    - "+green)
	d.ends("has-ended", v1alpha1.PhaseCommitted)
	d.create("survives", `changes:
    - {type: Delete, target: {apiVersion: v1, kind: ConfigMap, name: held}}`)
	d.until("kubectl get configmap held -n orders -o jsonpath='{.metadata.deletionTimestamp}' | grep -c .", "1")
	j.kill()
	// An API server that does not stream lists, as Kubernetes 1.33 by default.
	d.t.Setenv("KUBE_FEATURE_WatchListClient", "false")
	next := startJanusd(d, quickly)
	d.run(`kubectl patch configmap held -n orders --type=merge -p '{"metadata": {"finalizers": null}}'`)
	d.ends("survives", v1alpha1.PhaseCommitted)
	if all { // It looks for what the one that was killed may have left.
		require.Eventually(d.t, func() bool {
			return strings.Contains(next.Log(), "looked for what Transactions that ended a moment ago may have left")
		}, patience, 100*time.Millisecond)
	}
	return next
}
