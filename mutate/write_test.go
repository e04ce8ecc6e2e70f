package mutate_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/mutate"
)

// What follows holds for an Update and for a Patch alike.
var writes = []api.ChangeType{api.Update, api.Patch}

const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue, size: small}
`

// settingsChanged is settings with another color, as the content of a change.
const settingsChanged = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red, size: small}
`

// forWrites runs a test for an Update and for a Patch of the ConfigMap settings.
func forWrites(t *testing.T, test func(e *env, i *item)) {
	t.Helper()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.create(settings)
			test(e, e.prepare(0, kind, settingsChanged))
		})
	}
}

func TestWriteIsDoneInOneRequestAndUndoneInThree(t *testing.T) {
	t.Parallel()
	forWrites(t, func(_ *env, i *item) {
		i.done()
		i.sent(map[string]string{"Update": "PUT", "Patch": "PATCH"}[i.record.Type])
		assert.Equal(t, "red", value(i.t, i.now(), "data", "color"))
		i.undone()
		i.sent("GET PATCH PATCH")
		i.restored()
	})
}

func TestWriteIsObserved(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.finds(outcome.NotApplied)
		i.sent("GET")
		e.merge("somebody", i.object, `{"metadata":{"annotations":{"note":"x"}}}`)
		i.finds(outcome.NotApplied)
		e.merge("somebody", i.object, `{"metadata":{"annotations":{"note":null}}}`)
		i.done()
		i.finds(outcome.Applied)
		e.merge("somebody", i.object, `{"data":{"size":"large"}}`)
		i.finds(outcome.Applied)
		e.merge("somebody", i.object, `{"data":{"color":"green"}}`)
		if i.record.Type == "Patch" {
			i.finds(outcome.Diverged)
		}
		e.remove(i.object)
		i.finds(outcome.Diverged)
		e.create(settings)
		i.finds(outcome.Diverged)
	})
}

// An apply takes away what its manager owns and does not set any more.
func TestAnItemsManagerThatSomebodyHasMadeOwnFieldsIsDrift(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red, size: huge}}")
	i := e.prepare(0, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue}}")
	entries := e.live(obj).GetManagedFields()
	entries[0].Manager, entries[0].Operation = i.change.Names.Manager, metav1.ManagedFieldsOperationApply
	e.setManagedFields(obj, entries)

	fails(t, i.do(), errclass.Conflict, errclass.Drifted, "the field manager of this item", i.change.Names.Manager)
	assert.Equal(t, map[string]any{"color": "red", "size": "huge"}, value(t, i.now(), "data"))
}

// Null is what is left out: what is sent has a name and a condition all the same.
func TestContentWhoseMetadataIsNull(t *testing.T) {
	t.Parallel()
	for _, kind := range []api.ChangeType{api.Create, api.Update, api.Patch} {
		t.Run(string(kind), func(t *testing.T) {
			e := newEnv(t)
			if kind != api.Create {
				e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}")
			}
			i := e.plan(0, kind, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue}}")
			i.change.Content = map[string]any{"metadata": nil, "data": map[string]any{"color": "blue"}}
			require.NoError(t, i.tryPrepare())
			if kind != api.Create {
				e.merge("somebody", i.object, `{"data":{"color":"green"}}`)
				fails(t, i.do(), errclass.Conflict, errclass.Drifted, ".data.color")
				return
			}
			i.done()
			assert.Equal(t, map[string]any{"color": "blue"}, value(t, i.now(), "data"))
			i.undone()
			assert.Nil(t, i.now())
		})
	}
}

func TestWriteDoneTwiceMeetsItself(t *testing.T) {
	t.Parallel()
	forWrites(t, func(_ *env, i *item) {
		i.done()
		i.wire.requests()
		// The engine observes before it repeats. One that did not would learn that
		// the target is not what it was.
		fails(i.t, i.do(), errclass.Conflict, errclass.Drifted, ".data.color", i.change.Names.Manager)
		i.undone()
		i.restored()
	})
}

func TestWriteGoesOnWhenOnlyTheStatusHasChanged(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.widgets()
			obj := e.create("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}")
			i := e.prepare(0, kind, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 2}}")
			e.merge("controller", obj, `{"status":{"phase":"Ready"}}`, "status")
			i.done()
			i.sent(map[string]string{"Update": "PUT GET PUT", "Patch": "PATCH GET PATCH"}[string(kind)])
			assert.Equal(t, int64(2), value(t, i.now(), "spec", "size"))
			i.finds(outcome.Applied)
			i.undone()
			i.restored()
			assert.Equal(t, "Ready", value(t, i.now(), "status", "phase"), "the status is not ours")
		})
	}
}

