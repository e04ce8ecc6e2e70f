package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// looking is for how long a test counts the looks at what is waited for. Without a watch there are
// eight of them.
const looking = 8 * time.Second

// a gate is a Transaction that waits for a ConfigMap of another client.
const aGate = `
timeout: 5m
changes:
- name: gate
  type: Await
  target: {apiVersion: v1, kind: ConfigMap, name: gate}
  readyWhen: {expression: object.data.open == "yes"}
- {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: made}, content: {data: {a: b}}}
`

// waiting waits until a Transaction is seen to wait for a reason.
func waiting(e *harness.Env, name, reason string) {
	e.Await(name, "waiting: "+reason, func(txn *api.Transaction) bool {
		_, found, _ := harness.Condition(txn, api.ConditionReconciling)
		return found == reason
	})
}

// looksAt counts how often an object was read since then.
func looksAt(e *harness.Env, since time.Time, resource, name string) int {
	return len(testcluster.Filter(e.Audit(), func(r testcluster.AuditEvent) bool {
		return r.Verb == "get" && r.Namespace == e.Namespace && r.Resource == resource && r.Name == name && r.Received.After(since)
	}))
}

// commits fails unless a Transaction commits before it would be looked at again.
func commits(t *testing.T, e *harness.Env, name string, began time.Time) {
	t.Helper()
	txn := e.Ended(name)
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Less(t, time.Since(began), time.Minute, "it was not told, but looked again")
}

// An object that another client makes, changes or deletes is watched, and not looked at meanwhile.
func TestAWaitIsToldOfWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Submit("txn", aGate)
	waiting(e, "txn", "NotReady")
	time.Sleep(2 * time.Second) // The watch has begun.
	began := time.Now()
	time.Sleep(looking)
	assert.LessOrEqual(t, looksAt(e, began, "configmaps", "gate"), 1)
	began = time.Now()
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: gate}, data: {open: "no"}}`)
	e.Until("it is looked at", func() bool { return looksAt(e, began, "configmaps", "gate") > 0 })
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: gate}, data: {open: "yes"}}`)
	commits(t, e, "txn", began)
}

// A ServiceAccount that may read an object and not watch it waits all the same.
func TestAWaitForWhatMayNotBeWatchedLooksAgain(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, create, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader}]
`)
	e.Start()
	e.Submit("txn", "serviceAccountName: reader"+aGate)
	waiting(e, "txn", "NotReady")
	began := time.Now()
	time.Sleep(looking)
	assert.Greater(t, looksAt(e, began, "configmaps", "gate"), 1)
	began = time.Now()
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: gate}, data: {open: "yes"}}`)
	commits(t, e, "txn", began)
}

// Who waits for a lock is told when its holder ends; of several each gets it in turn.
func TestAReleasedLockWakesWhoWaitsForIt(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Submit("holder", aGate)
	waiting(e, "holder", "NotReady")
	const waiters = 4
	for n := range waiters {
		name := fmt.Sprintf("waiter-%d", n)
		e.Submit(name, `
timeout: 5m
changes:
- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: made}, content: {data: {by-`+fmt.Sprint(n)+`: b}}}
`)
		waiting(e, name, errclass.LockHeld)
	}
	time.Sleep(2 * time.Second)
	began := time.Now()
	time.Sleep(looking)
	for n := range waiters {
		assert.LessOrEqual(t, looksAt(e, began, "transactions", fmt.Sprintf("waiter-%d", n)), 1)
	}
	began = time.Now()
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: gate}, data: {open: "yes"}}`)
	commits(t, e, "holder", began)
	for n := range waiters {
		commits(t, e, fmt.Sprintf("waiter-%d", n), began)
	}
}

// A rollback waits for the finalizer of another client, and a change for the object that has its content.
func TestFinalizersAndSourcesAreTold(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/held]}, data: {a: b}}`)
	e.Start()
	for name, spec := range map[string]string{
		"deletes": `{type: Delete, target: {apiVersion: v1, kind: ConfigMap, name: held}}`,
		"sourced": `{type: Create, target: {apiVersion: v1, kind: ConfigMap, name: sourced}, contentFrom: {configMapKeyRef: {name: source, key: content}}}`,
	} {
		e.Submit(name, "timeout: 5m\nchanges:\n- "+spec)
	}
	waiting(e, "deletes", errclass.Terminating)
	waiting(e, "sourced", errclass.ContentMissing)
	time.Sleep(2 * time.Second)
	began := time.Now()
	time.Sleep(looking)
	for _, name := range []string{"held", "source"} {
		assert.LessOrEqual(t, looksAt(e, began, "configmaps", name), 2, name)
	}
	began = time.Now()
	e.Merge("other", "ConfigMap/held", `{"metadata": {"finalizers": null}}`)
	e.Apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: source}
data: {content: "data: {a: b}"}
`)
	commits(t, e, "deletes", began)
	commits(t, e, "sourced", began)
}
