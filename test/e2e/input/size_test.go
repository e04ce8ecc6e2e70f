package input

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// Its status could not be written to the end, and an error of the store looks like
// one that may heal: it must be refused before anything is locked.
func TestATransactionThatCannotHoldItsOwnStatusIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()

	txn := e.Run("too-large", "changes:\n"+manyCreates(13, 100_000))

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, "1.3 MB fit: %s", harness.Describe(txn))

	txn = e.Run("too-large-2", "changes:\n"+manyCreates(14, 100_000))
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	_, reason, message := harness.Condition(txn, api.ConditionReady)
	assert.Equal(t, errclass.TooLarge, reason)
	assert.Contains(t, message, "split it")
	e.NothingLeft("too-large-2")
}

// What its before-images would take is known before anything is locked, and is said with
// all else that is wrong.
func TestATransactionWhoseBeforeImagesTakeTooMuchIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	for _, name := range []string{"large", "larger"} {
		e.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {text: %s}}", name, strings.Repeat("x", 10_000*len(name))))
	}
	e.Start(harness.WithImagesLimit(105 << 10))
	const both = `changes:
  - {name: first, target: {apiVersion: v1, kind: ConfigMap, name: large}, type: Patch, content: {data: {a: b}}}
  - {name: second, target: {apiVersion: v1, kind: ConfigMap, name: larger}, type: Patch, content: {data: {a: b}}}
`
	txn := e.Run("too-heavy", both+"  - {name: third, target: {apiVersion: v1, kind: ConfigMap, name: missing}, type: Patch, content: {data: {a: b}}}\n")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	message := harness.Describe(txn)
	assert.Regexp(t, `item second: keep the before-image of ConfigMap \S+/larger: the before-images of all changes would take 1\d\dKi, this one the most, and 105Ki are kept`, message)
	assert.Contains(t, message, "--before-images-limit")
	assert.Contains(t, message, "item third: ", "all that is wrong is said")
	assert.Equal(t, errclass.TooLarge, txn.Status.Items[1].Reason)
	e.NothingLeft("too-heavy")

	one := e.Run("one", strings.Join(strings.SplitAfter(both, "\n")[:2], ""))
	assert.Equal(t, api.PhaseCommitted, one.Status.Phase, harness.Describe(one))
}

func TestATransactionOfAHundredChangesCommits(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()

	txn := e.Run("many", "changes:\n"+manyCreates(100, 10))

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
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
