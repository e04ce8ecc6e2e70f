package engine

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// standstill notices a step that changes nothing: it would be decided on again at once, and the API server
// written to without a pause. Only a mistake of the engine leads there.
type standstill struct {
	action plan.Action
	phase  api.Phase
	items  []api.Item
	known  plan.Known
	began  time.Time // when the step was last decided on
	times  int       // how often it was since something changed
}

// mostRepeats is how often a step that changes nothing is carried out in a row.
const mostRepeats = 10

// decided is told of each step before it is carried out. Its error says that the step has changed nothing
// too often. One that takes a while may be one that is resumed.
func (l *standstill) decided(s *saga, a plan.Action) error {
	now, status := s.clock.Now(), &s.txn.Status
	changed := a.Verb != l.action.Verb || a.Item != l.action.Item || !slices.Equal(a.Items, l.action.Items) ||
		status.Phase != l.phase || !maps.Equal(s.flight.Known, l.known) || now.Sub(l.began) >= pollInterval ||
		!equality.Semantic.DeepEqual(status.Items, l.items)
	if changed {
		*l = standstill{action: a, phase: status.Phase, items: status.Items, known: maps.Clone(s.flight.Known), began: now, times: 1}
		return nil
	}
	l.began = now
	if l.times++; l.times <= mostRepeats {
		return nil
	}
	return errclass.New(errclass.Retryable, errclass.NoProgress, "go on with", "Transaction "+s.txn.Namespace+"/"+s.txn.Name,
		"the step %s was carried out %d times in a row, and has changed nothing", a.Verb, mostRepeats).
		WithHint("this is a mistake of janusd, please report it; it is tried again less and less often, and spec.cancel ends it")
}
