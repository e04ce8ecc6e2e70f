package sweep

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/test/harness"
)

// TestEveryKindOfTheAPIServerHasASample: what can be made and deleted, and is the API server's
// own, is in testdata.
func TestEveryKindOfTheAPIServerHasASample(t *testing.T) {
	have := map[schema.GroupKind]bool{}
	for _, s := range samples(t, strings.NewReplacer()) {
		have[s.obj().GroupVersionKind().GroupKind()] = true
	}
	_, lists, err := harness.New(t).Kube.Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	served := 0
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		// Custom resources come from others.
		if strings.Contains(group.Group, ".") && !strings.HasSuffix(group.Group, ".k8s.io") {
			continue
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "create") || !slices.Contains(resource.Verbs, "delete") {
				continue
			}
			served++
			assert.True(t, have[schema.GroupKind{Group: group.Group, Kind: resource.Kind}], "%s %s has no sample", list.GroupVersion, resource.Kind)
		}
	}
	assert.Greater(t, served, 50, "the API server serves %d kinds", served)
}
