package mutate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Anyone who is owned goes with its owner, and is not only ours any more: also when the
// control plane has adopted it.
func TestUndoOfACreateThatGotAnOwnerIsAConflict(t *testing.T) {
	t.Parallel()
	for _, manager := range []string{"somebody", "kube-controller-manager"} {
		t.Run(manager, func(t *testing.T) {
			e := newEnv(t)
			owner := e.create(ownerMap)
			i := e.prepare(0, api.Create, settings).done()
			e.merge(manager, i.object, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"`+string(owner.GetUID())+`"}]}}`)
			err := i.undo()
			fails(t, err, errclass.Conflict, errclass.FieldConflict, ".metadata.ownerReferences", manager, "kept")
			require.Len(t, errclass.FieldsOf(err), 1)
			assert.Equal(t, `.metadata.ownerReferences[uid="`+string(owner.GetUID())+`"]`, errclass.FieldsOf(err)[0].Path)
			assert.NotNil(t, i.now())
			i.effect.Overwrite = true
			i.undone()
			i.restored()
			assert.Equal(t, errclass.FieldsOf(err), i.report.Overwritten)
			assert.NotNil(t, e.live(owner))
		})
	}
}

func TestUndoOfACreateWithAnOwnerInItsContentDeletesIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	owner := e.create(ownerMap)
	obj := parse(t, settings)
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.GetUID()}})
	text, err := obj.MarshalJSON()
	require.NoError(t, err)
	i := e.prepare(0, api.Create, string(text)).done()
	i.undone()
	i.restored()
	// Where it could not be tried, its manager tells.
	i = e.prepare(0, api.Create, string(text)).done()
	i.record.After = nil
	i.undone()
	i.restored()
}

// Another client has replaced all of it, the mark too: its uid tells that it is what was made.
func TestUndoOfACreateThatSomebodyHasReplacedIsAConflict(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings)
	i.effect.Created = i.done().made.Created
	require.Equal(t, i.now().GetUID(), i.effect.Created)
	theirs := i.now()
	theirs.SetAnnotations(nil)
	theirs.SetLabels(nil)
	delete(theirs.Object, "data")
	theirs.Object["binaryData"] = map[string]any{"theirs": "YWxsIG9mIGl0"}
	_, err := e.resource(theirs).Update(t.Context(), theirs, metav1.UpdateOptions{FieldManager: "somebody"})
	require.NoError(t, err)
	require.Equal(t, []string{"somebody Update"}, managers(i.now()))
	err = i.undo()
	fails(t, err, errclass.Conflict, errclass.FieldConflict, ".binaryData", "somebody", "kept")
	assert.NotNil(t, i.now())
	i.effect.Overwrite = true
	i.undone()
	i.restored()
}

// Without its field owners an object is known by its mark, and by its values.
func TestUndoOfACreateWhoseFieldOwnersWereReset(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings).done()
	e.setManagedFields(i.object, []metav1.ManagedFieldsEntry{{}})
	require.Empty(t, i.now().GetManagedFields())
	i.undone()
	i.restored()

	i = e.prepare(0, api.Create, settings).done()
	e.merge("somebody", i.object, `{"data":{"size":"large"}}`)
	e.setManagedFields(i.object, []metav1.ManagedFieldsEntry{{}})
	err := i.undo()
	fails(t, err, errclass.Conflict, errclass.FieldConflict, `.data.size, now "large", was "small"`)
	assert.Equal(t, []errclass.Field{{Path: ".data.size", Now: `"large"`, Before: `"small"`}}, errclass.FieldsOf(err))
	assert.NotNil(t, i.now())

	// What it was is not known: whether others have written it cannot be told.
	i.record.After = nil
	fails(t, i.undo(), errclass.Conflict, errclass.FieldConflict, ".metadata.managedFields")
	i.effect.Overwrite = true
	i.undone()
	i.restored()
}

// What controllers wrote is no foreign write then either.
func TestUndoOfACreateWhoseFieldOwnersWereResetAfterControllersWroteIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, deployment).done()
	e.within("the controller has written it", func() bool {
		return i.now().GetAnnotations()["deployment.kubernetes.io/revision"] == "1"
	})
	e.setManagedFields(i.object, []metav1.ManagedFieldsEntry{{}})
	i.undone()
	i.restored()
}

// A Secret's conflict names the field, and no value.
func TestUndoOfACreateQuotesNothingOfASecret(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: geheim}}").done()
	e.merge("somebody", i.object, `{"stringData":{"password":"anders"}}`)
	err := i.undo()
	fails(t, err, errclass.Conflict, errclass.FieldConflict, ".data.password", "somebody")
	for _, f := range errclass.FieldsOf(err) {
		assert.Empty(t, f.Now+f.Before)
	}
	assert.NotContains(t, err.Error(), "anders")
	assert.NotContains(t, err.Error(), "YW5kZXJz")
}

func TestUndoOfACreateByForceGoesOnAfterACrashAtAnyRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings)
	i.effect.Overwrite = true
	for n := range 4 {
		for _, interrupt := range []func(int){i.wire.refuseNth, i.wire.loseNth} {
			i.done()
			e.merge("somebody", i.object, `{"data":{"size":"large"}}`)
			interrupt(n)
			fails(t, i.undo(), errclass.Unknown, errclass.ServerUnavailable)
			i.wire.requests()
			i.undone()
			i.restored()
		}
	}
}

// The target was swapped between the look and the deletion.
func TestUndoOfACreateByForceDeletesNobodyElses(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings).done()
	i.effect.Overwrite = true
	i.wire.requests()
	i.wire.set(func(n int) {
		if n == 1 {
			e.remove(i.object)
			e.create(settings)
		}
	})
	i.undone()
	i.sent("GET DELETE GET")
	assert.NotNil(t, i.now())
}

// Changes of one object, forward and back.
func TestChainsOfChangesOfOneObjectAreRolledBackInReverse(t *testing.T) {
	t.Parallel()
	type change struct {
		kind    api.ChangeType
		content string
	}
	before := map[string]func(e *env){
		"there":  func(e *env) { e.create(settings) },
		"absent": func(*env) {},
	}
	chains := map[string]struct {
		before  string
		changes []change
	}{
		"delete, create":                {"there", []change{{api.Delete, settings}, {api.Create, settingsChanged}}},
		"delete, create, patch, delete": {"there", []change{{api.Delete, settings}, {api.Create, settings}, {api.Patch, settingsChanged}, {api.Delete, settings}}},
		"patch, delete, create":         {"there", []change{{api.Patch, settingsChanged}, {api.Delete, settings}, {api.Create, settings}}},
		"update, delete":                {"there", []change{{api.Update, settingsChanged}, {api.Delete, settings}}},
		"create, patch":                 {"absent", []change{{api.Create, settings}, {api.Patch, settingsChanged}}},
		"create, update, patch":         {"absent", []change{{api.Create, settings}, {api.Update, settingsChanged}, {api.Patch, settings}}},
		"create, delete":                {"absent", []change{{api.Create, settings}, {api.Delete, settings}}},
		"create, delete, create":        {"absent", []change{{api.Create, settings}, {api.Delete, settings}, {api.Create, settingsChanged}}},
	}
	for name, c := range chains {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			before[c.before](e)
			s := e.saga()
			for n, change := range c.changes {
				s.then(change.kind, change.content)
				s.do(n)
			}
			for n := len(c.changes) - 1; n >= 0; n-- {
				i := s.items[n]
				for m := len(c.changes) - 1; m > n; m-- {
					if c.changes[m].kind == api.Delete {
						i.effect.Recreated = s.items[m].report.Recreated
					}
				}
				s.undo(n)
				if n == 0 {
					i.restored()
				}
			}
		})
	}
}

func TestK17RollbackDoesNotTouchWhatSomebodyRecreated(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		e.remove(i.object)
		theirs := e.create(settingsChanged)
		for _, force := range []bool{false, true} {
			i.effect.Overwrite = force
			fails(i.t, i.undo(), errclass.Conflict, errclass.Drifted, "re-created")
			assert.Equal(i.t, theirs, i.now())
		}
	})
}