func TestWriteStopsAtADriftAndNamesFieldAndManager(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		e.merge("somebody", i.object, `{"metadata":{"annotations":{"note":"x"}}}`)
		drifted := i.now()
		fails(i.t, i.do(), errclass.Conflict, errclass.Drifted, ".metadata.annotations", "somebody")
		assert.Equal(i.t, drifted, i.now(), "the target")
	})
}

func TestWriteStopsWhenTheTargetIsGoneAndDoesNotCreateIt(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		e.remove(i.object)
		fails(i.t, i.do(), errclass.Conflict, errclass.Drifted, "deleted it")
		assert.Nil(i.t, i.now(), "W1, W4: it was created")
	})
}

// W1, W4: an update creates what is missing for these kinds, and an apply for all.
func TestWriteNeverCreates(t *testing.T) {
	t.Parallel()
	objects := map[string]string{
		"Lease":       "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: w4}, spec: {holderIdentity: %s}}",
		"Role":        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: w4, labels: {a: %s}}}",
		"RoleBinding": "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: w4, labels: {a: %s}}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: w4}}",
		"ClusterRole": "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: w4, labels: {a: %s}}}",
		"Service":     "{apiVersion: v1, kind: Service, metadata: {name: w4, labels: {a: %s}}, spec: {ports: [{port: 80}]}}",
		"LimitRange":  "{apiVersion: v1, kind: LimitRange, metadata: {name: w4, labels: {a: %s}}, spec: {limits: []}}",
		"Widget":      "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w4, labels: {a: %s}}, spec: {}}",
	}
	for name, text := range objects {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.widgets()
			for _, kind := range writes {
				e.create(fmt.Sprintf(text, "a"))
				i := e.prepare(0, kind, fmt.Sprintf(text, "b"))
				e.remove(i.object)
				fails(t, i.do(), errclass.Conflict, errclass.Drifted)
				assert.Nil(t, i.now(), "%s created it", kind)
			}
		})
	}
}

func TestWriteWithoutABaselineIsRefused(t *testing.T) {
	t.Parallel()
	forWrites(t, func(_ *env, i *item) {
		i.baseline = mutate.BaselineOf(nil)
		fails(i.t, i.do(), errclass.Terminal, errclass.NotFound)
		i.sent("")
		assert.Equal(i.t, i.record.Before, i.now())
	})
}

func TestWriteStopsWhenTheTargetIsAnotherObject(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		e.remove(i.object)
		theirs := e.create(settings)
		fails(i.t, i.do(), errclass.Conflict, errclass.Drifted, "re-created")
		assert.Equal(i.t, theirs, i.now())
		// K17: nor does a rollback touch it.
		fails(i.t, i.undo(), errclass.Conflict, errclass.Drifted, "re-created")
		assert.Equal(i.t, theirs, i.now())
	})
}

