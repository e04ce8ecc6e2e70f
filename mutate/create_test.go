package mutate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/mutate"
)

func TestCreateIsDoneInOneRequestAndUndoneInFour(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings)
	i.finds(outcome.NotApplied)
	i.wire.requests()
	i.done()
	i.sent("POST")
	assert.Equal(t, i.change.Names.Marker, i.now().GetAnnotations()[mutate.MarkerAnnotation])
	i.finds(outcome.Applied)
	i.sent("GET")
	i.undone()
	i.sent("GET DELETE GET GET")
	i.restored()
	i.undone()
	i.sent("GET GET")
	i.finds(outcome.NotApplied)
}

func TestCreateDoneTwiceKnowsItsOwn(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings).done()
	first := i.now()
	i.wire.requests()
	i.done()
	i.sent("POST GET")
	assert.Equal(t, first, i.now())
}

// W7: the name is fixed, so a lost reply cannot make two.
func TestCreateWhoseReplyIsLostIsFound(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"with fields": settings,
		"empty":       "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}",
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			i := e.prepare(0, api.Create, text)
			i.wire.loseNth(0)
			fails(t, i.do(), errclass.Unknown, errclass.ServerUnavailable)
			i.finds(outcome.Applied)
			// It stays ours when others have changed every value.
			e.apply("gitops", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red, size: huge}}")
			i.finds(outcome.Applied)
		})
	}
}

func TestK16CreateOfWhatExistsFailsAndLeavesItAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings)
	theirs := e.create(settings)
	fails(t, e.plan(1, api.Create, settings).tryPrepare(), errclass.Conflict, errclass.AlreadyExists)
	fails(t, i.do(), errclass.Conflict, errclass.AlreadyExists, "nothing of it was touched")
	i.finds(outcome.NotApplied)
	// Nor does a rollback delete the foreign object.
	i.undone()
	assert.Equal(t, theirs, i.now())
}

func TestCreateMeetsATargetOnItsWayOut(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings)
	obj := e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, finalizers: [example.com/held]}}")
	e.askToRemove(obj)
	fails(t, e.plan(1, api.Create, settings).tryPrepare(), errclass.Terminal, errclass.Terminating, "example.com/held")
	fails(t, i.do(), errclass.Conflict, errclass.AlreadyExists)
	i.finds(outcome.NotApplied)
	e.merge("test", obj, `{"metadata":{"finalizers":null}}`)
	i.done()
}

func TestUndoOfACreateThatOthersWroteIsAConflict(t *testing.T) {
	t.Parallel()
	writers := map[string]func(e *env, i *item){
		"an update": func(e *env, i *item) { e.merge("somebody", i.object, `{"metadata":{"labels":{"a":"b"}}}`) },
		"an apply": func(e *env, _ *item) {
			e.apply("somebody", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {a: b}}}")
		},
		"a scaling": func(e *env, i *item) { e.merge("somebody", i.object, `{"spec":{"replicas":7}}`, "scale") },
	}
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			i := e.prepare(0, api.Create, deployment).done()
			write(e, i)
			err := i.undo()
			fails(t, err, errclass.Conflict, errclass.FieldConflict, "somebody", "kept")
			require.Len(t, errclass.FieldsOf(err), 1)
			assert.Equal(t, []string{"somebody"}, errclass.FieldsOf(err)[0].Managers)
			assert.Contains(t, []string{".metadata.labels.a", ".spec.replicas"}, errclass.FieldsOf(err)[0].Path)
			assert.NotNil(t, i.now())
			// By force it goes all the same, and what was overwritten is listed.
			i.effect.Overwrite = true
			i.undone()
			i.restored()
			assert.Equal(t, errclass.FieldsOf(err), i.report.Overwritten)
		})
	}
}

// What controllers complete soon after is no foreign write.
func TestUndoOfACreateThatControllersCompletedDeletesIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, deployment).done()
	e.within("the controller has written it", func() bool {
		return i.now().GetAnnotations()["deployment.kubernetes.io/revision"] == "1"
	})
	i.undone()
	i.restored()
}

func TestUndoOfACreateMeetsAWriter(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.widgets()
	i := e.prepare(0, api.Create, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}").done()
	i.wire.requests()
	i.wire.set(func(n int) {
		if n == 1 {
			e.merge("controller", i.object, `{"status":{"phase":"Ready"}}`, "status")
		}
	})
	i.undone()
	i.sent("GET DELETE GET DELETE GET GET")
	i.restored()

	i = e.prepare(0, api.Create, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}").done()
	i.wire.requests()
	i.wire.set(func(n int) {
		if n == 1 {
			e.merge("somebody", i.object, `{"spec":{"size":5}}`)
		}
	})
	fails(t, i.undo(), errclass.Conflict, errclass.FieldConflict, "somebody")
	assert.Equal(t, int64(5), value(t, i.now(), "spec", "size"))
}

func TestUndoOfACreateThatSomebodyDeletedIsDone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings).done()
	e.remove(i.object)
	i.undone()
	i.finds(outcome.NotApplied)
}

