package wiring

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// An API server behind another, as of a cloud, may have requests of any kind.
func TestWhatIsNotKeptIsNoTarget(t *testing.T) {
	t.Parallel()
	all := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	fake := &clienttesting.Fake{Resources: []*metav1.APIResourceList{{GroupVersion: gv.String(), APIResources: []metav1.APIResource{
		{Name: "things", Kind: "Thing", Verbs: all},
		{Name: "reviews", Kind: "Review", Verbs: metav1.Verbs{"create"}},
		{Name: "tokens", Kind: "Token", Verbs: metav1.Verbs{"get", "list", "delete"}},
		{Name: "records", Kind: "Record", Verbs: metav1.Verbs{"get", "create"}},
		{Name: "measures", Kind: "Measure", Verbs: metav1.Verbs{"get", "list"}},
	}}}}
	v := validation{resolver: target.Discover(&fakediscovery.FakeDiscovery{Fake: fake})}
	for name, c := range map[string]struct {
		change   api.Change
		resource string
		reason   string
		says     string
	}{
		"an ordinary kind":            {api.Change{Type: api.Create}, "things", "", ""},
		"a review":                    {api.Change{Type: api.Create}, "reviews", errclass.Invalid, "objects of this kind cannot be read: their API has no verb get, only create;"},
		"a review, loss accepted":     {api.Change{Type: api.Create, AcceptLoss: true}, "reviews", errclass.Invalid, "no verb get, only create"},
		"a review is waited for":      {api.Change{Type: api.Await}, "reviews", errclass.Invalid, "no verb get, only create"},
		"nobody can create it again":  {api.Change{Type: api.Delete}, "tokens", errclass.Irreversible, "the API of its kind has no verb create or patch, only get, list, delete"},
		"that is accepted":            {api.Change{Type: api.Delete, AcceptLoss: true}, "tokens", "", ""},
		"nobody can delete it":        {api.Change{Type: api.Create}, "records", errclass.Irreversible, "no verb delete"},
		"the dry run will say so":     {api.Change{Type: api.Create}, "measures", "", ""},
		"a measure is waited for":     {api.Change{Type: api.Await}, "measures", "", ""},
		"discovery does not know it":  {api.Change{Type: api.Create}, "others", "", ""},
		"it will be served some time": {api.Change{Type: api.Create}, "reviews/deferred", "", ""},
	} {
		ref := target.Ref{GVK: gv.WithKind("Any"), GVR: gv.WithResource(c.resource), Namespace: "shop", Name: "x"}
		if c.resource == "reviews/deferred" {
			ref.GVR.Resource, ref.Deferred = "reviews", true
		}
		err := v.kept(c.change, ref)
		if c.reason == "" {
			require.NoError(t, err, name)
			continue
		}
		assert.Equal(t, c.reason, errclass.ReasonOf(err), name)
		require.ErrorContains(t, err, c.says, name)
	}

	// The definition was on its way out when discovery was read, and is there again.
	fake.Resources[0].APIResources[2].Verbs = all
	require.NoError(t, v.kept(api.Change{Type: api.Delete}, target.Ref{GVR: gv.WithResource("tokens")}))
}
