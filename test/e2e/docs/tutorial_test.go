package docs

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/test/harness"
)

// TestTheTutorialIsAsItIs runs docs/tutorial.md, with a janusd of its own that is killed.
func TestTheTutorialIsAsItIs(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	shell := e.Shell()
	e.ProvideJanusd(shell)
	t.Cleanup(func() {
		// If the page was not typed to its end, its process still runs.
		_, err := shell.Run(context.Background(), `kill -9 $(cat "$TMPDIR"/janus-tutorial-*/pid) 2>/dev/null || true`)
		assert.NoError(t, err)
	})
	e.TypePage(shell, "tutorial.md")
	for _, name := range []string{"version-2", "version-3", "version-4", "undo-version-4"} {
		e.NothingLeft(name)
	}
}
