package harness

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
)

// Ending is how a Transaction ends that does not commit.
type Ending struct {
	// Phase is Failed unless it is given.
	Phase api.Phase
	// Reason is that of Ready, and of Succeeded unless Cause is given.
	Reason, Cause string
	// Validated is the status of the condition; False unless it is given.
	Validated metav1.ConditionStatus
	// Says are parts of the message: the object, what is wrong, and the way out.
	Says []string
}

// Check asserts that the Transaction has ended as it should and says so to
// people, to tools, and in an event.
func (x Ending) Check(t *testing.T, e *Env, txn *api.Transaction) {
	t.Helper()
	phase, cause, validated := x.Phase, x.Cause, x.Validated
	if phase == "" {
		phase = api.PhaseFailed
	}
	if cause == "" {
		cause = x.Reason
	}
	if validated == "" {
		validated = metav1.ConditionFalse
	}
	assert.Equal(t, phase, txn.Status.Phase, Describe(txn))
	assert.NotNil(t, txn.Status.CompletionTime)

	status, reason, message := Condition(txn, api.ConditionReady)
	assert.Equal(t, "False", status, "Ready")
	assert.Equal(t, x.Reason, reason, "reason of Ready: %s", message)
	for _, part := range x.Says {
		assert.Contains(t, message, part, "message of Ready")
	}
	status, reason, message = Condition(txn, api.ConditionSucceeded)
	assert.Equal(t, "False", status, "Succeeded")
	assert.Equal(t, cause, reason, "reason of Succeeded: %s", message)
	status, reason, _ = Condition(txn, api.ConditionValidated)
	assert.Equal(t, string(validated), status, "Validated")
	if validated == metav1.ConditionFalse {
		assert.Equal(t, cause, reason, "reason of Validated")
	}
	status, _, _ = Condition(txn, api.ConditionStalled)
	assert.Equal(t, "True", status, "Stalled")
	status, _, _ = Condition(txn, api.ConditionReconciling)
	assert.Equal(t, "False", status, "Reconciling")
	status, _, message = Condition(txn, api.ConditionRolledBack)
	assert.Equal(t, phase == api.PhaseRolledBack, status == "True", "RolledBack: %s", message)

	event := AwaitEventOf(t, e, txn, string(phase))
	assert.Equal(t, "Warning", event.Type)
	for _, part := range x.Says {
		assert.Contains(t, event.Note, part, "note of the event")
	}
}

// In fills the Env's namespace in.
func (x Ending) In(e *Env) Ending {
	x.Says = slices.Clone(x.Says)
	for i := range x.Says {
		x.Says[i] = strings.ReplaceAll(x.Says[i], "$NS", e.Namespace)
	}
	return x
}

// AwaitEventOf waits for an event about the Transaction.
func AwaitEventOf(t *testing.T, e *Env, txn *api.Transaction, reason string) eventsv1.Event {
	t.Helper()
	var found eventsv1.Event
	var seen []string
	err := Poll(t.Context(), func(ctx context.Context) (bool, error) {
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
