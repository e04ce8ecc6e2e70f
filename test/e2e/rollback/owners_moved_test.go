package rollback

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// withOwner makes an object that others own.
func withOwner(t *testing.T, owners ...string) *harness.Env {
	t.Helper()
	e := harness.New(t)
	references := ""
	for _, owner := range owners {
		e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + owner + "}}")
		references += "{apiVersion: v1, kind: ConfigMap, name: " + owner + ", uid: " + string(e.Object("ConfigMap/"+owner).GetUID()) + "},"
	}
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [" + references + "]}, data: {a: old}}")
	return e
}

// ownedBy checks that an object has just these owners, as they are now.
func ownedBy(t *testing.T, e *harness.Env, owners ...string) {
	t.Helper()
	found := e.Object("ConfigMap/owned").GetOwnerReferences()
	require.Len(t, found, len(owners))
	for n, owner := range owners {
		assert.Equal(t, owner, found[n].Name)
		assert.Equal(t, e.Object("ConfigMap/"+owner).GetUID(), found[n].UID)
	}
	assert.Equal(t, "old", e.Value("ConfigMap/owned", "data", "a"))
}

// released are changes that take the owners off an object before the first of them is deleted.
const released = `
changes:
  - name: release
    type: Update
    target: {apiVersion: v1, kind: ConfigMap, name: owned}
    content: {data: {a: new}}
  - type: Delete
    target: {apiVersion: v1, kind: ConfigMap, name: first}
    dependsOn: [release]
`

// given are such changes that give the object another owner.
func given(e *harness.Env) string {
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: third}}")
	reference := "[{apiVersion: v1, kind: ConfigMap, name: third, uid: " + string(e.Object("ConfigMap/third").GetUID()) + "}]"
	return strings.Replace(released, "{data: {a: new}}", "{metadata: {ownerReferences: "+reference+"}, data: {a: new}}", 1)
}

var releases = map[string]struct {
	owners  []string
	changes func(e *harness.Env) string
}{
	"its only owner": {[]string{"first"}, func(*harness.Env) string { return released }},
	"one of two":     {[]string{"first", "second"}, func(*harness.Env) string { return released }},
	"of a graph":     {[]string{"first"}, func(*harness.Env) string { return "order: Graph\n" + released }},
	"for another":    {[]string{"first"}, given},
}

// A change takes the owners off an object before one of them is deleted: the rollback gives it that
// one back as it is then.
func TestARollbackGivesAnObjectTheOwnerThatItHasCreatedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range releases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := withOwner(t, c.owners...)
			e.Start()
			txn := e.Run("released", c.changes(e)+`
  - type: Create
    target: {apiVersion: v1, kind: ConfigMap, name: never}
    content: {data: {a: b}}
    dependsOn: [release]
    readyWhen: {expression: "has(object.data.go)", timeout: 1s}
`)
			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			assert.Contains(t, txn.Status.Items[0].Message, "its owner ConfigMap first has uid "+string(e.Object("ConfigMap/first").GetUID())+" now")
			ownedBy(t, e, c.owners...)
			e.NothingLeft("released")
		})
	}
}

func TestAnUndoGivesAnObjectTheOwnerThatItHasCreatedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range releases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := withOwner(t, c.owners...)
			e.Start()
			txn := e.Run("released", "revisionHistoryLimit: 10\n"+c.changes(e))
			require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			txn = e.Run("undo", "{undoOf: {name: released}}")
			assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			ownedBy(t, e, c.owners...)
		})
	}
}

// Both are deleted, the object before its owner, and an undo creates them again.
func TestAnUndoOfDeletionsGivesAnObjectItsOwnerAgain(t *testing.T) {
	t.Parallel()
	e := withOwner(t, "first")
	e.Start()
	committed(t, e, "deleted", `
{type: Delete, target: {apiVersion: v1, kind: ConfigMap, name: owned}},
{type: Delete, target: {apiVersion: v1, kind: ConfigMap, name: first}}`)
	txn := e.Run("undo", "{undoOf: {name: deleted}}")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	ownedBy(t, e, "first")
}

// An owner is deleted and another of its name created in its place, by the Transaction itself.
const replaced = `
  - {type: Delete, target: {apiVersion: v1, kind: ConfigMap, name: first}, propagationPolicy: PROPAGATION}
  - {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: first}, content: {data: {v: "2"}}}
`

// The one that the rollback is yet to delete is no owner: the garbage collector would delete the object
// with it.
func TestARollbackGivesAnObjectTheOwnerThatStays(t *testing.T) {
	t.Parallel()
	for _, propagation := range []string{"Background", "Orphan"} {
		t.Run(propagation, func(t *testing.T) {
			t.Parallel()
			e := withOwner(t, "first")
			e.Start()
			e.Submit("replaced", "changes:"+strings.Replace(replaced, "PROPAGATION", propagation, 1)+`
  - {type: Delete, target: {apiVersion: v1, kind: ConfigMap, name: owned}}
`+gate)
			txn := cancelAtGate(e, "replaced")
			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			ownedBy(t, e, "first")
		})
	}
}

