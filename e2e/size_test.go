package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/fault"
	"janus.io/janus/internal/janustest"
)

// Its status could not be written to the end, and an error of the store looks like
// one that may heal: it must be refused before anything is locked.
func TestATransactionThatCannotHoldItsOwnStatusIsRefused(t *testing.T) {
	e := janustest.New(t)
	e.Start()

	txn := e.Run("too-large", "changes:\n"+manyCreates(13, 100_000))

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, "1.3 MB fit: %s", janustest.Describe(txn))

	txn = e.Run("too-large-2", "changes:\n"+manyCreates(14, 100_000))
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, janustest.Describe(txn))
	_, reason, message := janustest.Condition(txn, api.ConditionReady)
	assert.Equal(t, fault.TooLarge, reason)
	assert.Contains(t, message, "split it")
	e.NothingLeft("too-large-2")
}

func TestATransactionOfAHundredChangesCommits(t *testing.T) {
	e := janustest.New(t)
	e.Start()

	txn := e.Run("many", "changes:\n"+manyCreates(100, 10))

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, janustest.Describe(txn))
	assert.Equal(t, "100/100", txn.Status.Progress)
	e.NothingLeft("many")
}

func manyCreates(n, bytes int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `
  - target: {apiVersion: v1, kind: ConfigMap, name: c%d-%d}
    type: Create
    content: {data: {text: "%s"}}`, bytes, i, strings.Repeat("x", bytes))
	}
	return b.String()
}
