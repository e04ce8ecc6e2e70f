package input

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// planned writes the plan of a Transaction down, a line for each item and field.
func planned(txn *api.Transaction) string {
	var out strings.Builder
	for _, item := range txn.Status.Items {
		if item.Plan == nil {
			fmt.Fprintf(&out, "%s: %s\n", item.Name, item.Reason)
			continue
		}
		fmt.Fprintf(&out, "%s: %s", item.Name, item.Plan.Effect)
		if item.Plan.Deferred != "" {
			fmt.Fprintf(&out, " (%s)", item.Plan.Deferred)
		}
		for _, f := range item.Plan.Fields {
			fmt.Fprintf(&out, "\n  %s: %s -> %s", f.Field, f.Before, f.After)
		}
		if item.Plan.More > 0 {
			fmt.Fprintf(&out, "\n  and %d more", item.Plan.More)
		}
		for _, taken := range item.Taken {
			fmt.Fprintf(&out, "\n  takes %s from %s", strings.Join(taken.Fields, ", "), taken.Manager)
		}
		out.WriteString("\n")
	}
	return strings.ReplaceAll(out.String(), txn.Namespace, "shop")
}

func TestAPlanSaysWhatEachChangeWouldDo(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: app, annotations: {note: old}}
data: {version: "1", gone: "yes"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}, {name: log, image: "log:1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: old}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {key: canary-old, same: canary-same}
`)
	before := map[string]*unstructured.Unstructured{}
	for _, ref := range []string{"ConfigMap/app", "Deployment/web", "ConfigMap/old", "Secret/key"} {
		before[ref] = e.Object(ref)
	}
	e.Start()
	txn := e.Run("plan", `
dryRun: true
changes:
  - {name: app, target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Update, content: {metadata: {annotations: {note: new}}, data: {version: "2", "a.b": "x"}}}
  - {name: web, target: {apiVersion: apps/v1, kind: Deployment, name: web}, type: Patch, content: {spec: {template: {spec: {containers: [{name: web, image: "web:2"}]}}}}}
  - {name: same, target: {apiVersion: v1, kind: Secret, name: key}, type: Patch, content: {stringData: {same: canary-same, key: canary-new, more: canary-more}}}
  - {name: old, target: {apiVersion: v1, kind: ConfigMap, name: old}, type: Delete}
  - {name: none, target: {apiVersion: v1, kind: ConfigMap, name: none}, type: Delete}
  - {name: new, target: {apiVersion: v1, kind: ConfigMap, name: new}, type: Create, content: {data: {made: "yes"}}}
  - {name: again, target: {apiVersion: v1, kind: ConfigMap, name: new}, type: Patch, content: {data: {made: "no"}}}
`)
	assert.Equal(t, api.PhasePlanned, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, `app: Change
  .data.a.b:  -> "x"
  .data.gone: "yes" -> 
  .data.version: "1" -> "2"
  .metadata.annotations.note: "old" -> "new"
  takes .data.gone, .data.version, .metadata.annotations.note from tester
web: Change
  .spec.template.spec.containers[name="web"].image: "web:1" -> "web:2"
  takes .spec.template.spec.containers[name="web"].image from tester
same: Change
  .data.key: *** (before) -> *** (after)
  .data.more:  -> *** (after)
old: Delete
none: None
new: Create
  .data.made:  -> "yes"
again: Deferred (item new changes ConfigMap shop/new first)
`, planned(txn))
	status, reason, message := harness.Condition(txn, api.ConditionReady)
	assert.Equal(t, []string{"True", "Planned"}, []string{status, reason}, message)
	status, _, message = harness.Condition(txn, api.ConditionValidated)
	assert.Equal(t, "True", status)
	assert.Contains(t, message, "6 of 7 changes were tried without effect, and accepted; deferred: item again (item new changes ConfigMap ")
	assert.Equal(t, "0/7", txn.Status.Progress)
	assert.Empty(t, txn.Finalizers)
	e.Same(nil, "ConfigMap/new")
	for ref, was := range before {
		e.Same(was, ref)
	}
	assert.Empty(t, testcluster.Filter(e.Audit(), testcluster.InNamespace(e.Namespace), testcluster.Persisted,
		func(r testcluster.AuditEvent) bool { return r.ImpersonatedUser != "" && r.Verb != "delete" }), "nothing but dry runs, of which the body of a deletion tells")
	e.NothingLeft("plan")
}

func TestAPlanReportsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.TwoConfigMaps)
	e.Start()
	txn := e.Run("plan", `
dryRun: true
changes:
  - {name: fine, target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {version: "2"}}}
  - {name: kind, target: {apiVersion: example.com/v1, kind: Gizmo, name: a}, type: Delete}
  - {name: missing, target: {apiVersion: v1, kind: ConfigMap, name: missing}, type: Patch, content: {data: {a: b}}}
  - {name: exists, target: {apiVersion: v1, kind: ConfigMap, name: app-2}, type: Create, content: {data: {a: b}}}
  - {name: field, target: {apiVersion: v1, kind: ConfigMap, name: third}, type: Create, content: {daat: {a: b}}}
  - {name: right, target: {apiVersion: v1, kind: Node, name: a}, type: Patch, content: {metadata: {labels: {a: b}}}}
  - {name: taken, target: {apiVersion: v1, kind: ConfigMap, name: app-2}, type: Patch, force: false, content: {data: {version: "3"}}}
  - {name: job, target: {apiVersion: batch/v1, kind: Job, name: a}, type: Delete}
