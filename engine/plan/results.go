package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// resultMessage is how much a result says at most.
const resultMessage = 256

// NoteResult records what a condition of an item was found to be.
func NoteResult(item *api.Item, condition api.ConditionName, holds bool, at metav1.Time, message string) {
	result := api.ConditionResult{Condition: condition, Holds: holds, Time: at, Message: errclass.Cut(errclass.Printable(message), resultMessage)}
	for i := range item.Results {
		if item.Results[i].Condition == condition {
			item.Results[i] = result
			return
		}
	}
	// The status that was read shares its items with this one.
	item.Results = append(slices.Clip(item.Results), result)
}

// WaitCondition is the condition that ends the wait which item i is in.
func WaitCondition(t *api.Transaction, i int) api.ConditionName {
	switch {
	case Restoring(&t.Status.Items[i]):
		return api.ConditionRollbackReadyWhen
	case i < len(t.Spec.Changes) && ChangeOf(t, i).GoneWhen != nil:
		return api.ConditionGoneWhen
	default:
		return api.ConditionReadyWhen
	}
}

// conditionsOf counts the conditions that a change has.
func conditionsOf(c api.Change) int {
	n := 0
	for _, has := range []bool{c.Activation != nil, c.When != "", Gated(c), c.FailWhen != nil, c.Rollback != nil} {
		if has {
			n++
		}
	}
	return n
}

// DateResults gives the results that were found by the pre-flight their time.
func DateResults(items []api.Item, now metav1.Time) {
	for i := range items {
		for n := range items[i].Results {
			if r := &items[i].Results[n]; r.Time.IsZero() {
				r.Time = now
			}
		}
	}
}
