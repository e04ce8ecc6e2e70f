package crossplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/crossplane"
)

func TestADeletionIsRefusedWhileSomethingNeedsThePackage(t *testing.T) {
	w := newWorld(t)
	w.push("family", "v1.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.committed("install %s:v1.0.0", w.source("bucket"))
	w.Served("acme.io/v1 Bucket")
	w.Apply("apiVersion: acme.io/v1\nkind: Bucket\nmetadata: {name: mine}\nspec: {size: 3}\n")

	said := w.refused(2, "kubectl janus package plan delete acme-family --service-account installer")
	assert.Contains(t, said, "error: HasDependents: "+w.source("family")+" is to be deleted, but "+w.source("bucket")+" v1.0.0 (installed) requires")
	said = w.refused(2, "kubectl janus package plan delete acme-bucket --service-account installer -o yaml")
	assert.Contains(t, said, "error: DataLoss: buckets.acme.io goes with "+w.source("bucket")+": delete its 1 custom resource first: mine")
	assert.NotContains(t, said, "kind: Transaction")

	w.types("kubectl delete bucket.acme.io mine")
	w.committed("delete acme-family acme-bucket")
	assert.Nil(t, w.provider("acme-family"))
	assert.Nil(t, w.provider("acme-bucket"))
	w.until("the definitions are gone", func() bool {
		return w.Object("apiextensions.k8s.io/v1 CustomResourceDefinition/buckets.acme.io") == nil &&
			w.Object("apiextensions.k8s.io/v1 CustomResourceDefinition/configs.acme.io") == nil
	})
	assert.Contains(t, w.types("kubectl janus package list"), "There are no packages.")
}

// inserted puts a change into a printed Transaction, right before the first revision is deleted.
func (w *world) inserted(planned string, change api.Change) string {
	w.t.Helper()
	made := &api.Transaction{}
	require.NoError(w.t, yaml.Unmarshal([]byte(planned), made))
	i := slices.IndexFunc(made.Spec.Changes, func(c api.Change) bool { return strings.HasPrefix(c.Name, "remove-") })
	require.Positive(w.t, i)
	made.Spec.Changes = slices.Insert(made.Spec.Changes, i, change)
	text, err := yaml.Marshal(map[string]any{"apiVersion": made.APIVersion, "kind": made.Kind, "metadata": map[string]any{"name": made.Name}, "spec": made.Spec})
	require.NoError(w.t, err)
	return string(text)
}

// Until the revisions are deleted all can be rolled back, data included.
func TestADeletionThatFailsIsRolledBackAndDataStays(t *testing.T) {
	w := newWorld(t)
	w.push("bucket", "v1.0.0", "Bucket", size)
	w.committed("install %s:v1.0.0", w.source("bucket"))
	planned := w.types("kubectl janus package plan delete acme-bucket --service-account installer -o yaml")
	w.Served("acme.io/v1 Bucket")
	w.Apply("apiVersion: acme.io/v1\nkind: Bucket\nmetadata: {name: mine}\nspec: {size: 3}\n")
	before := w.Object("acme.io/v1 Bucket/mine")

	// Right before the revision is deleted something never comes.
	soon := api.Duration("2s")
	ended := w.created(w.inserted(planned, api.Change{
		Name: "never", Type: api.Await, Target: api.Target{APIVersion: "pkg.crossplane.io/v1", Kind: "Provider", Name: "never"},
		ReadyWhen: &api.ReadyWhen{Expression: "object != null", Timeout: &soon},
	}))

	require.Equal(t, api.PhaseRolledBack, ended.Status.Phase, describe(ended))
	assert.Equal(t, "never", ended.Status.FailedItem)
	w.until("the provider works again", func() bool { return w.healthy("acme-bucket") })
	after := w.Object("acme.io/v1 Bucket/mine")
	require.NotNil(t, after, "the custom resource is gone")
	assert.Equal(t, before.GetUID(), after.GetUID())
	assert.Contains(t, w.types("kubectl janus package tree"), "Provider "+w.source("bucket")+" v1.0.0")
	w.types("kubectl delete bucket.acme.io mine")
}

// A custom resource that comes after the plan is not deleted with its definition: all is rolled back.
func TestACustomResourceThatComesLaterStopsTheDeletion(t *testing.T) {
	w := newWorld(t)
	w.push("bucket", "v1.0.0", "Bucket", size)
	w.committed("install %s:v1.0.0", w.source("bucket"))
	w.Served("acme.io/v1 Bucket")
	planned := w.types("kubectl janus package plan delete acme-bucket --service-account installer -o yaml")

	// Before it starts.
	w.Apply(mine)
	ended := w.created(planned)
	require.Equal(t, api.PhaseRolledBack, ended.Status.Phase, describe(ended))
	assert.Contains(t, describe(ended), "every object of its kind would be lost, such as")
	w.until("the provider works again", func() bool { return w.healthy("acme-bucket") })
	w.types("kubectl delete transaction %s", ended.Name)
	w.types("kubectl delete bucket.acme.io mine")

	// Right before the revision is deleted.
	planned = w.types("kubectl janus package plan delete acme-bucket --service-account installer -o yaml")
	name := w.creates(w.inserted(planned, api.Change{
		Name: "go-on", Type: api.Await,
		Target:    api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: crossplane.Namespace, Name: "janus-packages"},
		ReadyWhen: &api.ReadyWhen{Expression: `"go-on" in object.metadata.annotations`},
	}))
	w.until("the provider is deleted", func() bool { return w.provider("acme-bucket") == nil })
	w.Apply(mine)
	before := w.Object("acme.io/v1 Bucket/mine")
	w.types("kubectl annotate configmap janus-packages -n %s go-on=", crossplane.Namespace)
	ended = w.Ended(name)
	require.Equal(t, api.PhaseRolledBack, ended.Status.Phase, describe(ended))
	assert.Equal(t, "remove-acme-bucket", ended.Status.FailedItem)
	assert.Contains(t, describe(ended), "every object of its kind would be lost, such as")
	w.until("the provider works again", func() bool { return w.healthy("acme-bucket") })
	after := w.Object("acme.io/v1 Bucket/mine")
	require.NotNil(t, after, "the custom resource is gone")
	assert.Equal(t, before.GetUID(), after.GetUID())
	w.types("kubectl delete bucket.acme.io mine")
}

