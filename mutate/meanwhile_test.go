package mutate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// Between the values and the owners another client removes what was restored: it looks
// as the change left it.
func TestWhatSomebodyRemovesAfterItWasRestoredStaysRemoved(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue, size: small}}")
	i := e.prepare(0, api.Update, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}").done()
	i.wire.requests()
	i.wire.set(func(n int) {
		if n == 2 {
			e.merge("somebody", i.object, `{"data":{"size":null}}`)
		}
	})
	require.NoError(t, i.undo())
	i.sent("GET PATCH PATCH GET PATCH")
	assert.Equal(t, map[string]any{"color": "blue"}, value(t, i.now(), "data"))
	assert.True(t, owns(i.now(), "kubectl", ".data.color"), "%v", entries(i.now()))
}

func TestWhatSomebodyDeletesAfterItWasMadeAnewStaysDeleted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings).done()
	i.wire.requests()
	i.wire.set(func(n int) {
		if n == 3 {
			e.remove(i.object)
		}
	})
	fails(t, i.undo(), errclass.Conflict, errclass.Drifted, "another client has deleted it since it was re-created")
	assert.Nil(t, i.now())
}

// A call before this one has re-created it, and that is on record.
func TestWhatSomebodyDeletesAfterItWasRecordedAsMadeAnewStaysDeleted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings).done()
	undone, err := i.strategy.Undo(t.Context(), i.change, i.begun())
	require.NoError(t, err)
	i.effect.Created = undone.Recreated
	e.remove(i.object)
	fails(t, i.undo(), errclass.Conflict, errclass.Drifted, "another client has deleted it since it was re-created")
	assert.Nil(t, i.now())
}

// A deletion does not say whose it is. Before the first request it is not ours, and a
// rollback is not to re-create what another client has wanted gone.
func TestADeletionBySomebodyElseIsDrift(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, finalizers: [example.com/held]}, data: {color: blue}}")
	i := e.prepare(0, api.Delete, settings)
	e.askToRemove(obj)
	i.change.Fences.Fresh = true
	fails(t, i.do(), errclass.Conflict, errclass.Drifted, "another client has deleted it since it was prepared", "example.com/held")
	i.change.Fences.Fresh = false
	fails(t, i.do(), errclass.Retryable, errclass.Terminating, "example.com/held")
	e.edit(obj, `[{"op":"remove","path":"/metadata/finalizers"}]`)
}

// A request that was sent before may still land: it must find its manager there.
func TestAPatchThatAltersNothingIsNotTakenToBeMade(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue}}")
	i := e.prepare(0, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue}}")
	e.merge("somebody", obj, `{"metadata":{"annotations":{"note":"x"}}}`)
	i.finds(outcome.NotApplied)
	require.Error(t, i.do(), "the annotation is drift")
}

// A look may take as long as it takes another process to roll the change back and end
// the Transaction, and another client to write the target again.
func TestAnUndoThatIsLateAfterItsLookWritesNothing(t *testing.T) {
	t.Parallel()
	for title, c := range map[string]struct {
		change  api.ChangeType
		content string
		sent    string
	}{
		"values and owners": {api.Update, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}", "GET"},
		"a deletion":        {api.Create, "{apiVersion: v1, kind: ConfigMap, metadata: {name: fresh}, data: {color: red}}", "GET"},
		"a creation":        {api.Delete, settings, "GET GET"},
	} {
		t.Run(title, func(t *testing.T) {
			e := newEnv(t)
			if c.change != api.Create {
				e.create(settings)
			}
			i := e.prepare(0, c.change, c.content).done()
			i.wire.requests()
			overtaken := errclass.New(errclass.Retryable, errclass.StaleVersion, "write the status of", "Transaction shop/txn", "another client has written it")
			i.change.Fences.Confirm = func(context.Context, bool) error { return overtaken }
			require.ErrorIs(t, i.undo(), overtaken)
			i.sent(c.sent)
		})
	}
}
