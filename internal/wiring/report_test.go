package wiring

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/mutate"
)

func TestWhatIsTakenIsListedByManager(t *testing.T) {
	got := takenBy(mutate.Change{}, []fieldmerge.OwnedFields{
		{Manager: "hpa", Subresource: "scale", Paths: []string{".spec.replicas"}}, {Manager: "a\x1b[2J", Paths: []string{".a", ".b"}},
	}, 2000)
	assert.Equal(t, []api.OwnedFields{
		{Manager: "hpa", Subresource: "scale", Fields: []string{".spec.replicas"}},
		{Manager: "a\uFFFD[2J", Fields: []string{".a", ".b"}},
	}, got)
}

func TestWhatIsTakenStaysWithinItsShare(t *testing.T) {
	paths := make([]string, 100)
	for i := range paths {
		paths[i] = ".spec." + strings.Repeat("x", 300) + strconv.Itoa(i)
	}
	for share, most := range map[int]int{200: 1, 2000: 8} {
		got := takenBy(mutate.Change{}, []fieldmerge.OwnedFields{{Manager: "m", Paths: paths}}, share)
		require.Len(t, got, 1)
		assert.NotEmpty(t, got[0].Fields)
		assert.LessOrEqual(t, len(got[0].Fields), most)
		assert.Equal(t, int64(100-len(got[0].Fields)), got[0].More)
	}
}

// An item of a set is quoted in its path.
func TestWhatIsTakenOfASecretQuotesNothing(t *testing.T) {
	got := takenBy(mutate.Change{Sensitive: true}, []fieldmerge.OwnedFields{{Manager: "m", Paths: []string{`.spec.tags[="canary"]`}}}, 2000)
	assert.Equal(t, []string{".spec.tags"}, got[0].Fields)
}

func TestWarningsAreCutAndCounted(t *testing.T) {
	many := make([]string, 20)
	for i := range many {
		many[i] = strings.Repeat("w", 1000)
	}
	assert.Len(t, plan.WithWarnings(nil, many, 200), 1)
	got := plan.WithWarnings(nil, many, 8000)
	assert.Len(t, got, 8)
	for _, w := range got {
		assert.LessOrEqual(t, len(w), 400)
	}
}