func TestAnotherProviderTakesOverAndGivesBack(t *testing.T) {
	w := newWorld(t)
	w.installed()
	before := w.Object("acme.io/v1 Bucket/mine")
	w.push("store", "v1.0.0", "Bucket", size)

	made := w.committed("replace acme-bucket %s:v1.0.0", w.source("store"))
	assert.True(t, w.healthy("acme-store"))
	controlled := func(by string) bool {
		for _, o := range w.Object("apiextensions.crossplane.io/v1alpha1 ManagedResourceDefinition/buckets.acme.io").GetOwnerReferences() {
			if o.Controller != nil && *o.Controller {
				return o.Name == w.Value("pkg.crossplane.io/v1 Provider/"+by, "status", "currentRevision")
			}
		}
		return false
	}
	assert.True(t, controlled("acme-store"), "the new provider does not control the definition")
	after := w.Object("acme.io/v1 Bucket/mine")
	require.NotNil(t, after)
	assert.Equal(t, before.GetUID(), after.GetUID())

	w.types("kubectl janus undo %s --wait --timeout 2m", made.Name)
	assert.Nil(t, w.provider("acme-store"))
	w.until("the old provider works again", func() bool { return w.healthy("acme-bucket") && controlled("acme-bucket") })
	after = w.Object("acme.io/v1 Bucket/mine")
	require.NotNil(t, after)
	assert.Equal(t, before.GetUID(), after.GetUID())
	w.types("kubectl delete bucket.acme.io mine")
}
