package rollback

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// gated is a change that is not ready until it is cancelled.
const gated = `  - {name: gate, target: {apiVersion: v1, kind: ConfigMap, name: gate}, type: Create, content: {data: {a: b}}, readyWhen: {expression: has(object.data.go)}}
`

// rollBack waits until all changes before the one that is held are in effect, does
// something, and has the Transaction rolled back.
func rollBack(e *harness.Env, meanwhile func()) *api.Transaction {
	e.Until("the gate is made", func() bool { return e.Object("ConfigMap/gate") != nil })
	meanwhile()
	e.Merge("person", api.GroupVersion.String()+" Transaction/txn", `{"spec":{"cancel":"Rollback"}}`)
	return e.Ended("txn")
}

// mutating makes a policy for the namespace of the test that changes ConfigMaps and Secrets
// whose names begin with "altered-", "completed-", "stamped-" or "turning-", the last with another
// stamp at each write, and returns when it is in force.
func mutating(t *testing.T, e *harness.Env) {
	t.Helper()
	e.Apply(strings.NewReplacer("NAME", e.Namespace).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps, secrets]}]}
  matchConditions: [{name: named, expression: "request.name.startsWith('altered-') || request.name.startsWith('completed-') || request.name.startsWith('stamped-') || request.name.startsWith('turning-')"}]
  variables:
    - {name: stamp, expression: "request.name.startsWith('turning-') && has(object.metadata.resourceVersion) ? object.metadata.resourceVersion : 'policy'"}
  mutations:
    - patchType: JSONPatch
      jsonPatch:
        expression: >-
          request.name.startsWith('altered-') ? [JSONPatch{op: "add", path: "/data/version", value: "cG9saWN5"}] :
          request.name.startsWith('completed-') ? [JSONPatch{op: "add", path: "/data/extra", value: "cG9saWN5"}] : (
          has(object.metadata.annotations) ? [JSONPatch{op: "add", path: "/metadata/annotations/stamp", value: variables.stamp}] :
          [JSONPatch{op: "add", path: "/metadata/annotations", value: {"stamp": variables.stamp}}])
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAME}
spec:
  policyName: NAME
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}}
`))
	t.Cleanup(func() {
		admission := e.Kube.AdmissionregistrationV1()
		assert.NoError(t, admission.MutatingAdmissionPolicyBindings().Delete(context.Background(), e.Namespace, metav1.DeleteOptions{}))
		assert.NoError(t, admission.MutatingAdmissionPolicies().Delete(context.Background(), e.Namespace, metav1.DeleteOptions{}))
	})
	e.Until("the policy is in force", func() bool {
		probe := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "stamped-probe"}}}
		configMaps, err := e.For(probe.GroupVersionKind(), e.Namespace)
		require.NoError(t, err)
		made, err := configMaps.Create(e.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && made.GetAnnotations()["stamp"] == "policy"
	})
}

// one is a ConfigMap or Secret with a version, which reads the same in both.
func one(kind, name string) string {
	return fmt.Sprintf("---\n{apiVersion: v1, kind: %s, metadata: {name: %s}, data: {version: b25l}}\n", kind, name)
}

func changeOf(name, kind, target, change string) string {
	return fmt.Sprintf("  - {name: %s, target: {apiVersion: v1, kind: %s, name: %s}, type: %s}\n", name, kind, target, change)
}

const newData = "Patch, content: {data: {version: dHdv}}"

func TestARollbackSaysWhatAdmissionMakesOfIt(t *testing.T) {
	t.Parallel()
	rows := []struct{ name, kind, target, change string }{
		{"patch", "ConfigMap", "altered-patched", newData},
		{"update", "ConfigMap", "altered-updated", strings.Replace(newData, "Patch", "Update", 1)},
		{"delete", "ConfigMap", "altered-deleted", "Delete"},
		{"secret", "Secret", "altered-secret", newData},
		{"stamped", "ConfigMap", "stamped-patched", newData},
		{"stamped-update", "ConfigMap", "stamped-updated", strings.Replace(newData, "Patch", "Update", 1)},
		{"stamped-delete", "ConfigMap", "stamped-deleted", "Delete"},
		{"plain", "ConfigMap", "plain", newData},
	}
	e := harness.New(t)
	e.ClusterWide()
	changes := "changes:\n"
	for _, row := range rows {
		e.Apply(one(row.kind, row.target))
		changes += changeOf(row.name, row.kind, row.target, row.change)
	}
	e.Start()
	e.Submit("txn", changes+gated)

	txn := rollBack(e, func() { mutating(t, e) })

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	for i, row := range rows {
		item := txn.Status.Items[i]
		switch {
		case row.name == "plain":
			assert.Equal(t, api.ItemRolledBack, item.State, row.name)
			assert.Empty(t, item.Message, row.name)
		case strings.HasPrefix(row.target, "stamped-"):
			assert.Equal(t, api.ItemRolledBack, item.State, row.name)
			assert.Equal(t, "Restored", item.Reason, row.name)
			assert.Contains(t, item.Message, `.metadata.annotations.stamp, not wanted, stored "policy"`, row.name)
		case row.kind == "Secret":
			assert.Equal(t, api.ItemUnresolved, item.State, row.name)
			assert.Equal(t, errclass.Altered, item.Reason, row.name)
			assert.Contains(t, item.Message, ".data.version", row.name)
			assert.NotContains(t, fmt.Sprint(item), "b25l", "the value of a Secret is shown")
			assert.NotContains(t, fmt.Sprint(item), "cG9saWN5", "the value of a Secret is shown")
		default:
			assert.Equal(t, api.ItemUnresolved, item.State, row.name)
			assert.Equal(t, errclass.Altered, item.Reason, row.name)
			assert.Contains(t, item.Message, `.data.version, wanted "b25l", stored "cG9saWN5"`, row.name)
			assert.Equal(t, []api.FieldConflict{{Field: ".data.version", Now: `"cG9saWN5"`, Before: `"b25l"`}}, item.Conflicts, row.name)
		}
	}
	e.NothingLeft("txn")
}

// A policy that has come since the changes were tried is not foretold: what it makes of them
// is told when it has.
func TestACommitSaysWhatAdmissionMadeOfIt(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	e.Apply(one("ConfigMap", "altered-patched") + one("ConfigMap", "altered-updated") + one("Secret", "altered-secret") + one("ConfigMap", "stamped-patched") + one("ConfigMap", "plain"))
	update := strings.Replace(newData, "Patch", "Update", 1)
	e.Start()
	e.Submit("txn", "changes:\n"+gated+
		changeOf("patch", "ConfigMap", "altered-patched", newData)+changeOf("update", "ConfigMap", "altered-updated", update)+
		changeOf("create", "ConfigMap", "altered-created", strings.Replace(newData, "Patch", "Create", 1))+
		changeOf("secret", "Secret", "altered-secret", newData)+
		changeOf("stamped", "ConfigMap", "stamped-patched", newData)+changeOf("plain", "ConfigMap", "plain", newData))
	e.Until("the gate is made", func() bool { return e.Object("ConfigMap/gate") != nil })
	mutating(t, e)
	e.Merge("person", "ConfigMap/gate", `{"data":{"go":"on"}}`)

	txn := e.Ended("txn")

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	for _, item := range txn.Status.Items {
		switch item.Name {
		case "patch", "update", "create":
			require.Len(t, item.Warnings, 1, item.Name)
			assert.Contains(t, item.Warnings[0], `did not store what the content says: .data.version, wanted "dHdv", stored "cG9saWN5"`, item.Name)
		case "secret":
			require.Len(t, item.Warnings, 1, item.Name)
			assert.Contains(t, item.Warnings[0], ".data.version", item.Name)
			assert.NotContains(t, item.Warnings[0], "cG9saWN5", "the value of a Secret is shown")
		default:
			assert.Empty(t, item.Warnings, item.Name)
		}
	}
}

// What a policy that has come since adds to a change belongs to nobody, and was not foretold: it
// stays, and is named.
func TestARollbackSaysWhatAdmissionHasAddedToAChange(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	e.Apply(one("ConfigMap", "completed-patched") + one("ConfigMap", "completed-updated") + one("Secret", "completed-secret") + one("ConfigMap", "plain"))
	e.Start()
	e.Submit("txn", "changes:\n"+gated+
		changeOf("patch", "ConfigMap", "completed-patched", newData)+
		changeOf("update", "ConfigMap", "completed-updated", strings.Replace(newData, "Patch", "Update", 1))+
		changeOf("secret", "Secret", "completed-secret", newData)+changeOf("plain", "ConfigMap", "plain", newData)+
		strings.ReplaceAll(gated, "gate", "made"))
	e.Until("the gate is made", func() bool { return e.Object("ConfigMap/gate") != nil })
	mutating(t, e)
	e.Merge("person", "ConfigMap/gate", `{"data":{"go":"on"}}`)
	e.Until("the changes are made", func() bool { return e.Object("ConfigMap/made") != nil })
	e.Merge("person", "ConfigMap/plain", `{"data":{"theirs":"kept"}}`)
	e.Merge("person", api.GroupVersion.String()+" Transaction/txn", `{"spec":{"cancel":"Rollback"}}`)

	txn := e.Ended("txn")

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	for _, item := range txn.Status.Items[1:4] {
		assert.Equal(t, api.ItemUnresolved, item.State, item.Name)
		assert.Equal(t, errclass.Altered, item.Reason, item.Name)
		assert.Contains(t, item.Message, ".data.extra", item.Name)
		if item.Name == "secret" {
			assert.NotContains(t, fmt.Sprint(item), "cG9saWN5", "the value of a Secret is shown")
		} else {
			assert.Equal(t, []api.FieldConflict{{Field: ".data.extra", Now: `"cG9saWN5"`}}, item.Conflicts, item.Name)
		}
		assert.Equal(t, "b25l", e.Value(item.Target.Kind+"/"+item.Target.Name, "data", "version"), item.Name)
	}
	assert.Equal(t, api.ItemRolledBack, txn.Status.Items[4].State)
	assert.Empty(t, txn.Status.Items[4].Message)
	e.NothingLeft("txn")
}

// Anyone who makes the change has its answer, or looks at the target: so the warning is given
// whatever becomes of the request, and of who sent it.
func TestACommitSaysWhatAdmissionMadeOfItWhateverRequestIsLost(t *testing.T) {
	t.Parallel()
	for _, lost := range []faultinject.Fault{faultinject.CrashBefore, faultinject.CrashAfter, faultinject.LostReply, faultinject.FailedApplied} {
		for _, row := range []struct{ name, change, request string }{
			{"patched", newData, "PATCH configmaps/altered-patched"},
			{"updated", strings.Replace(newData, "Patch", "Update", 1), "PUT configmaps/altered-updated"},
			{"created", strings.Replace(newData, "Patch", "Create", 1), "POST configmaps/altered-created"},
		} {
			t.Run(fmt.Sprint(row.name, ", ", lost), func(t *testing.T) {
				t.Parallel()
				e := harness.New(t)
				e.ClusterWide()
				if row.name != "created" {
					e.Apply(one("ConfigMap", "altered-"+row.name))
				}
				line := harness.FaultAt(row.request, lost)
				transport, process := harness.Through(line)
				first := e.Start(transport)
				e.Submit("txn", "changes:\n"+gated+changeOf("it", "ConfigMap", "altered-"+row.name, row.change))
				e.Until("the gate is made", func() bool { return e.Object("ConfigMap/gate") != nil })
				mutating(t, e)
				e.Merge("person", "ConfigMap/gate", `{"data":{"go":"on"}}`)
				if lost == faultinject.CrashBefore || lost == faultinject.CrashAfter {
					<-process.Crashed()
					first.Stop()
					if lost == faultinject.CrashAfter {
						e.Merge("person", "ConfigMap/altered-"+row.name, `{"data":{"other":"theirs"}}`)
					}
					next, _ := harness.Through(line)
					e.Start(next)
				}

				txn := e.Ended("txn")

				assert.Empty(t, line.Missed())
				require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
				require.Len(t, txn.Status.Items[1].Warnings, 1)
				assert.Contains(t, txn.Status.Items[1].Warnings[0], `.data.version, wanted "dHdv", stored "cG9saWN5"`)
			})
		}
	}
}

// stampedChanges are a change of each type of objects that are there, and that a policy stamps.
func stampedChanges(prefix string) (objects, changes string) {
	update := strings.Replace(newData, "Patch", "Update", 1)
	return one("ConfigMap", prefix+"patched") + one("ConfigMap", prefix+"updated") + one("ConfigMap", prefix+"deleted"),
		"changes:\n" + changeOf("patch", "ConfigMap", prefix+"patched", newData) + changeOf("update", "ConfigMap", prefix+"updated", update) +
			changeOf("delete", "ConfigMap", prefix+"deleted", "Delete")
}

// A policy that stamps every write was there before the Transaction, and before the objects
// or after them: its stamp is on them after a rollback too, and is told of, and is no reason
// to call the rollback incomplete.
func TestARollbackUnderAPolicyThatStampsIsComplete(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"stamped-", "turning-"} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.ClusterWide()
			objects, changes := stampedChanges(prefix)
			if prefix == "stamped-" {
				e.Apply(objects)
				mutating(t, e)
			} else {
				mutating(t, e)
				e.Apply(objects)
			}
			e.Start()
			e.Submit("txn", changes+gated)

			txn := rollBack(e, func() {
				// The policy stamps what another client writes, too.
				e.Merge("person", "ConfigMap/"+prefix+"patched", `{"metadata":{"labels":{"theirs":"kept"}}}`)
			})

			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			for _, item := range txn.Status.Items[:3] {
				assert.Equal(t, api.ItemRolledBack, item.State, item.Name)
				assert.Equal(t, "Restored", item.Reason, item.Name)
				assert.Contains(t, item.Message, ".metadata.annotations.stamp", item.Name)
				assert.Equal(t, "b25l", e.Value("ConfigMap/"+prefix+item.Name+map[string]string{"patch": "ed", "update": "d", "delete": "d"}[item.Name], "data", "version"))
			}
			assert.Equal(t, "kept", e.Object("ConfigMap/" + prefix + "patched").GetLabels()["theirs"])
			e.NothingLeft("txn")
		})
	}
}

// A stamp that a policy puts on every write makes nobody the writer of it: it is no conflict
// for an undo.
func TestAnUndoUnderAPolicyThatStampsIsMade(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	mutating(t, e)
	objects, changes := stampedChanges("turning-")
	e.Apply(objects)
	e.Start()
	require.Equal(t, api.PhaseCommitted, e.Run("txn", changes+"revisionHistoryLimit: 5\n").Status.Phase)

	undo := e.Run("undo", "undoOf: {name: txn}")

	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
	for _, item := range undo.Status.Items {
		assert.Equal(t, "b25l", e.Value("ConfigMap/"+item.Target.Name, "data", "version"), item.Name)
		if item.Name != "delete" { // A creation gets the stamp that it had.
			assert.Contains(t, strings.Join(item.Warnings, " "), ".metadata.annotations.stamp", item.Name)
		}
	}
}

func TestAnUndoSaysWhatAdmissionMakesOfIt(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	e.Apply(one("ConfigMap", "altered-patched") + one("ConfigMap", "altered-deleted"))
	e.Start()
	txn := e.Run("txn", "revisionHistoryLimit: 10\nchanges:\n"+
		changeOf("patch", "ConfigMap", "altered-patched", newData)+changeOf("delete", "ConfigMap", "altered-deleted", "Delete"))
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	mutating(t, e)

	txn = e.Run("undo", "undoOf: {name: txn}")

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	for _, item := range txn.Status.Items {
		assert.Contains(t, strings.Join(item.Warnings, "\n"), `.data.version, wanted "b25l", stored "cG9saWN5"`, item.Name)
	}
}

// redefineCups gives the kind other versions, and returns when they are in force: a
// dry-run creation of the probe is then answered as said.
func redefineCups(t *testing.T, e *harness.Env, group, versions, probe string, inForce func(made *unstructured.Unstructured, err error) bool) {
	t.Helper()
	crds := dials{Env: e, t: t}.crds()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions","value":%s}]`, jsonOf(t, "["+versions+"]"))
	_, err := crds.Patch(e.Context(), "cups."+group, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	objects, err := harness.Decode(probe)
	require.NoError(t, err)
	e.Until("the new schema is in force", func() bool {
		client, err := e.For(objects[0].GroupVersionKind(), e.Namespace)
		require.NoError(t, err)
		made, err := client.Create(e.Context(), objects[0].DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		return inForce(made, err)
	})
}

func TestACustomResourceIsNotMadeAgainWithoutAFieldThatItsKindHasLost(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := fixture.DefineCups(t, e, fixture.CupVersion("v1", true, "a: {type: string}, b: {type: string}"))
	cup := "{apiVersion: " + group + "/v1, kind: Cup, metadata: {name: two}, spec: {a: \"1\", b: \"1\"}}"
	e.Apply(cup)
	e.Start()
	e.Submit("txn", "changes:\n  - {target: {apiVersion: "+group+"/v1, kind: Cup, name: two}, type: Delete}\n"+gated)

	txn := rollBack(e, func() {
		redefineCups(t, e, group, fixture.CupVersion("v1", true, "a: {type: string}"), cup, func(_ *unstructured.Unstructured, err error) bool { return err != nil })
	})

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	item := txn.Status.Items[0]
	assert.Equal(t, api.ItemUnresolved, item.State)
	assert.Equal(t, errclass.Invalid, item.Reason)
	assert.Contains(t, item.Message, "spec.b")
	assert.Nil(t, e.Object(group+"/v1 Cup/two"))
	e.NothingLeft("txn")
}

func TestADefaultThatAKindHasComeToHaveIsSaidAndIsNoFailure(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := fixture.DefineCups(t, e, fixture.CupVersion("v1", true, "a: {type: string}, n: {type: object, properties: {x: {type: integer}}}"))
	cup := "{apiVersion: " + group + "/v1, kind: Cup, metadata: {name: NAME}, spec: {a: \"1\"}}"
	e.Apply(strings.Replace(cup, "NAME", "deleted", 1) + "\n---\n" + strings.Replace(cup, "NAME", "patched", 1))
	e.Start()
	e.Submit("txn", "changes:\n  - {target: {apiVersion: "+group+"/v1, kind: Cup, name: deleted}, type: Delete}\n"+
		"  - {target: {apiVersion: "+group+"/v1, kind: Cup, name: patched}, type: Patch, content: {spec: {a: \"2\"}}}\n"+gated)

	txn := rollBack(e, func() {
		now := fixture.CupVersion("v1", true, "a: {type: string}, d: {type: string, default: new}, n: {type: object, default: {}, properties: {x: {type: integer, default: 3}}}")
		redefineCups(t, e, group, now, strings.Replace(cup, "NAME", "probe", 1), func(made *unstructured.Unstructured, err error) bool {
			d, _, _ := unstructured.NestedString(made.Object, "spec", "d")
			return err == nil && d == "new"
		})
	})

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, txn.Status.Items[0].Message, ".spec.d")
	assert.Equal(t, "Restored", txn.Status.Items[0].Reason)
	e.NothingLeft("txn")
}

func jsonOf(t *testing.T, text string) string {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	return string(out)
}
