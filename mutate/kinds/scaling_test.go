package kinds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// Which claims a StatefulSet deletes follows from their names.
func TestTheClaimsOfPodsThatGoAreKnown(t *testing.T) {
	t.Parallel()
	const claims = "volumeClaimTemplates: [{metadata: {name: data}}]"
	set := func(when, more, status string) string {
		return "{metadata: {name: x}, spec: {persistentVolumeClaimRetentionPolicy: {whenScaled: " + when + "}, " + more + ", " + claims + "}, status: {replicas: " + status + "}}"
	}
	for name, row := range map[string]struct {
		before, after string
		deletes       bool
		going         []string
		leaving       []string
	}{
		"fewer replicas":                 {before: set("Delete", "replicas: 3", "3"), after: set("Delete", "replicas: 1", "3"), deletes: true, going: []string{"data-x-1", "data-x-2"}},
		"more replicas":                  {before: set("Delete", "replicas: 1", "1"), after: set("Delete", "replicas: 3", "1")},
		"retained":                       {before: set("Delete", "replicas: 3", "3"), after: set("Retain", "replicas: 1", "3")},
		"later ordinals":                 {before: set("Delete", "replicas: 2", "2"), after: set("Delete", "replicas: 2, ordinals: {start: 1}", "2"), deletes: true, going: []string{"data-x-0"}},
		"Pods that are on their way":     {before: set("Retain", "replicas: 1", "3"), after: set("Delete", "replicas: 1", "3"), deletes: true, leaving: []string{"data-x-1", "data-x-2"}},
		"Pods that are gone":             {before: set("Retain", "replicas: 1", "1"), after: set("Delete", "replicas: 1", "1")},
		"as many as there could ever be": {before: set("Delete", "replicas: 2147483647", "3"), after: set("Delete", "replicas: 3", "3"), deletes: true, going: []string{"data-x-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(row.before), &before))
			require.NoError(t, yaml.Unmarshal([]byte(row.after), &after))
			whole(before)
			whole(after)
			step, deletes := ScalingOf(before, after)
			assert.Equal(t, row.deletes, deletes)
			if !deletes {
				return
			}
			var going, leaving []string
			for _, claim := range []string{"data-x-0", "data-x-1", "data-x-2", "data-x-3", "data-x", "data-x-y", "other-x-1"} {
				if step.Goes(claim) {
					going = append(going, claim)
				}
				if step.Leaving(claim) {
					leaving = append(leaving, claim)
				}
			}
			assert.Equal(t, row.leaving, leaving)
			assert.Equal(t, row.going, going)
		})
	}
}

// whole makes integers of numbers, as the API machinery decodes them.
func whole(object map[string]any) {
	for key, value := range object {
		switch v := value.(type) {
		case float64:
			object[key] = int64(v)
		case map[string]any:
			whole(v)
		}
	}
}
