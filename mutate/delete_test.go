package mutate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

func TestDeleteIsDoneInFourRequestsAndUndoneInFour(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings)
	i.finds(outcome.NotApplied)
	i.wire.requests()
	i.done()
	i.sent("GET DELETE GET GET")
	assert.Nil(t, i.now())
	i.finds(outcome.Applied)
	i.wire.requests()
	i.undone()
	i.sent("GET GET POST PATCH")
	i.restored()
	i.undone()
	i.sent("GET")
	i.restored()
}

func TestDeleteOfAnObjectWithoutManagedFieldsIsUndone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
	i := e.prepare(0, api.Delete, settings).done()
	i.undone()
	i.restored()
	i.undone()
	i.restored()
}

// Nothing of what a creation sends is tracked, and yet its list of rules has an owner.
func TestUndoOfADeleteRestoresOwnersOfWhatIsNotTracked(t *testing.T) {
	t.Parallel()
	const empty = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: empty}, rules: []}"
	e := newEnv(t)
	e.create(empty)
	for n := range 4 {
		for _, lose := range []bool{false, true} {
			i := e.prepare(0, api.Delete, empty).done()
			require.NotEmpty(t, entries(i.record.Before))
			interrupt := i.wire.refuseNth
			if lose {
				interrupt = i.wire.loseNth
			}
			interrupt(n)
			fails(t, patiently(i.undo), errclass.Unknown, errclass.ServerUnavailable)
			i.wire.requests()
			i.undone()
			i.restored()
		}
	}
}

func TestDeleteDoneTwiceReportsThatItIsGone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings).done()
	// The engine observes before it repeats.
	fails(t, i.do(), errclass.Conflict, errclass.Drifted, "deleted it")
	i.finds(outcome.Applied)
}

func TestDeleteOfWhatDoesNotExistIsDone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Delete, settings)
	i.finds(outcome.Applied)
	i.wire.requests()
	i.done()
	i.sent("GET GET")
	i.undone()
	theirs := e.create(settings)
	i.finds(outcome.NotApplied)
	fails(t, i.do(), errclass.Conflict, errclass.Drifted, "created it")
	i.undone()
	assert.Equal(t, theirs, i.now())
}

func TestDeleteGoesOnWhenOnlyTheStatusHasChanged(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.widgets()
	obj := e.create("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}")
	i := e.prepare(0, api.Delete, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}")
	e.merge("controller", obj, `{"status":{"phase":"Ready"}}`, "status")
	i.done()
	i.sent("GET DELETE GET DELETE GET GET")
	i.undone()
	i.restored()
}

func TestDeleteStopsAtADrift(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings)
	e.merge("somebody", i.object, `{"metadata":{"annotations":{"note":"x"}}}`)
	drifted := i.now()
	fails(t, i.do(), errclass.Conflict, errclass.Drifted, ".metadata.annotations.note", "somebody")
	i.finds(outcome.NotApplied)
	i.undone()
	assert.Equal(t, drifted, i.now())
}

func TestDeleteStopsWhenTheTargetIsAnotherObject(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings)
	e.remove(i.object)
	theirs := e.create(settings)
	fails(t, i.do(), errclass.Conflict, errclass.Drifted, "re-created")
	assert.Equal(t, theirs, i.now())
	i.finds(outcome.Applied)
}

func TestK1DeleteWaitsForFinalizersAndItsUndoWaitsThenCreatesAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, finalizers: [example.com/held]}, data: {a: b}}")
	i := e.prepare(0, api.Delete, settings)
	fails(t, i.do(), errclass.Retryable, errclass.Terminating, "example.com/held")
	i.sent("GET DELETE GET")
	i.finds(outcome.Applying)
	i.wire.requests()
	fails(t, i.do(), errclass.Retryable, errclass.Terminating, "example.com/held")
	i.sent("GET")
	fails(t, i.undo(), errclass.Retryable, errclass.Terminating, "example.com/held")
	i.sent("GET")
	e.merge("test", i.object, `{"metadata":{"finalizers":null}}`)
	i.undone()
	i.restored()
	// The finalizer is there again, and keeps the new one too.
	fails(t, e.prepare(1, api.Delete, settings).do(), errclass.Retryable, errclass.Terminating, "example.com/held")
	refused := e.plan(2, api.Delete, settings)
	fails(t, refused.tryPrepare(), errclass.Terminal, errclass.Terminating, "example.com/held")
	e.merge("test", i.object, `{"metadata":{"finalizers":null}}`)
}

