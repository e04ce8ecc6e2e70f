package docs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/test/harness"
)

// TestThePageAboutSuspendingIsAsItIs runs docs/suspend-and-cancel.md.
func TestThePageAboutSuspendingIsAsItIs(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.RunPage("suspend-and-cancel.md")
	e.NothingLeft("release")
}

// TestThePageAboutPlansIsAsItIs runs docs/plan.md.
func TestThePageAboutPlansIsAsItIs(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.RunPage("plan.md")
	e.NothingLeft("release-plan")
	e.NothingLeft("wrong")
}

// TestThePageAboutHistoryIsAsItIs runs docs/history-and-undo.md.
func TestThePageAboutHistoryIsAsItIs(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.RunPage("history-and-undo.md")
	for _, name := range []string{"release-2", "undo-release-2", "redo"} {
		e.NothingLeft(name)
	}
}

// TestThePageAboutWaitsIsAsItIs runs docs/waits-and-retries.md.
func TestThePageAboutWaitsIsAsItIs(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	shell := e.Shell()
	t.Cleanup(func() { // It is in no namespace, and an interrupted test leaves it.
		printed, err := shell.Run(context.Background(), "kubectl delete --ignore-not-found -f examples/waits-and-retries/webhook.yaml")
		assert.NoError(t, err, printed)
	})
	e.TypePage(shell, "waits-and-retries.md")
	for _, name := range []string{"hasty", "patient", "paced"} {
		e.NothingLeft(name)
	}
	took := e.Transaction("paced").Status
	assert.GreaterOrEqual(t, took.CompletionTime.Sub(took.StartTime.Time), time.Second, "two seconds, by times that are kept by the second")
}
