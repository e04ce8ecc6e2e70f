package v1alpha1_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

// TestTheVersionsDifferInNothingButTheirNames is why they need no conversion.
func TestTheVersionsDifferInNothingButTheirNames(t *testing.T) {
	crd := readCRD(t)
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	require.Len(t, versions, len(v1alpha1.Versions))
	var rest []map[string]any
	for i, version := range versions {
		fields := maps.Clone(version.(map[string]any))
		assert.Equal(t, v1alpha1.Versions[i].Version, fields["name"])
		assert.Equal(t, v1alpha1.Versions[i] == v1alpha1.GroupVersion, fields["storage"], "which version is stored")
		delete(fields, "name")
		delete(fields, "storage")
		rest = append(rest, fields)
	}
	assert.Equal(t, rest[0], rest[1])
	_, found, err := unstructured.NestedMap(crd.Object, "spec", "conversion")
	require.NoError(t, err)
	assert.False(t, found, "without a strategy it is None")
}

func TestClientsThatNameNoVersionGetTheNewer(t *testing.T) {
	group, err := install(t).discovery.ServerGroups()
	require.NoError(t, err)
	for _, g := range group.Groups {
		if g.Name == v1alpha1.GroupVersion.Group {
			assert.Equal(t, "v1beta1", g.PreferredVersion.Version)
			return
		}
	}
	assert.Fail(t, "the group is not served")
}

// TestWhatIsWrittenInOneVersionIsReadInTheOther writes the spec in one version and the status in the
// other, each field of the status by its type.
func TestWhatIsWrittenInOneVersionIsReadInTheOther(t *testing.T) {
	s := install(t)
	namespace := testcluster.Namespace(t)
	clients := map[string]dynamic.ResourceInterface{}
	for _, version := range v1alpha1.Versions {
		clients[version.Version] = s.dynamic.Resource(version.WithResource("transactions")).Namespace(namespace)
	}
	for one, other := range map[string]string{"v1alpha1": "v1beta1", "v1beta1": "v1alpha1"} {
		t.Run("created in "+one, func(t *testing.T) {
			made := transaction(changes(3), set("Graph", "order"), set(int64(4), "parallelism"), set(int64(60), "ttlSecondsAfterFinished"))
			made.SetAPIVersion("backup.janus.io/" + one)
			made, err := create(t.Context(), clients[one], made)
			require.NoError(t, err)
			status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.TransactionStatus{
				Phase: v1alpha1.PhaseCommitting, Version: 7, Progress: "1/3",
				Items: []v1alpha1.Item{{Name: "0", State: v1alpha1.ItemCommitted, Committed: true, Prepared: true, LockLease: "a/b", Target: v1alpha1.Target{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}},
			})
			require.NoError(t, err)
			_, err = clients[other].Patch(t.Context(), made.GetName(), types.MergePatchType, statusPatch(t, status), metav1.PatchOptions{FieldManager: "other"}, "status")
			require.NoError(t, err)

			here, err := clients[one].Get(t.Context(), made.GetName(), metav1.GetOptions{})
			require.NoError(t, err)
			there, err := clients[other].Get(t.Context(), made.GetName(), metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, "backup.janus.io/"+one, here.GetAPIVersion())
			assert.Equal(t, "backup.janus.io/"+other, there.GetAPIVersion())
			assert.Equal(t, made.Object["spec"], there.Object["spec"])
			phase, _, _ := unstructured.NestedString(here.Object, "status", "phase")
			assert.Equal(t, "Committing", phase)
			var writers []string
			for _, entry := range there.GetManagedFields() {
				writers = append(writers, entry.APIVersion)
			}
			assert.ElementsMatch(t, []string{"backup.janus.io/" + one, "backup.janus.io/" + other}, writers, "each owns what it wrote by its own version")
			there.SetAPIVersion(here.GetAPIVersion())
			assert.Equal(t, here.Object, there.Object, "nothing else differs")
		})
	}
}

func TestTheNewerVersionIsValidatedTheSame(t *testing.T) {
	client := install(t).dynamic.Resource(v1alpha1.BetaVersion.WithResource("transactions")).Namespace(testcluster.Namespace(t))
	beta := func(object map[string]any) { object["apiVersion"] = v1alpha1.BetaVersion.String() }
	made, err := create(t.Context(), client, transaction(beta))
	require.NoError(t, err)
	assert.Equal(t, "5m", made.Object["spec"].(map[string]any)["lockTimeout"], "a default")
	for _, c := range []struct {
		says string
		edit edit
	}{
		{`unknown field "spec.changez"`, set("x", "changez")},
		{`unknown field "spec.changes[0].targets"`, inChange("x", "targets")},
		{lockRule, set("25h", "lockTimeout")},
		{contentRule, dropInChange("content")},
		{nameRule, func(o map[string]any) {
			changes(2)(o)
			inChange(name(1), "name")(o)
		}},
	} {
		_, err := create(t.Context(), client, transaction(beta, c.edit))
		require.ErrorContains(t, err, c.says)
	}
	_, err = client.Patch(t.Context(), made.GetName(), types.MergePatchType, []byte(`{"spec":{"serviceAccountName":"other"}}`), metav1.PatchOptions{})
	require.ErrorContains(t, err, immutableRule)
	_, err = client.Patch(t.Context(), made.GetName(), types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// TestTheDefinitionFitsIntoAnAnnotation is about kubectl apply without --server-side, which keeps a
// copy of what it applies in an annotation. All annotations of an object may take 256 KiB.
func TestTheDefinitionFitsIntoAnAnnotation(t *testing.T) {
	install(t)
	directory, err := filepath.Abs(filepath.Join("..", "..", "deploy", "crd"))
	require.NoError(t, err)
	// kubectl warns that the object has no such annotation yet, since the test applies otherwise.
	printed, err := testcluster.Shared(t).Kubectl(t.Context(), "", "apply", "--dry-run=server", "-o", "json", "-k", directory)
	require.NoError(t, err)
	var applied metav1.PartialObjectMetadata
	require.NoError(t, json.Unmarshal([]byte(printed), &applied))
	size := len(applied.Annotations["kubectl.kubernetes.io/last-applied-configuration"])
	assert.Greater(t, size, 100_000, "the copy has both versions")
	assert.Less(t, size, 200_000, "and leaves room for more fields")
}