`)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	var reasons []string
	for _, item := range txn.Status.Items {
		reasons = append(reasons, item.Name+" "+item.Reason)
		assert.Equal(t, item.Reason == "", item.Message == "", item.Name)
	}
	assert.Equal(t, []string{
		"fine ", "kind KindNotFound", "missing NotFound", "exists AlreadyExists", "field Invalid", "right AccessDenied", "taken ", "job Irreversible",
	}, reasons)
	status, reason, message := harness.Condition(txn, api.ConditionValidated)
	assert.Equal(t, []string{"False", "ValidationFailed"}, []string{status, reason})
	assert.Contains(t, message, "with 6 of 8 changes (kind, missing, exists, field, right, job): item kind: ")
	assert.Equal(t, "kind", txn.Status.FailedItem)
	e.NothingLeft("plan")
}

// What another Transaction has in flight is not there for good: it may be rolled back.
func TestAChangeOfALockedTargetIsNotFoundImpossibleBeforeItsTime(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.ConfigMap)
	name := leaseOfApp(t, e, "alice@example.com", 3600)
	e.Start()
	const change = "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Create, content: {data: {a: b}}}]"
	plan := e.Run("plan", "dryRun: true\n"+change)
	assert.Equal(t, "0: Deferred (ConfigMap shop/app is locked by alice@example.com)\n", planned(plan))
	e.Submit("waits", change)
	waitsFor(t, e, "waits", "alice@example.com")
	require.NoError(t, e.Kube.CoordinationV1().Leases(e.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	txn := e.Ended("waits")
	harness.Ending{Reason: "AlreadyExists", Says: []string{"ConfigMap " + e.Namespace + "/app", "it exists already"}}.Check(t, e, txn)
	e.NothingLeft("waits")
}

// All that etcd has stored is searched: a plan names the fields of a Secret, and no value.
func TestAPlanKeepsTheContentOfSecrets(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	cluster := testcluster.Shared(t)
	secret := "canary-" + e.Namespace
	begun, err := cluster.StoreRevision(t.Context())
	require.NoError(t, err)
	e.Apply(`
apiVersion: v1
kind: Secret
metadata: {name: app, annotations: {note: ` + secret + `}, finalizers: ["example.com/` + secret[:40] + `"]}
stringData: {password: ` + secret + `, user: app}
---
apiVersion: v1
kind: Secret
metadata: {name: old}
stringData: {password: ` + secret + `}
`)
	e.Start()
	txn := e.Run("plan", `
dryRun: true
changes:
  - {target: {apiVersion: v1, kind: Secret, name: app}, type: Update, content: {stringData: {user: new}}}
  - {target: {apiVersion: v1, kind: Secret, name: old}, type: Patch, content: {data: {password: ""}, stringData: {user: new}}}
  - {target: {apiVersion: v1, kind: Secret, name: old}, type: Delete}
`)
	assert.Equal(t, api.PhasePlanned, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, 1, strings.Count(planned(txn), ".data.password: *** (before) -> \n"), planned(txn))
	assert.NotContains(t, planned(txn), secret)

	stored, err := cluster.StoredSince(t.Context(), begun)
	require.NoError(t, err)
	for _, s := range stored {
		if saysIn(string(s.Value), secret) {
			assert.True(t, strings.HasPrefix(s.Key, "/registry/secrets/"+e.Namespace+"/"), "%s has the content of a Secret at revision %d", s.Key, s.Revision)
		}
	}
	e.Merge("tester", "Secret/app", `{"metadata": {"finalizers": null}}`)
	e.NothingLeft("plan")
}

// What was tried before the locks holds for the target as it was then.
func TestAChangeIsTriedAgainOnATargetThatSomebodyHasWritten(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]bool{"untouched": false, "written": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Apply(fixture.ConfigMap)
			lease := leaseOfApp(t, e, "alice@example.com", 3600)
			e.Start()
			e.Submit("txn", fixture.OneChange("Patch", `{data: {version: "2.0"}}`))
			waitsFor(t, e, "txn", "alice@example.com")
			if written {
				e.Merge("somebody", "ConfigMap/app", `{"data": {"theirs": "yes"}}`)
			}
			before := e.Object("ConfigMap/app")
			require.NoError(t, e.Kube.CoordinationV1().Leases(e.Namespace).Delete(t.Context(), lease, metav1.DeleteOptions{}))
			txn := e.Ended("txn")
			assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			assert.Equal(t, before.GetResourceVersion(), txn.Status.Items[0].Before.ResourceVersion, "what is saved is what is there under the lock")
			tried := testcluster.Filter(e.Audit(), testcluster.InNamespace(e.Namespace), testcluster.OnResource("", "configmaps"),
				func(r testcluster.AuditEvent) bool { return r.DryRun && r.Verb == "patch" })
			assert.Len(t, tried, map[bool]int{false: 1, true: 2}[written])
			e.NothingLeft("txn")
		})
	}
}