func TestK17UndoOfACreateThatSomebodyReplacedKeepsTheirs(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings).done()
	e.remove(i.object)
	theirs := e.create(settings)
	i.undone()
	assert.Equal(t, theirs, i.now())
	// Even when theirs is a copy of ours with its mark.
	e.remove(i.object)
	i.done()
	backup := i.now()
	e.remove(i.object)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
		delete(backup.Object["metadata"].(map[string]any), field)
	}
	_, err := e.resource(backup).Create(t.Context(), backup, metav1.CreateOptions{FieldManager: "somebody"})
	require.NoError(t, err)
	fails(t, i.undo(), errclass.Conflict, errclass.FieldConflict, "somebody")
	assert.NotNil(t, i.now())
}

func TestUndoOfACreateWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, finalizers: [example.com/held]}}").done()
	i.wire.requests()
	fails(t, i.undo(), errclass.Retryable, errclass.Terminating, "example.com/held")
	i.sent("GET DELETE GET")
	fails(t, i.undo(), errclass.Retryable, errclass.Terminating, "example.com/held")
	i.sent("GET")
	e.merge("test", i.object, `{"metadata":{"finalizers":null}}`)
	i.undone()
	i.restored()
}

func TestUndoOfACreateGoesOnAfterACrashAtAnyRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings)
	for n := range 4 {
		for _, interrupt := range []func(int){i.wire.refuseNth, i.wire.loseNth} {
			i.done()
			interrupt(n)
			fails(t, i.undo(), errclass.Unknown, errclass.ServerUnavailable)
			i.wire.requests()
			i.undone()
			i.restored()
		}
	}
}

func TestUndoOfACreatedNamespaceThatOthersFilledIsAConflict(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings).done()
	i.change.Environment.Contents = func(context.Context, schema.GroupKind, *unstructured.Unstructured) (mutate.Contents, error) {
		return mutate.Contents{Stay: []string{"ConfigMap theirs"}, Leave: []string{"Pod going"}}, nil
	}
	for _, force := range []bool{false, true} {
		i.effect.Overwrite = force
		i.wire.requests()
		fails(t, i.undo(), errclass.Conflict, errclass.NotEmpty, "ConfigMap theirs")
		i.sent("GET")
		assert.NotNil(t, i.now())
	}
}

func TestUndoOfACreatedNamespaceWaitsForWhatIsOnItsWayOut(t *testing.T) {
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings).done()
	found := mutate.Contents{Leave: []string{"Pod going"}}
	i.change.Environment.Contents = func(context.Context, schema.GroupKind, *unstructured.Unstructured) (mutate.Contents, error) {
		return found, nil
	}
	fails(t, i.undo(), errclass.Retryable, errclass.Terminating, "Pod going")
	assert.NotNil(t, i.now())
	found = mutate.Contents{}
	i.undone()
}

func TestCreateInANamespaceThatDoesNotExistIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.namespace = "nowhere"
	fails(t, e.plan(0, api.Create, settings).tryPrepare(), errclass.Terminal, errclass.NamespaceNotFound, "nowhere")
	// Unless an earlier change of the Transaction makes it.
	i := e.plan(0, api.Create, settings)
	i.change.Ref.Deferred = true
	require.NoError(t, i.tryPrepare())
	fails(t, i.do(), errclass.Retryable, errclass.KindNotFound)
	i.undone()
	later := e.plan(0, api.Patch, settings)
	later.change.Ref.Deferred = true
	fails(t, later.tryPrepare(), errclass.Terminal, errclass.NotFound, "earlier in this Transaction")
}

func TestK13CreateIsRefusedByAQuotaAndByATerminatingNamespace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings)
	e.quota()
	fails(t, i.do(), errclass.Terminal, errclass.AccessDenied, "exceeded quota")
	i.undone()
	e.terminate()
	fails(t, i.do(), errclass.Terminal, errclass.Terminating)
}

// As long as an earlier creation may still land, none is sent: neither that of a
// created target nor that of a deleted one in its rollback.
func TestNothingIsCreatedBeforeItMayBe(t *testing.T) {
	t.Parallel()
	wait := errclass.New(errclass.Retryable, "Settling", "settle", "ConfigMap settings", "waiting")
	for kind, sent := range map[api.ChangeType]string{api.Create: "", api.Delete: "GET GET"} {
		t.Run(string(kind), func(t *testing.T) {
			e := newEnv(t)
			if kind == api.Delete {
				e.create(settings)
			}
			i := e.prepare(0, kind, settings)
			try := i.do
			if kind == api.Delete {
				i.done()
				try = i.undo
			}
			i.change.Fences.MayCreate = func() error { return wait }
			i.wire.requests()
			require.ErrorIs(t, try(), wait)
			i.sent(sent)
			assert.Nil(t, i.now())
			i.change.Fences.MayCreate = nil
			require.NoError(t, try())
			assert.NotNil(t, i.now())
		})
	}
}