func TestWriteStopsAtATargetOnItsWayOut(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		const held = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, finalizers: [example.com/held]}
data: {color: red, size: small}
`
		e.merge("somebody", i.object, `{"metadata":{"finalizers":["example.com/held"]}}`)
		i = e.prepare(1, api.ChangeType(i.record.Type), held)
		late := e.prepare(2, api.ChangeType(i.record.Type), held)
		i.done()
		e.askToRemove(i.object)
		fails(i.t, late.do(), errclass.Conflict, errclass.Drifted, "example.com/held")
		fails(i.t, i.undo(), errclass.Conflict, errclass.Drifted, "example.com/held")
		i.finds(outcome.Applied)
		refused := e.plan(3, api.ChangeType(i.record.Type), settingsChanged)
		fails(i.t, refused.tryPrepare(), errclass.Terminal, errclass.Terminating, "example.com/held")
		e.merge("somebody", i.object, `{"metadata":{"finalizers":null}}`)
	})
}

func TestWriteOfWhatDoesNotExistIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, kind := range writes {
		fails(t, e.plan(0, kind, settings).tryPrepare(), errclass.Terminal, errclass.NotFound, "make it with a Create")
	}
}

// W3: the server alone would let an update of a core kind overwrite blindly.
func TestNoWriteIsLostToAnUpdate(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(deployment)
	i := e.prepare(0, api.Update, deploymentChanged)
	e.merge("autoscaler", i.object, `{"spec":{"replicas":7}}`, "scale")
	fails(t, i.do(), errclass.Conflict, errclass.Drifted, ".spec.replicas", "autoscaler")
	assert.Equal(t, int64(7), value(t, i.now(), "spec", "replicas"))
}

// W6: a misspelt field is an error, not dropped.
func TestUnknownFieldIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	for _, kind := range writes {
		err := e.plan(0, kind, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, date: {a: b}}").tryPrepare()
		fails(t, err, errclass.Terminal, errclass.Invalid, "date")
	}
	err := e.plan(0, api.Create, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, date: {a: b}}").tryPrepare()
	fails(t, err, errclass.Terminal, errclass.Invalid, "date")
}

// W8: a write that changes nothing leaves no trace of itself, and counts as done.
func TestWriteThatChangesNothingCountsAsApplied(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i = e.prepare(1, api.ChangeType(i.record.Type), settings)
		i.done()
		if i.record.Type == "Update" {
			assert.Equal(i.t, i.record.Before, i.now())
		}
		e.merge("somebody", i.object, `{"metadata":{"annotations":{"note":"x"}}}`)
		i.finds(outcome.Applied)
		i.undone()
		assert.NotContains(i.t, managers(i.now()), i.change.Names.Manager+" Apply ")
		e.merge("somebody", i.object, `{"metadata":{"annotations":{"note":null}}}`)
		i.restored()
	})
}

// W12.
func TestNullInAConfigMapIsUndone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Update, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: null, size: small}}").done()
	assert.Empty(t, value(t, i.now(), "data", "color"))
	i.undone()
	i.restored()
}

// A merge patch and an apply that carry a uid and a resourceVersion are refused
// when either is not the target's, whatever the kind.
func TestPreconditionsHoldForEveryKind(t *testing.T) {
	t.Parallel()
	objects := []string{
		settings, deployment,
		"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: b}}",
		"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: preconditions}}",
		"{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: a}}",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}",
		"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {}}}",
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {maxUnavailable: 1, selector: {matchLabels: {a: b}}}}",
		"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}",
		"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}",
	}
	e := newEnv(t)
	e.widgets()
	for _, text := range objects {
		obj := parse(t, text)
		t.Run(obj.GetKind(), func(t *testing.T) {
			e := &env{Client: e.Client, t: t, namespace: e.namespace, wire: e.wire, dynamic: e.dynamic, resolver: e.resolver}
			e.create(text)
			refusesStaleWrites(e, obj)
		})
	}
	require.False(t, t.Failed())
}

// Some of these the API server answers with 500, which would be tried for ever.
func TestContentThatDoesNotFitTheKindIsInvalid(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.widgets()
	e.create("{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: aGk=}}")
	e.create(deployment)
	e.create("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}")
	for _, content := range []string{
		"{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: 'aGk=!'}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: 5}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: s}, data: [a]}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: abc}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{image: a}]}}}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: a, image: a}, {name: a, image: b}]}}}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: xx}}}]}}}}",
		"{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: a}}",
		"{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {parts: [{count: 1}]}}",
		"{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {parts: [{name: a}, {name: a}]}}",
	} {
		for _, kind := range writes {
			fails(t, e.plan(0, kind, content).tryPrepare(), errclass.Terminal, errclass.Invalid)
		}
		fresh := e.plan(0, api.Create, content)
		fresh.change.Ref.Name = "fresh"
		_, err := fresh.strategy.Try(t.Context(), fresh.change, fresh.baseline)
		fails(t, err, errclass.Terminal, errclass.Invalid)
	}
}

// A rollback would take from another client what it has come to own since the
// before-image, and what was restored would not be as it was when the change was made.
func TestFieldsThatSomebodyHasComeToOwnAreDrift(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		e.apply("gitops", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue}}")
		fails(t, i.do(), errclass.Conflict, errclass.Drifted, ".data.color of gitops, kubectl", "the owners of fields have changed")
		assert.Equal(t, "blue", value(t, i.now(), "data", "color"))
	})
}

func TestFieldsThatSomebodyHasGivenUpAreDrift(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		e.apply("gitops", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue}}")
		i = e.prepare(1, api.ChangeType(i.record.Type), settingsChanged)
		e.apply("gitops", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
		fails(t, i.do(), errclass.Conflict, errclass.Drifted, ".data.color of kubectl", "the owners of fields have changed")
	})
}

func TestAPatchBearsNewOwnersOfWhatItDoesNotSet(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {shape: round}}")
	e.apply("gitops", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue}}")
	i.done()
	i.undone()
	assert.True(t, owns(i.now(), "gitops", ".data.color"))
}

// Values prove nothing where the change would have left its manager.
func TestValuesThatSomebodyElseHasWrittenAlikeAreNotTakenForTheChange(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		data, err := json.Marshal(map[string]any{"data": parse(t, settingsChanged).Object["data"]})
		require.NoError(t, err)
		e.merge("somebody", i.object, string(data))
		i.finds(outcome.Diverged)
	})
}
