package mutate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
)

// TestThePageAboutRightsListsThem compares the table of docs/reference/rights.md with the code.
func TestThePageAboutRightsListsThem(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "reference", "rights.md"))
	require.NoError(t, err)
	for kind := range strategies {
		making, rollingBack := Verbs(kind)
		undoing := slices.DeleteFunc(VerbsWithUndo(kind), func(verb string) bool {
			return slices.Contains(making, verb) || slices.Contains(rollingBack, verb)
		})
		row := "|"
		for _, cell := range [][]string{{string(kind)}, making, rollingBack, undoing} {
			row += strings.TrimRight(" `"+strings.Join(cell, "`, `")+"`", " ") + " |"
		}
		assert.Contains(t, string(page), strings.ReplaceAll(row, " `` |", " |")+"\n")
	}
}

func TestAnAwaitNeedsToReadItsTargetAndNothingElse(t *testing.T) {
	assert.Equal(t, []string{"get"}, VerbsWithUndo(api.Await))
}
