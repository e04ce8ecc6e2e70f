package deploy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

// stored is content of a Transaction as kubectl janus run stores it.
func stored(kind, name, uid string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "immutable": true}}
	u.SetName(name)
	u.SetLabels(map[string]string{api.ContentLabel: uid})
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: api.GroupVersion.String(), Kind: "Transaction", Name: "large", UID: types.UID(uid)}})
	return u
}

func TestNobodyMarksAnObjectThatIsThereAsContent(t *testing.T) {
	s := newScene(t)
	s.Submit("large", `{suspend: true, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: none}, type: Delete}]}`)
	uid := string(s.Transaction("large").UID)

	// What run does.
	for _, kind := range []string{"ConfigMap", "Secret"} {
		gvr := configMaps
		if kind == "Secret" {
			gvr = secrets
		}
		require.NoError(t, s.create(gvr, stored(kind, "large-content-0", uid), metav1.CreateOptions{}))

		loose := stored(kind, "loose", uid)
		delete(loose.Object, "immutable")
		s.refused(s.create(gvr, loose, metav1.CreateOptions{}), "contents", kind+" "+s.Namespace+"/loose: content of a Transaction", "is immutable and owned by")
		orphan := stored(kind, "orphan", uid)
		orphan.SetOwnerReferences(nil)
		s.refused(s.create(gvr, orphan, metav1.CreateOptions{}), "contents", "is immutable and owned by")
		theirs := stored(kind, "theirs", uid)
		theirs.SetLabels(map[string]string{api.ContentLabel: "another"})
		s.refused(s.create(gvr, theirs, metav1.CreateOptions{}), "contents", "is immutable and owned by")

		// What a person might do who may change a Secret and not read it.
		plain := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		plain.SetName("plain")
		require.NoError(t, s.create(gvr, plain, metav1.CreateOptions{}))
		client := s.admin.Resource(gvr).Namespace(s.Namespace)
		mark, err := json.Marshal(map[string]any{"immutable": true, "metadata": map[string]any{
			"labels": map[string]any{api.ContentLabel: uid}, "ownerReferences": stored(kind, "plain", uid).GetOwnerReferences(),
		}})
		require.NoError(t, err)
		_, err = client.Patch(t.Context(), "plain", types.MergePatchType, mark, metav1.PatchOptions{})
		s.refused(err, "contents", "is given when an object is created")
		_, err = client.Patch(t.Context(), "large-content-0", types.MergePatchType, []byte(`{"metadata":{"labels":{"`+api.ContentLabel+`":null}}}`), metav1.PatchOptions{})
		s.refused(err, "contents", "stays as it is")

		require.NoError(t, client.Delete(t.Context(), "large-content-0", metav1.DeleteOptions{}), "it is its maker's to delete")
	}
}
