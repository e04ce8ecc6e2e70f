package kinds_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"janus.io/janus/mutate/kinds"
)

func TestWhatACustomResourceSaysThatItDestroys(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, spec, field string }{
		{"nothing", "{a: b}", ""},
		{"a deletion policy", "{deletionPolicy: Delete}", "spec.deletionPolicy"},
		{"a reclaim policy in small letters", "{databaseReclaimPolicy: delete}", "spec.databaseReclaimPolicy"},
		{"the first of two", "{reclaimPolicy: Delete, deletionPolicy: Delete}", "spec.deletionPolicy"},
		{"another policy", "{deletionPolicy: Retain, reclaimPolicy: Orphan}", ""},
		{"a field that is no policy", "{deletePolicy: Delete, deletionPolicy: {a: Delete}}", ""},
		{"a managed resource", "{forProvider: {}, deletionPolicy: Delete}", "spec.deletionPolicy"},
		{"a managed resource of all actions", `{forProvider: {}, managementPolicies: ["*"]}`, "spec.managementPolicies"},
		{"a managed resource that is orphaned", `{forProvider: {}, deletionPolicy: Orphan, managementPolicies: ["*"]}`, ""},
		{"a managed resource that is observed", "{forProvider: {}, deletionPolicy: Delete, managementPolicies: [Observe]}", ""},
		{"a managed resource whose actions count", "{forProvider: {}, deletionPolicy: Orphan, managementPolicies: [Observe, Delete]}", "spec.managementPolicies"},
		{"a managed resource that says nothing", "{forProvider: {}, managementPolicies: []}", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			obj := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: example.com/v1, kind: Thing, spec: "+row.spec+"}"), &obj.Object))
			assert.Equal(t, row.field, kinds.Destroys(obj))
			obj.SetAPIVersion("apps/v1")
			assert.Empty(t, kinds.Destroys(obj), "a kind of Kubernetes has its own rules")
		})
	}
}

func TestTheResourcesOfWhatIsOutside(t *testing.T) {
	t.Parallel()
	resource := func(name string) schema.GroupResource { return schema.ParseGroupResource(name) }
	assert.Equal(t, []schema.GroupResource{
		resource("bucketclaims.objectstorage.k8s.io"), resource("volumegroupsnapshots.groupsnapshot.storage.k8s.io"), resource("volumesnapshots.snapshot.storage.k8s.io"),
	}, kinds.OutsideResources(true))
	assert.Equal(t, []schema.GroupResource{
		resource("buckets.objectstorage.k8s.io"), resource("volumegroupsnapshotcontents.groupsnapshot.storage.k8s.io"), resource("volumesnapshotcontents.snapshot.storage.k8s.io"),
	}, kinds.OutsideResources(false))
}
