package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// badInput is a Transaction that must not commit, and what its user is told.
type badInput struct {
	name string
	// setup is applied first. In it and in spec, $NS is the namespace of the row.
	setup string
	spec  string
	// arrange does what setup cannot, before Janus is started.
	arrange func(*testing.T, *harness.Env)
	// options are for Janus.
	options func(*harness.Env) []harness.Option
	// same are the targets. They must be as before in the end.
	same []string
	// gone are objects that must not exist in the end.
	gone []string
	ends ending
}

// ending is how a Transaction ends that does not commit.
type ending struct {
	// phase is Failed unless it is given.
	phase api.Phase
	// reason is that of Ready, and of Succeeded unless cause is given.
	reason, cause string
	// validated is the status of the condition; False unless it is given.
	validated metav1.ConditionStatus
	// says are parts of the message: the object, what is wrong, and the way out.
	says []string
}

func (b badInput) run(t *testing.T) {
	t.Helper()
	e := harness.New(t)
	fill := func(s string) string { return strings.ReplaceAll(s, "$NS", e.Namespace) }
	e.Apply(fill(b.setup))
	if b.arrange != nil {
		b.arrange(t, e)
	}
	var before []*unstructured.Unstructured
	for _, ref := range b.same {
		before = append(before, e.Object(fill(ref)))
	}
	var options []harness.Option
	if b.options != nil {
		options = b.options(e)
	}
	e.Start(options...)

	txn := e.Run("bad", fill(b.spec))

	b.ends.in(e).check(t, e, txn)
	for i, ref := range b.same {
		e.Same(before[i], fill(ref))
	}
	for _, ref := range b.gone {
		e.Same(nil, fill(ref))
	}
	e.NothingLeft("bad")
}

// check asserts that the Transaction has ended as it should and says so to
// people, to tools, and in an event.
func (x ending) check(t *testing.T, e *harness.Env, txn *api.Transaction) {
	t.Helper()
	phase, cause, validated := x.phase, x.cause, x.validated
	if phase == "" {
		phase = api.PhaseFailed
	}
	if cause == "" {
		cause = x.reason
	}
	if validated == "" {
		validated = metav1.ConditionFalse
	}
	assert.Equal(t, phase, txn.Status.Phase, harness.Describe(txn))
	assert.NotNil(t, txn.Status.CompletionTime)

	status, reason, message := harness.Condition(txn, api.ConditionReady)
	assert.Equal(t, "False", status, "Ready")
	assert.Equal(t, x.reason, reason, "reason of Ready: %s", message)
	for _, part := range x.says {
		assert.Contains(t, message, part, "message of Ready")
	}
	status, reason, message = harness.Condition(txn, api.ConditionSucceeded)
	assert.Equal(t, "False", status, "Succeeded")
	assert.Equal(t, cause, reason, "reason of Succeeded: %s", message)
	status, reason, _ = harness.Condition(txn, api.ConditionValidated)
	assert.Equal(t, string(validated), status, "Validated")
	if validated == metav1.ConditionFalse {
		assert.Equal(t, cause, reason, "reason of Validated")
	}
	status, _, _ = harness.Condition(txn, api.ConditionStalled)
	assert.Equal(t, "True", status, "Stalled")
	status, _, _ = harness.Condition(txn, api.ConditionReconciling)
	assert.Equal(t, "False", status, "Reconciling")
	status, _, message = harness.Condition(txn, api.ConditionRolledBack)
	assert.Equal(t, phase == api.PhaseRolledBack, status == "True", "RolledBack: %s", message)

	event := awaitEvent(t, e, txn, string(phase))
	assert.Equal(t, "Warning", event.Type)
	for _, part := range x.says {
		assert.Contains(t, event.Note, part, "note of the event")
	}
}

// awaitEvent waits for an event about the Transaction.
func awaitEvent(t *testing.T, e *harness.Env, txn *api.Transaction, reason string) eventsv1.Event {
	t.Helper()
	var found eventsv1.Event
	var seen []string
	err := harness.Poll(t.Context(), func(ctx context.Context) (bool, error) {
		list, err := e.Kube.EventsV1().Events(txn.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		seen = nil
		for _, event := range list.Items {
			if event.Regarding.UID != txn.UID || event.Regarding.Kind != api.Kind.Kind {
				continue
			}
			seen = append(seen, event.Reason)
			if event.Reason == reason {
				found = event
				return true, nil
			}
		}
		return false, nil
	})
	require.NoError(t, err, "no event %s about Transaction %s; there are %v", reason, txn.Name, seen)
	return found
}

// failingAt makes the change with the given index fail when it is made: it must be
// the Create of ConfigMap late, which another client then creates first.
func failingAt(item int) func(*harness.Env) []harness.Option {
	return func(e *harness.Env) []harness.Option {
		return []harness.Option{harness.Acting(harness.Around{Do: func(_ string, i int) {
			if i == item {
				e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: late}, data: {of: somebody else}}`)
			}
		}})}
	}
}

// createLate is the change that failingAt makes fail.
const createLate = `
  - target: {apiVersion: v1, kind: ConfigMap, name: late}
    type: Create
    content: {data: {of: janus}}
`

// lateExists is how a Transaction ends whose createLate failed.
var lateExists = ending{
	phase: api.PhaseRolledBack, reason: "AlreadyExists", validated: metav1.ConditionTrue,
	says: []string{"ConfigMap $NS/late", "use Patch or Update"},
}

// patchThenLate is a spec of a list of changes on one line with createLate as its
// last.
func patchThenLate(spec string) string {
	return strings.TrimSuffix(spec, "]") + ", {target: {apiVersion: v1, kind: ConfigMap, name: late}, type: Create, content: {data: {of: janus}}}]"
}

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {version: "1.0", other: kept}
`

// oneChange is the spec of a Transaction with one change of ConfigMap app.
func oneChange(kind, content string) string {
	return "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app}, type: " + kind + ", content: " + content + "}]"
}

// runAll runs the rows side by side: they wait more than they work.
func runAll(t *testing.T, groups ...[]badInput) {
	t.Helper()
	rows := slices.Concat(groups...)
	var names []string
	for _, row := range rows {
		names = append(names, row.name)
	}
	harness.Together(t, sideBySide, names, func(t *testing.T, i int) { rows[i].run(t) })
}

// sideBySide is how many rows of a table run at once.
const sideBySide = 4

// in fills the Env's namespace in.
func (x ending) in(e *harness.Env) ending {
	x.says = slices.Clone(x.says)
	for i := range x.says {
		x.says[i] = strings.ReplaceAll(x.says[i], "$NS", e.Namespace)
	}
	return x
}
