package e2e

import (
	"testing"

	"janus.io/janus/internal/janustest"
)

// TestThePageAboutSuspendingIsAsItIs runs docs/suspend-and-cancel.md.
func TestThePageAboutSuspendingIsAsItIs(t *testing.T) {
	t.Parallel()
	e := janustest.New(t)
	e.Start()
	e.RunPage("suspend-and-cancel.md")
	e.NothingLeft("release")
}

// TestThePageAboutPlansIsAsItIs runs docs/plan.md.
func TestThePageAboutPlansIsAsItIs(t *testing.T) {
	t.Parallel()
	e := janustest.New(t)
	e.Start()
	e.RunPage("plan.md")
	e.NothingLeft("release-plan")
	e.NothingLeft("wrong")
}

// TestThePageAboutHistoryIsAsItIs runs docs/history-and-undo.md.
func TestThePageAboutHistoryIsAsItIs(t *testing.T) {
	t.Parallel()
	e := janustest.New(t)
	e.Start()
	e.RunPage("history-and-undo.md")
	for _, name := range []string{"release-2", "undo-release-2", "redo"} {
		e.NothingLeft(name)
	}
}
