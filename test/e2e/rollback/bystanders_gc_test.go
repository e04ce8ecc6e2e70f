package rollback

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// operatorKinds installs the kinds of an operator: a Provider and its Revision in the
// cluster, a Database in a namespace. It gives their group.
func operatorKinds(t *testing.T, e *harness.Env) (group string) {
	t.Helper()
	group = strings.ReplaceAll(e.Namespace, "-", "") + ".example.com"
	for _, kind := range []string{"Provider Cluster", "Revision Cluster", "Database Namespaced"} {
		name, scope, _ := strings.Cut(kind, " ")
		e.Apply(definition(group, name, scope, ""))
		t.Cleanup(func() { dropDefinition(e, group, name) })
	}
	for _, kind := range []string{"Provider", "Revision", "Database"} {
		e.Served(group + "/v1 " + kind)
	}
	return group
}

func definition(group, kind, scope, meta string) string {
	return strings.NewReplacer("GROUP", group, "KIND", kind, "PLURAL", strings.ToLower(kind)+"s", "SCOPE", scope, "META", meta).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.GROUPMETA}
spec:
  group: GROUP
  scope: SCOPE
  names: {kind: KIND, plural: PLURAL}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`)
}

func dropDefinition(e *harness.Env, group, kind string) {
	client, err := e.For(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "")
	if err == nil {
		_ = client.Delete(context.Background(), strings.ToLower(kind)+"s."+group, metav1.DeleteOptions{})
	}
}

// ownerOf is the metadata of an object that another owns.
func ownerOf(e *harness.Env, ref string) string {
	owner := e.Object(ref)
	return fmt.Sprintf(", ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true}]", owner.GetAPIVersion(), owner.GetKind(), owner.GetName(), owner.GetUID())
}

// provider plays the operator of a Provider: that owns a revision, and that a definition,
// of which others have made an object.
func provider(t *testing.T, e *harness.Env, group string) {
	t.Helper()
	e.Apply("{apiVersion: " + group + "/v1, kind: Revision, metadata: {name: r" + ownerOf(e, group+"/v1 Provider/p") + "}}")
	e.Apply(definition(group, "Bucket", "Namespaced", ownerOf(e, group+"/v1 Revision/r")))
	t.Cleanup(func() { dropDefinition(e, group, "Bucket") })
	e.Served(group + "/v1 Bucket")
	e.Apply("{apiVersion: " + group + "/v1, kind: Bucket, metadata: {name: theirs}}")
}

func deleteOf(group, kind, name, more string) string {
	return fmt.Sprintf("changes:\n  - {type: Delete, target: {apiVersion: %s/v1, kind: %s, name: %s}%s}\n", group, kind, name, more)
}

// The plan shows one deletion; it would destroy all objects of a kind.
func TestADeletionIsRefusedForWhatTheGarbageCollectorWouldTakeAlong(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := operatorKinds(t, e)
	e.Apply("{apiVersion: " + group + "/v1, kind: Provider, metadata: {name: p}}")
	provider(t, e, group)
	e.Apply("{apiVersion: " + group + "/v1, kind: Database, metadata: {name: d}}")
	volumeOf(t, e, e.Namespace, "Delete", "")
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: between" + ownerOf(e, group+"/v1 Database/d") + "}}")
	e.Apply("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data" + ownerOf(e, "ConfigMap/between") + "}, spec: {accessModes: [ReadWriteOnce], storageClassName: " + e.Namespace + ", resources: {requests: {storage: 1Gi}}}}")
	e.Until("the claim is bound", func() bool { return e.Value("PersistentVolumeClaim/data", "status", "phase") == "Bound" })
	e.Start()
	for _, row := range []struct{ kind, name, says string }{
		{"Provider", "p", "CustomResourceDefinition buckets." + group},
		{"Database", "d", "PersistentVolumeClaim " + e.Namespace + "/data"},
	} {
		name := strings.ToLower(row.kind)
		refused := e.Run("refused-"+name, deleteOf(group, row.kind, row.name, ""))
		require.Equal(t, api.PhaseFailed, refused.Status.Phase, harness.Describe(refused))
		_, reason, message := harness.Condition(refused, api.ConditionReady)
		assert.Equal(t, errclass.Irreversible, reason)
		assert.Contains(t, message, row.says)
		assert.Contains(t, message, "acceptLoss: true")
		planned := e.Run("planned-"+name, "dryRun: true\n"+deleteOf(group, row.kind, row.name, ", acceptLoss: true"))
		require.Equal(t, api.PhasePlanned, planned.Status.Phase, harness.Describe(planned))
		require.NotEmpty(t, planned.Status.Items[0].Warnings)
		assert.Contains(t, planned.Status.Items[0].Warnings[0], row.says)
		orphaned := e.Run("orphaned-"+name, "dryRun: true\n"+deleteOf(group, row.kind, row.name, ", propagationPolicy: Orphan"))
		assert.Equal(t, api.PhasePlanned, orphaned.Status.Phase, "nothing goes along: %s", harness.Describe(orphaned))
	}
	assert.NotNil(t, e.Object(group+"/v1 Bucket/theirs"))
}

// A rollback keeps an object that has come to own what others have filled, and an undo too.
func TestARollbackKeepsWhatOwnsADefinitionWithObjects(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := operatorKinds(t, e)
	e.Start()
	e.Submit("install", "changes:\n  - {type: Create, target: {apiVersion: "+group+"/v1, kind: Provider, name: p}, content: {spec: {a: b}}}\n"+gate)
	e.Until("all changes are made", func() bool { return e.Object("ConfigMap/gate") != nil })
	provider(t, e, group)
	txn := cancelAtGate(e, "install")

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.NotEmpty, txn.Status.Items[0].Reason)
	for _, part := range []string{"CustomResourceDefinition buckets." + group, "Bucket theirs"} {
		assert.Contains(t, txn.Status.Items[0].Message, part)
	}
	provider := e.Object(group + "/v1 Provider/p")
	require.NotNil(t, provider)
	assert.Nil(t, provider.GetDeletionTimestamp())
	assert.Empty(t, provider.GetFinalizers())
	assert.NotNil(t, e.Object(group+"/v1 Bucket/theirs"))
	e.NothingLeft("install")
}

// An operator makes an object that it was told of the owner of what was there before.
func TestARollbackKeepsWhatAnOperatorHasGivenAnOwner(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := operatorKinds(t, e)
	e.Apply("{apiVersion: v1, kind: Secret, metadata: {name: credentials}, stringData: {password: a}}")
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: deep}, data: {a: b}}")
	before := e.Object("Secret/credentials")
	e.NextSecond()
	e.Start()
	create := "changes:\n  - {type: Create, target: {apiVersion: " + group + "/v1, kind: Database, name: d}, content: {spec: {a: b}}}\n"
	adopt := func() {
		e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: made" + ownerOf(e, group+"/v1 Database/d") + "}, data: {a: b}}")
		for ref, owner := range map[string]string{"Secret/credentials": group + "/v1 Database/d", "ConfigMap/deep": "ConfigMap/made"} {
			e.Merge("operator", ref, `{"metadata":{"ownerReferences":[`+reference(e, owner)+`]}}`)
		}
	}
	e.Submit("install", create+gate)
	e.Until("all changes are made", func() bool { return e.Object("ConfigMap/gate") != nil })
	adopt()
	txn := cancelAtGate(e, "install")
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Until("what it made is gone", func() bool { return e.Object("ConfigMap/made") == nil })
	e.Same(before, "Secret/credentials")
	assert.Empty(t, e.Object("ConfigMap/deep").GetOwnerReferences())

	require.Equal(t, api.PhaseCommitted, e.Run("release", "revisionHistoryLimit: 10\n"+create).Status.Phase)
	adopt()
	undo := e.Run("undo", "{undoOf: {name: release}}")
	assert.Equal(t, api.PhaseFailed, undo.Status.Phase, harness.Describe(undo))
	assert.Contains(t, harness.Describe(undo), "Secret "+e.Namespace+"/credentials")
	assert.NotNil(t, e.Object("Secret/credentials"))
}

// The garbage collector deletes what has lost all of its owners, and nothing before.
func TestWhatAnotherOwnerKeepsDoesNotStandInTheWay(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := operatorKinds(t, e)
	e.Apply("{apiVersion: " + group + "/v1, kind: Provider, metadata: {name: other}}")
	e.Apply("{apiVersion: v1, kind: Secret, metadata: {name: credentials}, stringData: {password: a}}")
	before := e.Object("Secret/credentials")
	e.NextSecond()
	e.Start()
	e.Submit("install", "changes:\n  - {type: Create, target: {apiVersion: "+group+"/v1, kind: Provider, name: p}, content: {spec: {a: b}}}\n"+gate)
	e.Until("all changes are made", func() bool { return e.Object("ConfigMap/gate") != nil })
	provider(t, e, group)
	both := `{"metadata":{"ownerReferences":[` + reference(e, group+"/v1 Provider/p") + "," + reference(e, group+"/v1 Provider/other") + `]}}`
	e.Merge("operator", "Secret/credentials", both)
	definition := "apiextensions.k8s.io/v1 CustomResourceDefinition/buckets." + group
	e.Merge("operator", definition, `{"metadata":{"ownerReferences":[`+reference(e, group+"/v1 Revision/r")+","+reference(e, group+"/v1 Provider/other")+`]}}`)
	txn := cancelAtGate(e, "install")

	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	owners := func(ref string) int { return len(e.Object(ref).GetOwnerReferences()) }
	e.Until("the garbage collector is done", func() bool {
		return e.Object(group+"/v1 Revision/r") == nil && owners(definition) == 1 && owners("Secret/credentials") == 1
	})
	assert.NotNil(t, e.Object(group+"/v1 Bucket/theirs"))
	assert.Equal(t, before.GetUID(), e.Object("Secret/credentials").GetUID())

	// The last owner takes them along.
	refused := e.Run("refused", deleteOf(group, "Provider", "other", ""))
	require.Equal(t, api.PhaseFailed, refused.Status.Phase, harness.Describe(refused))
	assert.Contains(t, harness.Describe(refused), "CustomResourceDefinition buckets."+group)
}

// Of two owners that go together neither keeps what both own.
func TestTwoOwnersThatAreDeletedTogetherAreRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := operatorKinds(t, e)
	e.Apply("{apiVersion: " + group + "/v1, kind: Provider, metadata: {name: p}}")
	e.NextSecond()
	e.Apply("{apiVersion: " + group + "/v1, kind: Provider, metadata: {name: other}}")
	provider(t, e, group)
	e.Merge("operator", "apiextensions.k8s.io/v1 CustomResourceDefinition/buckets."+group,
		`{"metadata":{"ownerReferences":[`+reference(e, group+"/v1 Provider/p")+","+reference(e, group+"/v1 Provider/other")+`]}}`)
	e.Start()
	for _, order := range []string{"List", "Graph"} {
		refused := e.Run("both-"+strings.ToLower(order), "order: "+order+"\n"+deleteOf(group, "Provider", "p", "")+
			strings.TrimPrefix(deleteOf(group, "Provider", "other", ""), "changes:\n"))
		require.Equal(t, api.PhaseFailed, refused.Status.Phase, harness.Describe(refused))
		assert.Contains(t, harness.Describe(refused), "CustomResourceDefinition buckets."+group)
		assert.NotNil(t, e.Object(group+"/v1 Bucket/theirs"))
		assert.NotNil(t, e.Object(group+"/v1 Provider/other"))
	}
}

func reference(e *harness.Env, ref string) string {
	owner := e.Object(ref)
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}`, owner.GetAPIVersion(), owner.GetKind(), owner.GetName(), owner.GetUID())
}
