package mutate_test

import (
	"testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// Anyone who is not to undo a change any more has to know whether that was begun: what
// was made in part is finished.

func TestObserveKnowsAWriteThatIsRolledBackInPart(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		i.effect.Undoing = true
		i.finds(outcome.Applied)
		e.merge("somebody", i.object, `{"data":{"size":"large"}}`)
		i.finds(outcome.Applied)
		i.wire.refuseNth(2)
		fails(i.t, i.undo(), errclass.Unknown, errclass.ServerUnavailable)
		i.sent("GET PATCH PATCH")
		i.finds(outcome.Diverged)
		i.effect.Undoing = false
		i.finds(outcome.Applied) // by its manager, who still owns the values of before
		i.effect.Undoing = true
		i.undone()
		i.finds(outcome.NotApplied)
	})
}

// One field is another client's by now, and stays so: the others show that nothing was
// restored yet.
func TestObserveKnowsThatNothingIsRolledBackBesideAConflict(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.create(settings)
			i := e.prepare(0, kind, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red, size: huge}}").done()
			e.merge("somebody", i.object, `{"data":{"color":"green"}}`)
			i.effect.Undoing = true
			i.finds(outcome.Applied)
			i.wire.refuseNth(2)
			fails(t, i.undo(), errclass.Unknown, errclass.ServerUnavailable)
			i.finds(outcome.Diverged)
		})
	}
}

func TestObserveKnowsACreateThatIsRolledBackInPart(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, finalizers: [example.com/held]}}").done()
	i.effect.Undoing = true
	i.finds(outcome.Applied)
	fails(t, i.undo(), errclass.Retryable, errclass.Terminating)
	i.finds(outcome.Diverged)
	e.merge("somebody", i.object, `{"metadata":{"finalizers":null}}`)
	i.finds(outcome.NotApplied)
}

func TestObserveKnowsADeleteThatIsRolledBackInPart(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings).done()
	i.effect.Undoing = true
	i.finds(outcome.Applied)
	i.wire.refuseNth(3) // It is re-created, and its fields do not have their owners.
	fails(t, i.undo(), errclass.Unknown, errclass.ServerUnavailable)
	i.finds(outcome.Diverged)
}
