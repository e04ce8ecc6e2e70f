package plan

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

func manyFields(n int) []errclass.Field {
	var out []errclass.Field
	for i := range n {
		out = append(out, errclass.Field{Path: ".spec.f" + strconv.Itoa(i), Managers: []string{"m" + strconv.Itoa(i%20)}, Now: `"now"`, Before: `"was"`})
	}
	return out
}

func TestAReportStaysWithinItsShare(t *testing.T) {
	long := strings.Repeat("é", 3000)
	fields := append(manyFields(100), errclass.Field{Path: long, Managers: []string{long}})
	for _, n := range []int{1, 100, 1000} {
		item := api.Item{State: api.ItemRolledBack}
		Report(&item, outcome.Undone{Reclaimed: fields, Overwritten: fields, Notes: []string{long}}, ReportShare(n))
		text, err := json.Marshal(item)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(text), 4*ReportShare(n)+1500, "of %d items", n)
		assert.NotEmpty(t, item.Conflicts)
		assert.LessOrEqual(t, len(item.Conflicts), maxListed)
		assert.NotEmpty(t, item.Reclaimed)
		assert.LessOrEqual(t, len(item.Reclaimed), maxListed)
	}
}

func TestAReportSaysWhatWasLeftAndWhatWasOverwritten(t *testing.T) {
	item := api.Item{State: api.ItemRolledBack, Reason: "kept", Message: "kept"}
	Report(&item, outcome.Undone{}, 2000)
	assert.Equal(t, "kept", item.Message, "nothing to say")
	Report(&item, outcome.Undone{Notes: []string{"its owner has another uid"}, Reclaimed: []errclass.Field{{Path: ".spec.replicas", Managers: []string{"hpa"}, Now: "7", Before: "5"}}}, 2000)
	assert.Equal(t, "rolled back; its owner has another uid; left as they are, because their former owners have taken them again: .spec.replicas of hpa, now 7", item.Message)
	assert.Equal(t, "Reclaimed", item.Reason)
	assert.Equal(t, []api.OwnedFields{{Manager: "hpa", Fields: []string{".spec.replicas"}}}, item.Reclaimed)
}

// A status that was read may share its lists with others.
func TestWarningsAreAddedAsFarAsThereIsRoom(t *testing.T) {
	long := strings.Repeat("x", 1000)
	all := []string{"before", "not yet"}
	item := api.Item{Warnings: all[:1]}
	item.Warnings = WithWarnings(item.Warnings, []string{"one", long}, ReportShare(1))
	assert.Equal(t, []string{"before", "one"}, item.Warnings[:2])
	assert.LessOrEqual(t, len(item.Warnings[2]), maxWarning)
	assert.Equal(t, "not yet", all[1], "the list was shared")

	item = api.Item{}
	item.Warnings = WithWarnings(item.Warnings, []string{long, long}, ReportShare(1000))
	assert.Len(t, item.Warnings, 1, "one is always given")

	item.Warnings = WithWarnings(item.Warnings, make([]string, 20), ReportShare(1))
	assert.Len(t, item.Warnings, maxWarnings)
}

func TestFieldsThatAreNotListedAreCounted(t *testing.T) {
	fields := make([]errclass.Field, 40)
	for i := range fields {
		fields[i] = errclass.Field{Path: ".f" + strconv.Itoa(i), Managers: []string{"hpa"}}
	}
	owned := OwnedBy(byOwner(fields), maxListed, 2000)
	require.Len(t, owned, 1)
	assert.Len(t, owned[0].Fields, maxListed)
	assert.Equal(t, int64(40-maxListed), owned[0].More)
}

// A status that is too large to be stored loses what is there for readers alone,
// and nothing that the rollback works from.
func TestAStatusThatIsTooLargeIsMadeLighter(t *testing.T) {
	status := api.TransactionStatus{Items: []api.Item{{
		Name: "a", State: api.ItemUnresolved, Reason: errclass.FieldConflict, Message: strings.Repeat("x", 900),
		Before: &api.BeforeImage{Key: "k", Digest: "d"}, Conflicts: ConflictsOf(manyFields(20), 2000), Warnings: []string{"w"},
	}}}
	require.True(t, Lighten(&status))
	item := status.Items[0]
	assert.Len(t, item.Message, 128)
	assert.Equal(t, []api.FieldConflict{{Field: ".spec.f0"}}, item.Conflicts, "that there was a conflict stays on record")
	assert.Equal(t, &api.BeforeImage{Key: "k", Digest: "d"}, item.Before)
	assert.Empty(t, item.Warnings)
	assert.False(t, Lighten(&api.TransactionStatus{Items: []api.Item{{Name: "a"}}}))
}
