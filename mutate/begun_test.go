package mutate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// An Update that only removes fields leaves no manager. That they are gone proves it as long as nothing
// has come instead: another client may have replaced the object, and it would not be as the change has it.
func TestObserveDoesNotTakeAnotherReplacementForAnUpdate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data map[string]any
		want outcome.Finding
	}{
		"nothing came instead":   {nil, outcome.Applied},
		"something came instead": {map[string]any{"other": "yes"}, outcome.Diverged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.create(settings)
			i := e.prepare(0, api.Update, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
			theirs := i.now()
			delete(theirs.Object, "data")
			if c.data != nil {
				theirs.Object["data"] = c.data
			}
			theirs.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
			_, err := e.resource(theirs).Update(t.Context(), theirs, metav1.UpdateOptions{FieldManager: "person"})
			require.NoError(t, err)
			i.finds(c.want)
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