func TestK18UndoOfADeleteWhereSomebodyCreatedItIsAConflict(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"another": settingsChanged, "the same": settings} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.create(settings)
			i := e.prepare(0, api.Delete, settings).done()
			theirs := e.apply("somebody", text)
			for _, force := range []bool{false, true} {
				i.effect.Overwrite = force
				fails(t, i.undo(), errclass.Conflict, errclass.AlreadyExists, "theirs is kept")
				assert.Equal(t, theirs, i.now())
			}
		})
	}
}

// The process that re-created it died before it could tell, and others have written
// it since: it is not another client's for that.
func TestUndoOfADeleteKnowsWhatItMadeThoughOthersHaveWrittenIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings).done()
	i.undone()
	theirs := e.merge("somebody", i.object, `{"metadata":{"annotations":{"checked":"yes"}},"data":{"color":"blue"}}`)
	again, err := i.strategy.Undo(t.Context(), i.change, i.begun())
	require.NoError(t, err)
	assert.Equal(t, theirs.GetUID(), again.Recreated)
	assert.Equal(t, theirs, i.now())
}

func TestK18UndoOfADeleteMeetsSomebodyWhoCreatesIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings).done()
	i.wire.requests()
	i.wire.set(func(n int) {
		if n == 2 {
			e.apply("somebody", settingsChanged)
		}
	})
	fails(t, i.undo(), errclass.Conflict, errclass.AlreadyExists)
	i.sent("GET GET POST GET")
	assert.Equal(t, "red", value(t, i.now(), "data", "color"))
}

func TestUndoOfADeleteGoesOnAfterACrashAtAnyRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	for n := range 4 {
		for _, lose := range []bool{false, true} {
			i := e.prepare(0, api.Delete, settings).done()
			interrupt := i.wire.refuseNth
			if lose {
				interrupt = i.wire.loseNth
			}
			interrupt(n)
			fails(t, i.undo(), errclass.Unknown, errclass.ServerUnavailable)
			i.wire.requests()
			i.undone()
			i.restored()
		}
	}
}

// What another client writes to the new object before its owners are restored stays theirs.
func TestUndoOfADeleteMeetsAWriterBetweenCreationAndOwners(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings).done()
	i.wire.requests()
	i.wire.set(func(n int) {
		if n == 3 {
			e.merge("somebody", i.object, `{"data":{"size":"large"},"metadata":{"labels":{"a":"b"}}}`)
		}
	})
	i.undone()
	i.sent("GET GET POST PATCH GET PATCH")
	now := i.now()
	assert.Equal(t, map[string]any{"color": "blue", "size": "large"}, value(t, now, "data"))
	assert.True(t, owns(now, "somebody", ".data.size"), "%v", entries(now))
	assert.True(t, owns(now, "somebody", ".metadata.labels.a"))
	assert.True(t, owns(now, "kubectl", ".data.color"))
	assert.False(t, owns(now, "kubectl", ".data.size"))
	assert.Len(t, managers(now), 2)
}

