package lifecycle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// allKinds makes objects of several kinds in two namespaces; one is there already.
const allKinds = `
revisionHistoryLimit: 1
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: here}, type: Create, content: {data: {a: b}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: there, namespace: OTHER}, type: Create, content: {}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {version: "2.0"}}}
  - {target: {apiVersion: v1, kind: Secret, name: key}, type: Create, content: {stringData: {key: k}}}
  - {target: {apiVersion: v1, kind: Service, name: web, namespace: OTHER}, type: Create, content: {spec: {selector: {app: web}, ports: [{port: 80}]}}}
  - target: {apiVersion: apps/v1, kind: Deployment, name: web}
    type: Create
    content:
      metadata: {labels: {app: web}}
      spec:
        selector: {matchLabels: {app: web}}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: web, image: "web:1"}]}
  - {target: {apiVersion: v1, kind: ConfigMap, name: dropped, namespace: OTHER}, type: Create, content: {}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: dropped, namespace: OTHER}, type: Delete}
`

// What a Transaction has made is found by its label in every namespace, and outlives it
// however it is deleted.
func TestWhatATransactionMadeIsFoundAndOutlivesIt(t *testing.T) {
	t.Parallel()
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		t.Run(string(propagation), func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.ClusterWide()
			other := e.In(testcluster.Namespace(t))
			e.Apply(fixture.ConfigMap)
			e.Start()
			name := "traced-" + strings.ToLower(string(propagation))
			txn := e.Run(name, strings.ReplaceAll(allKinds, "OTHER", other.Namespace))
			require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))

			made := []string{"Deployment/web here", "ConfigMap/here here", "ConfigMap/there there", "Secret/key here", "Service/web there"}
			assert.ElementsMatch(t, made, tracedTo(t, e, other, name, ",app.kubernetes.io/managed-by!=janus"))
			own := []string{"ConfigMap/" + name + "-rollback here", "ConfigMap/" + name + "-rollback-2 here", "Secret/" + name + "-rollback here"}
			assert.ElementsMatch(t, append(own, made...), tracedTo(t, e, other, name, ""))
			assert.Equal(t, e.Namespace+"/"+name, other.Object("Service/web").GetAnnotations()["janus.io/transaction"])
			for _, obj := range []string{"ConfigMap/here", "ConfigMap/app"} {
				assert.Empty(t, e.Object(obj).GetOwnerReferences())
			}
			assert.Empty(t, e.Object("ConfigMap/app").GetLabels(), "it was there before")

			collected := ownedBy(t, e, txn)
			e.Delete(name, propagation)
			e.Gone(name)
			e.Until("the garbage collector has been there", collected)
			assert.ElementsMatch(t, made, tracedTo(t, e, other, name, ",app.kubernetes.io/managed-by!=janus"))
			for _, ref := range []string{"ConfigMap/here", "Secret/key", "apps/v1 Deployment/web"} {
				assert.Nil(t, e.Object(ref).GetDeletionTimestamp())
			}
		})
	}
}

// tracedTo lists, with kubectl, what has the label of a Transaction.
func tracedTo(t *testing.T, e, other *harness.Env, name, more string) []string {
	t.Helper()
	printed, err := e.Shell().Run(t.Context(), "kubectl get all,configmaps,secrets -A -l 'janus.io/transaction="+name+more+
		`' -o go-template='{{range .items}}{{.kind}}/{{.metadata.name}} {{.metadata.namespace}}{{"\n"}}{{end}}'`)
	require.NoError(t, err, printed)
	places := strings.NewReplacer(" "+e.Namespace, " here", " "+other.Namespace, " there")
	return strings.Split(strings.TrimSpace(places.Replace(printed)), "\n")
}

// ownedBy makes an object that a Transaction owns, and tells when the garbage collector
// has seen to it: it has deleted it, or taken the owner off.
func ownedBy(t *testing.T, e *harness.Env, txn *api.Transaction) (collected func() bool) {
	t.Helper()
	maps := e.Kube.CoreV1().ConfigMaps(e.Namespace)
	owner := metav1.OwnerReference{APIVersion: api.GroupVersion.String(), Kind: api.Kind.Kind, Name: txn.Name, UID: txn.UID, Controller: ptr.To(true)}
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{owner}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return func() bool {
		owned, err := maps.Get(t.Context(), "owned", metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && len(owned.OwnerReferences) == 0
	}
}

// What an undo creates again is made by the undo, and says so; undoing that in turn is
// as before.
func TestAnUndoneDeletionIsMadeByTheUndo(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	const target = "{target: {apiVersion: v1, kind: ConfigMap, name: made}, "
	says := func() string {
		obj := e.Object("ConfigMap/made")
		require.NotNil(t, obj)
		return fmt.Sprintf("%s %s %v", obj.GetLabels()["janus.io/transaction"], strings.TrimPrefix(obj.GetAnnotations()["janus.io/transaction"], e.Namespace+"/"), obj.Object["data"])
	}
	run := func(name, spec string) {
		txn := e.Run(name, spec)
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	}
	run("release", "{revisionHistoryLimit: 10, changes: ["+target+"type: Create, content: {data: {a: b}}}]}")
	assert.Equal(t, "release release map[a:b]", says())
	run("patch", "{revisionHistoryLimit: 10, changes: ["+target+"type: Patch, content: {data: {a: c}}}]}")
	assert.Equal(t, "release release map[a:c]", says(), "a Patch has not made it")
	run("drop", "{revisionHistoryLimit: 10, changes: ["+target+"type: Delete}]}")
	assert.Nil(t, e.Object("ConfigMap/made"))
	run("undo", "{revisionHistoryLimit: 10, undoOf: {name: drop}}")
	assert.Equal(t, "undo undo map[a:c]", says())
	run("redo", "{undoOf: {name: undo}}")
	assert.Nil(t, e.Object("ConfigMap/made"))
}

// A rollback brings an object back with what says who has made it.
func TestARollbackLeavesWhatSaysWhoHasMadeAnObject(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	e.Start()
	var changes strings.Builder
	for _, name := range []string{"updated", "patched", "deleted"} {
		fmt.Fprintf(&changes, "\n- {target: {apiVersion: v1, kind: ConfigMap, name: %s}, type: Create, content: {data: {a: b}}}", name)
	}
	require.Equal(t, api.PhaseCommitted, e.Run("first", "changes:"+changes.String()).Status.Phase)
	updated, patched, deleted := e.Object("ConfigMap/updated"), e.Object("ConfigMap/patched"), e.Object("ConfigMap/deleted")
	txn := e.Run("second", `
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: updated}, type: Update, content: {data: {a: c}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: patched}, type: Patch, content: {metadata: {labels: {janus.io/transaction: mine}}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: deleted}, type: Delete}
  - {target: {apiVersion: v1, kind: ConfigMap, name: created}, type: Create, content: {data: {a: b}}}`+fixture.RefusedAtCommit)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(updated, "ConfigMap/updated")
	e.Same(patched, "ConfigMap/patched")
	e.Same(deleted, "ConfigMap/deleted")
	assert.Equal(t, "first", e.Object("ConfigMap/deleted").GetLabels()["janus.io/transaction"])
	assert.Nil(t, e.Object("ConfigMap/created"))
}
