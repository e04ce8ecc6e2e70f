package crossplane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/test/crossplane"
)

// controller is the revision that controls a definition.
func (w *world) controller(name string) string {
	w.t.Helper()
	u := w.Object("apiextensions.crossplane.io/v1alpha1 ManagedResourceDefinition/" + name)
	if u == nil || metav1.GetControllerOf(u) == nil {
		return ""
	}
	return metav1.GetControllerOf(u).Name
}

// controls reports whether the current revision of a provider controls a definition.
func (w *world) controls(provider, name string) bool {
	w.t.Helper()
	return w.controller(name) == w.Value("pkg.crossplane.io/v1 Provider/"+provider, "status", "currentRevision")
}

// Crossplane itself would install the second provider, and leave it unhealthy.
func TestASecondProviderOfAKindIsRefused(t *testing.T) {
	w := newWorld(t)
	w.installed()
	w.push("store", "v1.0.0", "Bucket", size)
	said := w.refused(2, "kubectl janus package plan install %s:v1.0.0 --service-account installer --crossplane-version v2.1.3 -o yaml", w.source("store"))
	assert.Contains(t, said, "error: CRDConflict: ")
	assert.Contains(t, said, "buckets.acme.io is controlled by Provider acme-bucket: "+w.source("store")+" v1.0.0 cannot control it too; have it take the place of that one, or delete that one first")
	assert.NotContains(t, said, "kind: Transaction")
	assert.Nil(t, w.provider("acme-store"))
	assert.True(t, w.healthy("acme-bucket"))
	w.types("kubectl delete bucket.acme.io mine")
}

// A provider of another publisher comes with a family of its own, which has the same kinds as the
// old one.
func TestAFamilyIsReplacedWithItsProvider(t *testing.T) {
	w := newWorld(t)
	w.push("family", "v1.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.committed("install %s:v1.0.0", w.source("bucket"))
	w.Served("acme.io/v1 Bucket")
	w.Served("acme.io/v1 Config")
	w.Apply("apiVersion: acme.io/v1\nkind: Bucket\nmetadata: {name: mine}\nspec: {size: 3}\n")
	w.Apply("apiVersion: acme.io/v1\nkind: Config\nmetadata: {name: mine}\nspec: {size: 4}\n")
	w.push("base", "v1.0.0", "Config", size)
	w.push("store", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("base"), ">=v1.0.0"))
	bucket, config := w.Object("acme.io/v1 Bucket/mine"), w.Object("acme.io/v1 Config/mine")
	same := func() {
		t.Helper()
		b, c := w.Object("acme.io/v1 Bucket/mine"), w.Object("acme.io/v1 Config/mine")
		require.NotNil(t, b)
		require.NotNil(t, c)
		assert.Equal(t, bucket.GetUID(), b.GetUID())
		assert.Equal(t, config.GetUID(), c.GetUID())
		assert.Equal(t, bucket.Object["spec"], b.Object["spec"])
	}

	// Who replaces a family while another provider needs it would leave that without.
	w.push("queue", "v1.0.0", "Queue", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.committed("install %s:v1.0.0", w.source("queue"))
	said := w.refused(2, "kubectl janus package plan replace acme-bucket %s:v1.0.0 --service-account installer --crossplane-version v2.1.3", w.source("store"))
	assert.Contains(t, said, "error: HasDependents: ")
	assert.Contains(t, said, w.source("queue")+" v1.0.0 (installed) requires "+w.source("family"))
	w.committed("delete acme-queue")

	made := w.committed("replace acme-bucket %s:v1.0.0", w.source("store"))
	assert.True(t, w.healthy("acme-store") && w.healthy("acme-base"))
	assert.True(t, w.controls("acme-store", "buckets.acme.io"))
	assert.True(t, w.controls("acme-base", "configs.acme.io"))
	same()
	tree := w.types("kubectl janus package tree")
	assert.Contains(t, tree, "Provider "+w.source("store")+" v1.0.0")
	assert.NotContains(t, tree, w.source("family"), "the old family is active")

	w.types("kubectl janus undo %s --wait --timeout 2m", made.Name)
	assert.Nil(t, w.provider("acme-store"))
	assert.Nil(t, w.provider("acme-base"))
	w.until("the old providers work again", func() bool {
		return w.healthy("acme-bucket") && w.healthy("acme-family") && w.controls("acme-bucket", "buckets.acme.io") && w.controls("acme-family", "configs.acme.io")
	})
	same()
	w.types("kubectl delete bucket.acme.io,config.acme.io mine")
}

// After a replacement the old provider does nothing any more, and can go without a plan.
func TestTheProviderThatWasReplacedCanBeDeleted(t *testing.T) {
	w := newWorld(t)
	w.installed()
	before := w.Object("acme.io/v1 Bucket/mine")
	w.push("store", "v1.0.0", "Bucket", size)
	w.committed("replace acme-bucket %s:v1.0.0", w.source("store"))

	w.types("kubectl delete provider acme-bucket --wait")
	w.until("its revision is gone", func() bool {
		return w.types("kubectl get providerrevisions -l pkg.crossplane.io/package=acme-bucket -o name") == ""
	})
	assert.True(t, w.healthy("acme-store"))
	assert.True(t, w.controls("acme-store", "buckets.acme.io"))
	after := w.Object("acme.io/v1 Bucket/mine")
	require.NotNil(t, after)
	assert.Equal(t, before.GetUID(), after.GetUID())
	w.types("kubectl delete bucket.acme.io mine")
}