// The controller numbers the revisions of the new Deployment again.
func TestUndoOfADeleteTwiceKnowsItsOwnAfterControllersWroteIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(deployment)
	e.merge("somebody", obj, `{"spec":{"template":{"metadata":{"labels":{"generation":"two"}}}}}`)
	e.within("it is at its second revision", func() bool {
		return e.live(obj).GetAnnotations()["deployment.kubernetes.io/revision"] == "2"
	})
	e.merge("autoscaler", obj, `{"spec":{"replicas":4}}`, "scale")
	e.age(obj)
	i := e.prepare(0, api.Delete, deployment).done()
	e.within("its ReplicaSets are gone", func() bool {
		list, err := e.Kube.AppsV1().ReplicaSets(e.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
	i.undone()
	i.restored()
	assert.True(t, owns(i.now(), "autoscaler", ".spec.replicas"), "%v", entries(i.now()))
	e.within("it is at its first revision", func() bool {
		return i.now().GetAnnotations()["deployment.kubernetes.io/revision"] == "1"
	})
	i.undone()
	i.restored()
}

// Whether it exists or not.
func TestDeleteOfWhatCannotComeBackIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, text := range []string{
		"{apiVersion: batch/v1, kind: Job, metadata: {name: j}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: some-namespace}}",
		"{apiVersion: v1, kind: Node, metadata: {name: some-node}}",
		"{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: some-request}}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: c.d}}",
	} {
		fails(t, e.plan(0, api.Delete, text).tryPrepare(), errclass.Terminal, errclass.Irreversible)
	}
}

func TestK9ServiceKeepsItsAddressAndSaysWhenItWasTaken(t *testing.T) {
	t.Parallel()
	const service = "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80, protocol: TCP}]}}"
	e := newEnv(t)
	e.create(service)
	i := e.prepare(0, api.Delete, service).done()
	i.undone()
	i.restored()
	address := value(t, i.now(), "spec", "clusterIP").(string)
	i = e.prepare(0, api.Delete, service).done()
	e.create("{apiVersion: v1, kind: Service, metadata: {name: other}, spec: {clusterIP: " + address + ", ports: [{port: 80, protocol: TCP}]}}")
	fails(t, i.undo(), errclass.Terminal, errclass.AlreadyAllocated, address)
	assert.Nil(t, i.now())
}

func TestK12GenerationIsNoPartOfEquality(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.widgets()
	obj := e.create("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}")
	e.merge("somebody", obj, `{"spec":{"size":2}}`)
	e.merge("somebody", obj, `{"spec":{"size":3}}`)
	i := e.prepare(0, api.Delete, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}").done()
	i.undone()
	i.restored()
	assert.NotEqual(t, i.record.Before.GetGeneration(), i.now().GetGeneration())
	i.undone()
}

func TestK13RecreationIsRefusedByAQuotaAndByATerminatingNamespace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings).done()
	e.quota()
	fails(t, i.undo(), errclass.Terminal, errclass.AccessDenied, "exceeded quota")
	e.terminate()
	fails(t, i.undo(), errclass.Terminal, errclass.Terminating)
}

// Updates still work in a terminating namespace, so that a rollback of writes goes
// through.
func TestK13WritesAreRolledBackInATerminatingNamespace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, finalizers: [example.com/held]}, data: {color: blue}}")
	e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: gone}}")
	i := e.prepare(0, api.Patch, settingsChanged).done()
	e.terminate()
	e.within("its content is being deleted", func() bool { return i.now().GetDeletionTimestamp() != nil })
	fails(t, i.undo(), errclass.Conflict, errclass.Drifted, "example.com/held")
	e.merge("test", i.object, `{"metadata":{"finalizers":null}}`)
}

// quota leaves no room for another ConfigMap.
func (e *env) quota() {
	e.t.Helper()
	obj := e.create("{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {count/configmaps: 0}}}")
	e.within("the quota counts", func() bool {
		used, ok, _ := unstructured.NestedMap(e.live(obj).Object, "status", "used")
		return ok && len(used) > 0
	})
}

// terminate deletes the namespace of the test, and keeps it from ending.
func (e *env) terminate() {
	e.t.Helper()
	held := e.create("{apiVersion: v1, kind: Service, metadata: {name: held, finalizers: [example.com/held]}, spec: {ports: [{port: 80}]}}")
	e.t.Cleanup(func() {
		_, _ = e.resource(held).Patch(context.Background(), "held", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	require.NoError(e.t, e.Kube.CoreV1().Namespaces().Delete(e.t.Context(), e.namespace, metav1.DeleteOptions{}))
}

// An API server, or a cache before it, that shows the object that had the name before says nothing
// about the one that is to be deleted.
func TestAnObjectThatWasThereBeforeIsNoProofOfADeletion(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	first := e.create(settings)
	e.remove(first)
	e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, finalizers: [example.com/held]}, data: {a: b}}")
	i := e.prepare(0, api.Delete, settings)
	i.wire.answerOld(0, first)
	i.finds(outcome.NotApplied)
	i.sent("GET GET")
	i.wire.answerOld(2, first)
	fails(t, i.do(), errclass.Retryable, errclass.Terminating, "example.com/held")
	i.sent("GET DELETE GET GET")
	e.merge("test", i.object, `{"metadata":{"finalizers":null}}`)
}

// The right to look at the target is taken away when its deletion has been accepted.
// That refusal is no proof that it is still there.
func TestARefusalAfterTheDeletionWasAcceptedProvesNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Delete, settings)
	i.wire.forbidFrom(2)
	fails(t, i.do(), errclass.Unknown, errclass.AccessDenied, "its deletion was accepted", "the right was taken away")
	i.sent("GET DELETE GET")
	assert.Nil(t, i.now())
	i.finds(outcome.Applied)
}