func TestAnUndoGivesAnObjectTheOwnerThatStays(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"updated": "{type: Update, target: {apiVersion: v1, kind: ConfigMap, name: owned}, content: {data: {a: new}}}",
		"deleted": "{type: Delete, target: {apiVersion: v1, kind: ConfigMap, name: owned}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := withOwner(t, "first")
			e.Start()
			txn := e.Run("replaced", "revisionHistoryLimit: 10\nchanges:\n  - "+change+strings.Replace(replaced, "PROPAGATION", "Background", 1))
			require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			txn = e.Run("undo", "{undoOf: {name: replaced}}")
			assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			ownedBy(t, e, "first")
		})
	}
}

// The owner is a custom resource, and its definition was deleted after it.
func TestAnUndoGivesAnObjectAnOwnerWhoseKindIsServedLater(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := e.Namespace + ".example.com"
	e.Apply("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things." + group + "}, spec: {group: " + group +
		", scope: Namespaced, names: {plural: things, singular: thing, kind: Thing}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}}}]}}")
	e.Until("the owner is there", func() bool {
		return e.ApplyYAML(t.Context(), e.Namespace, "{apiVersion: "+group+"/v1, kind: Thing, metadata: {name: first}, spec: {a: x}}") == nil
	})
	uid := string(e.Object(group + "/v1 Thing/first").GetUID())
	e.Start()
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [{apiVersion: " + group + "/v1, kind: Thing, name: first, uid: " + uid + "}]}, data: {a: old}}")
	committed(t, e, "uninstall", `
{type: Update, target: {apiVersion: v1, kind: ConfigMap, name: owned}, content: {data: {a: new}}},
{type: Delete, target: {apiVersion: `+group+`/v1, kind: Thing, name: first}},
{type: Delete, target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: things.`+group+`}, acceptLoss: true}`)
	txn := e.Run("undo", "{undoOf: {name: uninstall, acceptLoss: true}}")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	owners := e.Object("ConfigMap/owned").GetOwnerReferences()
	require.Len(t, owners, 1)
	assert.Equal(t, e.Object(group+"/v1 Thing/first").GetUID(), owners[0].UID)
}

// What the owner needs to be created again is taken out of its way last.
func TestARollbackWaitsForTheOwnerThatItCreatesAgain(t *testing.T) {
	t.Parallel()
	e := withOwner(t, "first")
	e.Start()
	txn := e.Run("owned", `
changes:
  - type: Update
    target: {apiVersion: v1, kind: ConfigMap, name: owned}
    content: {data: {a: new}}
  - type: Create
    target: {apiVersion: v1, kind: ResourceQuota, name: tight}
    content: {spec: {hard: {count/configmaps: "3"}}}
    readyWhen: {expression: "has(object.status.used)", timeout: 30s}
  - type: Delete
    target: {apiVersion: v1, kind: ConfigMap, name: first}
  - type: Create
    target: {apiVersion: v1, kind: ConfigMap, name: never}
    content: {data: {a: b}}
`)
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	ownedBy(t, e, "first")
}

// sparesWithoutOwner takes the owner off an object, has the owner go, and rolls that back: the object stays
// without it, since the garbage collector would delete it, and every other field is restored.
func sparesWithoutOwner(t *testing.T, e *harness.Env, account string, goes func() error, reason string) api.Item {
	t.Helper()
	e.Start()
	e.Submit("owned", "serviceAccountName: "+account+`
changes:
  - type: Update
    target: {apiVersion: v1, kind: ConfigMap, name: owned}
    content: {data: {a: new}}
`+gate)
	e.Until("all changes are made", func() bool { return e.Object("ConfigMap/gate") != nil })
	require.NoError(t, goes())
	txn := cancelAtGate(e, "owned")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, reason, txn.Status.Items[0].Reason, harness.Describe(txn))
	ownedBy(t, e)
	return txn.Status.Items[0]
}

func TestARollbackSparesAnObjectWhoseFormerOwnerIsGone(t *testing.T) {
	t.Parallel()
	e := withOwner(t, "first")
	sparesWithoutOwner(t, e, "deployer", func() error {
		return e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), "first", metav1.DeleteOptions{})
	}, errclass.OwnerGone)
}

func TestARollbackSparesAnObjectWhoseFormerOwnerIsBeingDeleted(t *testing.T) {
	t.Parallel()
	e := withOwner(t, "first")
	e.Merge("tester", "ConfigMap/first", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	sparesWithoutOwner(t, e, "deployer", func() error {
		return e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), "first", metav1.DeleteOptions{})
	}, errclass.OwnerGone)
	e.Merge("tester", "ConfigMap/first", `{"metadata":{"finalizers":null}}`)
}

// Whether the owner is there must be known before the reference is restored.
func TestARollbackSparesAnObjectWhoseFormerOwnerItMayNotRead(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply("{apiVersion: v1, kind: Secret, metadata: {name: first}}")
	uid := string(e.Object("Secret/first").GetUID())
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [{apiVersion: v1, kind: Secret, name: first, uid: " + uid + "}]}, data: {a: old}}")
	e.Apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: limited}}")
	e.Apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: limited}, rules: [{apiGroups: [''], resources: [configmaps], verbs: ['*']}]}")
	e.Apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: limited}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: limited}, subjects: [{kind: ServiceAccount, name: limited}]}")
	item := sparesWithoutOwner(t, e, "limited", func() error {
		return e.Kube.CoreV1().Secrets(e.Namespace).Delete(t.Context(), "first", metav1.DeleteOptions{})
	}, errclass.AccessDenied)
	assert.NotEmpty(t, item.Warnings, "it was told before")
}
