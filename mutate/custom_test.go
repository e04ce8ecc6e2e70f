package mutate_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

const gadget = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: gadget}
spec:
  size: 9007199254740993
  nickname: null
  options: {none: null, empty: {}, deep: {list: [{x: null}, null]}}
`

// A merge patch cannot set a null, nor keep one inside of a list.
func TestExplicitNullsAndLargeIntegersComeBack(t *testing.T) {
	t.Parallel()
	contents := map[string]string{
		"a value in place of null":         "nickname: gizmo, size: 9007199254740995",
		"a value in place of a deep null":  "options: {none: x, empty: {y: 1}, deep: {list: [1]}}",
		"a scalar in place of an object":   "options: {empty: 3, deep: 4}",
		"an object in place of null":       "options: {none: {a: {b: null}}}",
		"a field with an awkward name":     `options: {"a/b~c": 1, none: 2}`,
		"a label and an annotation beside": "nickname: gizmo",
	}
	for name, spec := range contents {
		for _, kind := range writes {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				t.Parallel()
				e := newEnv(t)
				e.widgets()
				e.create(gadget)
				i := e.prepare(0, kind, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: gadget, labels: {a: b}}, spec: {"+spec+"}}").done()
				i.wire.requests()
				i.undone()
				i.sent("GET PATCH PATCH")
				i.restored()
				raw, err := e.resource(i.object).Get(t.Context(), "gadget", metav1.GetOptions{})
				require.NoError(t, err)
				text, err := json.Marshal(raw.Object["spec"])
				require.NoError(t, err)
				before, err := json.Marshal(i.record.Before.Object["spec"])
				require.NoError(t, err)
				assert.Equal(t, string(before), string(text))
			})
		}
	}
}

func TestNullIsRestoredBesideAWriterAndNotOverHim(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.widgets()
	e.create(gadget)
	i := e.prepare(0, api.Patch, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: gadget}, spec: {nickname: gizmo, size: 1, options: {none: x}}}").done()
	i.wire.requests()
	i.wire.set(func(n int) {
		if n == 1 {
			e.merge("somebody", i.object, `{"spec":{"size":5,"options":null}}`)
		}
	})
	fails(t, i.undo(), errclass.Conflict, errclass.FieldConflict, ".spec.size", ".spec.options.none", "somebody")
	i.sent("GET PATCH GET PATCH PATCH")
	assert.Equal(t, int64(5), value(t, i.now(), "spec", "size"))
	assert.Nil(t, value(t, i.now(), "spec", "nickname"))
	assert.Equal(t, "<absent>", value(t, i.now(), "spec", "options"))
}

// An atomic object is owned as one field, and so claimed.
func TestAtomicObjectThatSomebodyAppliedTooIsAConflict(t *testing.T) {
	t.Parallel()
	const selecting = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: gadget}, spec: {selector: {a: c}}}"
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			e := newEnv(t)
			e.widgets()
			e.create("{apiVersion: example.com/v1, kind: Widget, metadata: {name: gadget}, spec: {selector: {a: b}}}")
			i := e.prepare(0, kind, selecting).done()
			i.undone()
			i.restored()
			i = e.prepare(0, kind, selecting).done()
			e.apply("gitops", selecting)
			fails(t, i.undo(), errclass.Conflict, errclass.FieldConflict, ".spec.selector", "gitops")
			assert.Equal(t, map[string]any{"a": "c"}, value(t, i.now(), "spec", "selector"))
		})
	}
}

// An owner that wrote by another version of the kind gets its fields back too.
func TestOwnerOfAnotherVersionIsBackAfterUndo(t *testing.T) {
	t.Parallel()
	const old = "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 5, targetCPUUtilizationPercentage: 60}}"
	e := newEnv(t)
	e.create(old)
	i := e.prepare(0, api.Patch, `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  maxReplicas: 9
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
`).done()
	i.undone()
	i.restored()
}

// One entry of a version that the server has ceased to serve makes it drop all.
func TestOwnersSurviveAVersionThatIsNotServedAnyMore(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(settings)
	i := e.prepare(0, api.Patch, settingsChanged).done()
	gone := obj.GetManagedFields()[0]
	gone.Manager, gone.APIVersion = "formerly", "settings.example.com/v1beta1"
	i.record.Before.SetManagedFields(append(i.record.Before.GetManagedFields(), gone))
	i.undone()
	assert.Equal(t, []string{"kubectl Apply"}, managers(i.now()))
	assert.True(t, owns(i.now(), "kubectl", ".data.color"))
	i.undone()
	assert.Equal(t, []string{"kubectl Apply"}, managers(i.now()))
}

// K10, as far as built: the dependents of a deleted object go with it, and the
// controller makes new ones for the re-created object.
func TestRecreatedDeploymentHasItsPodsMadeAnew(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(deployment)
	replicaSets := func() (uids []string) {
		list, err := e.Kube.AppsV1().ReplicaSets(e.namespace).List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, rs := range list.Items {
			uids = append(uids, string(rs.UID))
		}
		return uids
	}
	e.within("it has a ReplicaSet", func() bool { return len(replicaSets()) == 1 })
	old := replicaSets()[0]
	i := e.plan(0, api.Delete, deployment)
	require.NoError(t, i.tryPrepare())
	i.done()
	i.finds(outcome.Applied)
	i.undone()
	i.restored()
	e.within("it has another ReplicaSet", func() bool {
		now := replicaSets()
		return len(now) == 1 && now[0] != old
	})
}

// A custom resource that nobody owned any field of has no owners afterwards either.
func TestACustomResourceWithoutOwnersHasNoneAfterwards(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.widgets()
			obj := e.create(gadget)
			e.merge("somebody", obj, `{"metadata":{"managedFields":[{}]}}`)
			require.Empty(t, e.live(obj).GetManagedFields())
			i := e.prepare(0, kind, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: gadget}, spec: {nickname: gizmo}}").done()
			i.undone()
			i.restored()
			assert.Empty(t, i.now().GetManagedFields())
		})
	}
}
