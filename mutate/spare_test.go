package mutate_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
	"janus.io/janus/mutate/kinds"
)

const (
	adopter = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: x}, spec: {replicas: 2, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: example.com/a}]}}}}`
	mine    = `{apiVersion: v1, kind: Pod, metadata: {name: mine, labels: {app: x}}, spec: {containers: [{name: a, image: example.com/a}]}}`
)

// withOwners lists the Pods that have owners, as internal/wiring does.
func (e *env) withOwners(ctx context.Context, _ *unstructured.Unstructured, _ mutate.Wanted) (mutate.Dependants, error) {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	list, err := e.dynamic.Resource(gvr).Namespace(e.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return mutate.Dependants{}, errclass.Wrap(err, "list", "pods", false)
	}
	var out mutate.Dependants
	for _, item := range list.Items {
		pod := &metav1.PartialObjectMetadata{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": item.Object["metadata"]}, pod); err != nil {
			return out, fmt.Errorf("decode: %w", err)
		}
		pod.Kind = "Pod"
		if len(pod.OwnerReferences) > 0 {
			out.All = append(out.All, mutate.Dependant{GVR: gvr, PartialObjectMetadata: pod})
		}
	}
	return out, nil
}

// adopting has a ReplicaSet that a change makes adopt a Pod that is there before.
func (e *env) adopting() (i *item, pod *unstructured.Unstructured) {
	e.t.Helper()
	pod, err := e.resource(parse(e.t, mine)).Create(e.t.Context(), parse(e.t, mine), metav1.CreateOptions{FieldManager: "kubectl"})
	require.NoError(e.t, err)
	i = e.prepare(0, api.Create, adopter)
	i.change.Environment.Dependants = e.withOwners
	i.done()
	e.within("it is adopted, and its controller has come to rest", func() bool {
		replicas, _, _ := unstructured.NestedInt64(i.now().Object, "status", "replicas")
		return len(e.live(pod).GetOwnerReferences()) == 1 && replicas == 2
	})
	i.wire.requests()
	return i, pod
}

// goesOn calls the compensation until it is done, as the engine does.
func (i *item) goesOn() {
	i.t.Helper()
	var err error
	for range 50 {
		if err = i.undo(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.NoError(i.t, err)
}

// spared asserts that the Pod is as before, and clears it away.
func (i *item) spared(pod *unstructured.Unstructured) {
	i.t.Helper()
	assert.Nil(i.t, i.now())
	i.within("what it has made is gone", func() bool {
		left, err := i.Kube.CoreV1().Pods(i.namespace).List(i.t.Context(), metav1.ListOptions{})
		require.NoError(i.t, err)
		return len(left.Items) <= 1
	})
	now := i.live(pod)
	require.NotNil(i.t, now)
	assert.Equal(i.t, pod.GetUID(), now.GetUID())
	assert.Nil(i.t, now.GetDeletionTimestamp())
	assert.Empty(i.t, now.GetOwnerReferences())
	i.remove(pod)
}

func TestWhatWasAdoptedIsSparedWhateverRequestIsLost(t *testing.T) {
	t.Parallel()
	for n := range 10 { // GET, LIST, two dry runs, PATCH, DELETE; GET, LIST, PATCH, LIST, PATCH, GET
		for _, lose := range []bool{false, true} {
			t.Run(fmt.Sprintf("request %d, answer lost %t", n, lose), func(t *testing.T) {
				t.Parallel()
				e := newEnv(t)
				i, pod := e.adopting()
				if lose {
					i.wire.loseNth(n)
				} else {
					i.wire.refuseNth(n)
				}
				i.goesOn()
				i.spared(pod)
			})
		}
	}
}

// Without a right half-way nothing is deleted that was there before, and the object is not
// left with the finalizer unless it is on its way out.
func TestWhatWasAdoptedIsSparedWhicheverRightIsTakenAway(t *testing.T) {
	t.Parallel()
	for n := range 10 {
		t.Run(fmt.Sprintf("from request %d", n), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			i, pod := e.adopting()
			i.wire.forbidFrom(n)
			for range 3 {
				if err := i.undo(); errclass.Is(err, errclass.AccessDenied) {
					break
				}
			}
			time.Sleep(time.Second)
			require.NotNil(t, e.live(pod))
			assert.Nil(t, e.live(pod).GetDeletionTimestamp())
			i.wire.requests()
			i.goesOn()
			i.spared(pod)
		})
	}
}

// Another client writes the object when the finalizer is on it and its deletion is still to
// come.
func TestAnObjectThatIsKeptAfterAllHasNoFinalizer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i, pod := e.adopting()
	i.wire.refuseNth(4) // the deletion
	require.Error(t, i.undo())
	require.Contains(t, i.now().GetFinalizers(), mutate.HoldFinalizer)
	e.merge("somebody", i.object, `{"metadata":{"annotations":{"theirs":"1"}}}`)
	err := i.undo()
	fails(t, err, errclass.Conflict, errclass.FieldConflict, "theirs")
	assert.Empty(t, i.now().GetFinalizers())
	assert.Nil(t, e.live(pod).GetDeletionTimestamp())
}

// What adopts nothing costs no request more.
func TestUndoOfAPlainCreateAsksForNoDependants(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings).done()
	i.wire.requests()
	i.undone()
	i.sent("GET DELETE GET GET")
	known, anything := kinds.Adopts(schema.GroupKind{Kind: "ConfigMap"})
	assert.Empty(t, known)
	assert.False(t, anything)
}
