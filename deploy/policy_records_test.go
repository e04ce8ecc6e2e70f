package deploy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// release changes a ConfigMap and a Secret, so that there is a before-image of each type.
const release = `{revisionHistoryLimit: 5, changes: [
  {target: {apiVersion: v1, kind: ConfigMap, name: config}, type: Patch, content: {data: {version: "2"}}},
  {target: {apiVersion: v1, kind: Secret, name: key}, type: Patch, content: {stringData: {key: new}}}]}`

const before = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {version: "1"}}
---
{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {key: old}}
`

// TestOnlyJanusdWritesRecords is about the records that a real Transaction has left.
func TestOnlyJanusdWritesRecords(t *testing.T) {
	s := newScene(t)
	s.run()
	s.Apply(before)
	txn := s.Run("release", release)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))

	for _, r := range []struct {
		kind, name string
		gvr        schema.GroupVersionResource
	}{
		{"ConfigMap", "release-rollback", configMaps},
		{"Secret", "release-rollback", secrets},
		{"ControllerRevision", "janus-revision-1", revisions},
	} {
		t.Run(r.kind, func(t *testing.T) {
			s := s.of(t)
			for who, client := range map[string]dynamic.Interface{"an administrator of the namespace": s.admin, "one of the cluster": s.in.dynamic} {
				s.keepsRecord(who, client.Resource(r.gvr).Namespace(s.Namespace), r.kind, r.name)
			}
			forged := record(r.kind, "forged")
			s.refused(s.create(r.gvr, forged, metav1.CreateOptions{}), "records", "may not create "+r.kind+" "+s.Namespace+"/forged")
		})
	}
	s.NothingLeft("release") // All of it is still as Janus left it.
	undo := s.Run("undo", `{undoOf: {name: release}}`)
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
}

// keepsRecord wants every write to a record to be refused, but one that changes nothing.
func (s *scene) keepsRecord(who string, client dynamic.ResourceInterface, kind, name string) {
	s.t.Helper()
	described := kind + " " + s.Namespace + "/" + name + ": that is, or would be, a record of a Transaction"
	for what, patch := range map[string]string{
		"its labels":      `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null,"janus.io/transaction":null}}}`,
		"its owner":       `{"metadata":{"ownerReferences":null}}`,
		"its annotations": `{"metadata":{"annotations":{"note":"mine"}}}`,
	} {
		_, err := client.Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		s.refused(err, "records", "may not update "+described, asJanusd)
		require.ErrorContains(s.t, err, "records go when the Transaction is deleted", "%s, %s", who, what)
	}
	s.refused(client.Delete(s.t.Context(), name, metav1.DeleteOptions{}), "records", "may not delete "+described)
	s.refused(client.DeleteCollection(s.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "janus.io/transaction=release"}),
		"records", "may not delete "+kind)

	as, err := client.Get(s.t.Context(), name, metav1.GetOptions{})
	require.NoError(s.t, err)
	_, err = client.Update(s.t.Context(), as, metav1.UpdateOptions{FieldManager: "migration"})
	require.NoError(s.t, err, "what is stored anew as it is, as %s", who)
}

// TestOthersKeepTheirObjects is about what only looks a little like a record.
func TestOthersKeepTheirObjects(t *testing.T) {
	s := newScene(t)
	for title, labels := range map[string]map[string]string{
		"unlabelled":               nil,
		"managed-by-janus":         {"app.kubernetes.io/managed-by": "janus"},
		"made-by-a-transaction":    {"janus.io/transaction": "release"},
		"made-by-one-and-labelled": ours("release"), // by the content of the change
	} {
		for kind, gvr := range map[string]schema.GroupVersionResource{"ConfigMap": configMaps, "Secret": secrets, "ControllerRevision": revisions} {
			obj := record(kind, title+"-rollback")
			obj.SetLabels(labels)
			obj.SetOwnerReferences(nil)
			client := s.admin.Resource(gvr).Namespace(s.Namespace)
			require.NoError(t, s.create(gvr, obj, metav1.CreateOptions{}))
			_, err := client.Patch(t.Context(), obj.GetName(), types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
			require.NoError(t, err)

			// It must not become what only janusd could be rid of.
			body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": ours("release"), "ownerReferences": ofATransaction}})
			require.NoError(t, err)
			_, err = client.Patch(t.Context(), obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
			s.refused(err, "records", "may not update "+kind)
			require.NoError(t, client.Delete(t.Context(), obj.GetName(), metav1.DeleteOptions{}))
		}
	}
}
