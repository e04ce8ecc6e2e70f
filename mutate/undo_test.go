package mutate_test

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/mutate"
)

func TestUndoKeepsWhatOthersWroteElsewhere(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		e.merge("somebody", i.object, `{"data":{"size":"large","shape":"round"},"metadata":{"annotations":{"note":"x"}}}`)
		i.wire.requests()
		i.undone()
		i.sent("GET PATCH PATCH")
		now := i.now()
		assert.Equal(i.t, map[string]any{"color": "blue", "size": "large", "shape": "round"}, value(i.t, now, "data"))
		assert.Equal(i.t, "x", now.GetAnnotations()["note"])
		assert.True(i.t, owns(now, "kubectl", ".data.color"), "the owner is back: %v", entries(now))
		assert.True(i.t, owns(now, "somebody", ".data.size"))
		assert.False(i.t, owns(now, "kubectl", ".data.size"), "another client has taken it")
		assert.False(i.t, owns(now, i.change.Names.Manager, ".data.color"))
	})
}

func TestUndoKeepsTheirValueOfOurFieldAndRestoresTheOthers(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.create(settings)
			i := e.prepare(0, kind, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red, size: huge}}").done()
			e.merge("somebody", i.object, `{"data":{"color":"green"}}`)
			err := i.undo()
			fails(t, err, errclass.Conflict, errclass.FieldConflict, ".data.color", "somebody")
			assert.NotContains(t, err.Error(), ".data.size")
			now := i.now()
			assert.Equal(t, map[string]any{"color": "green", "size": "small"}, value(t, now, "data"))
			assert.True(t, owns(now, "somebody", ".data.color"))
			assert.False(t, owns(now, "kubectl", ".data.color"))
			assert.True(t, owns(now, "kubectl", ".data.size"))
			// And again: the answer stays the same, and nothing more is written.
			i.wire.requests()
			fails(t, i.undo(), errclass.Conflict, errclass.FieldConflict, ".data.color", "somebody")
			i.sent("GET GET")
			assert.Equal(t, now, i.now())
		})
	}
}

func TestUndoIsAConflictWhereSomebodyAppliedTheSameValue(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		e.apply("gitops", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}")
		fails(i.t, i.undo(), errclass.Conflict, errclass.FieldConflict, ".data.color", "gitops")
		assert.Equal(i.t, "red", value(i.t, i.now(), "data", "color"))
		assert.True(i.t, owns(i.now(), "gitops", ".data.color"))
	})
}

// The same, of a manager that owned the field before the change: it has taken it
// again, and keeps it.
func TestUndoLeavesWhatTheFormerOwnerHasTakenAgain(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		e.apply("kubectl", settingsChanged)
		i.undone()
		assert.Equal(i.t, []errclass.Field{{Path: ".data.color", Managers: []string{"kubectl"}, Now: `"red"`, Before: `"blue"`}}, i.report.Reclaimed)
		assert.Equal(i.t, "red", value(i.t, i.now(), "data", "color"))
		assert.True(i.t, owns(i.now(), "kubectl", ".data.color"))
	})
}

// That the values are restored is told before their owners are, by the call that restores them: what is
// found restored may have been read before the change was made.
func TestThatValuesAreRestoredIsToldBeforeTheirOwnersAre(t *testing.T) {
	t.Parallel()
	forWrites(t, func(_ *env, i *item) {
		i.effect.Seen = i.now()
		i.done()
		told := 0
		i.change.Fences.Restored = func() {
			told++
			now := i.now()
			assert.Equal(i.t, "blue", value(i.t, now, "data", "color"))
			assert.True(i.t, owns(now, i.change.Names.Manager, ".data.color"))
		}
		i.undone()
		assert.Equal(i.t, 1, told)
		i.undone()
		assert.Equal(i.t, 1, told)
	})
}

// Where another client has written a field, the compensation is refused, and nothing goes on meanwhile.
func TestThatValuesAreKeptIsNotToldAsRestored(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		e.merge("somebody", i.object, `{"data":{"color":"green"}}`)
		i.change.Fences.Restored = func() { i.t.Error("it is told that the values are restored") }
		fails(i.t, i.undo(), errclass.Conflict, errclass.FieldConflict, ".data.color", "somebody")
	})
}

func TestUndoLeavesAValueThatIsBackAlready(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		e.merge("somebody", i.object, `{"data":{"color":"blue"}}`)
		i.undone()
		now := i.now()
		assert.Equal(i.t, "blue", value(i.t, now, "data", "color"))
		assert.True(i.t, owns(now, "somebody", ".data.color"), "it stays theirs")
		assert.NotContains(i.t, now.GetManagedFields(), i.change.Names.Manager)
	})
}

func TestUndoTwiceWritesNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		i.undone()
		restored := i.now()
		i.wire.requests()
		i.undone()
		i.sent("GET GET")
		assert.Equal(i.t, restored, i.now())
		// Even when others have written in between.
		e.merge("somebody", i.object, `{"data":{"size":"large"}}`)
		e.apply("gitops", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {a: b}}}")
		theirs := i.now()
		i.wire.requests()
		i.undone()
		i.sent("GET GET")
		assert.Equal(i.t, theirs, i.now())
	})
}

func TestUndoGoesOnAfterACrashAtAnyRequest(t *testing.T) {
	t.Parallel()
	forWrites(t, func(_ *env, i *item) {
		for n := range 3 {
			for _, interrupt := range []func(int){i.wire.refuseNth, i.wire.loseNth} {
				i.done()
				interrupt(n)
				fails(i.t, i.undo(), errclass.Unknown, errclass.ServerUnavailable)
				i.wire.requests()
				i.undone()
				i.restored()
				i.baseline = mutate.BaselineOf(i.now())
			}
		}
	})
}

func TestDoWhoseReplyIsLostIsObservedAndUndone(t *testing.T) {
	t.Parallel()
	forWrites(t, func(_ *env, i *item) {
		i.wire.loseNth(0)
		fails(i.t, i.do(), errclass.Unknown, errclass.ServerUnavailable)
		i.finds(outcome.Applied)
		i.undone()
		i.restored()
		i.baseline = mutate.BaselineOf(i.now())
		i.record.Before = i.now()
		i.wire.refuseNth(0)
		fails(i.t, i.do(), errclass.Unknown, errclass.ServerUnavailable)
		i.finds(outcome.NotApplied)
	})
}

func TestUndoMeetsAWriterBetweenValuesAndOwners(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		i.wire.requests()
		i.wire.set(func(n int) {
			if n == 2 {
				e.merge("somebody", i.object, `{"data":{"size":"large"}}`)
			}
		})
		i.undone()
		i.sent("GET PATCH PATCH GET PATCH")
		now := i.now()
		assert.Equal(i.t, map[string]any{"color": "blue", "size": "large"}, value(i.t, now, "data"))
		assert.True(i.t, owns(now, "somebody", ".data.size"))
		assert.True(i.t, owns(now, "kubectl", ".data.color"))
	})
}

func TestUndoOfWhatNeverHappenedWritesNothing(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.undone()
		i.sent("GET GET")
		e.merge("somebody", i.object, `{"data":{"size":"large"},"metadata":{"labels":{"a":"b"}}}`)
		theirs := i.now()
		i.undone()
		assert.Equal(i.t, theirs, i.now())
	})
}

func TestUndoOfWhatSomebodyDeletedIsAConflict(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		e.remove(i.object)
		fails(i.t, i.undo(), errclass.Conflict, errclass.Drifted, "deleted it")
		assert.Nil(i.t, i.now())
	})
}

func TestUndoGivesUpOnATargetThatNeverHoldsStill(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		i.wire.requests()
		i.wire.set(func(n int) {
			if n%2 == 1 {
				e.merge("somebody", i.object, `{"metadata":{"annotations":{"n":"`+strconv.Itoa(n)+`"}}}`)
			}
		})
		fails(i.t, i.undo(), errclass.Retryable, errclass.StaleVersion, "changes faster")
		i.wire.requests()
		i.undone()
		assert.Equal(i.t, "blue", value(i.t, i.now(), "data", "color"))
	})
}

func TestUndoWithoutBothImagesIsATerminalError(t *testing.T) {
	t.Parallel()
	forWrites(t, func(_ *env, i *item) {
		i.done()
		whole := i.record
		i.record.After = nil
		fails(i.t, i.undo(), errclass.Terminal, errclass.BeforeImageLost, "item 0")
		i.record = whole
		i.record.Before = nil
		fails(i.t, i.undo(), errclass.Terminal, errclass.BeforeImageLost, "item 0")
		_, err := i.strategy.Observe(i.t.Context(), i.change, i.begun())
		fails(i.t, err, errclass.Terminal, errclass.BeforeImageLost)
		i.record = whole
		i.undone()
		i.restored()
	})
}

// An update that only removes leaves no entry in managedFields.
func TestUpdateThatOnlyRemovesIsObservedAndUndone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Update, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue}}")
	i.finds(outcome.NotApplied)
	i.done()
	assert.NotContains(t, managers(i.now()), i.change.Names.Manager+" Update")
	i.finds(outcome.Applied)
	e.merge("somebody", i.object, `{"metadata":{"annotations":{"note":"x"}}}`)
	i.finds(outcome.Applied)
	e.merge("somebody", i.object, `{"metadata":{"annotations":{"note":null}}}`)
	i.undone()
	i.restored()
	i.finds(outcome.NotApplied)
}

func TestUpdateThatRemovesEverythingIsUndone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {a: b}, annotations: {c: d}, finalizers: [example.com/f]}, data: {color: blue}, binaryData: {x: AAEC}}")
	i := e.prepare(0, api.Update, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}").done()
	i.finds(outcome.Applied)
	i.undone()
	i.restored()
	e.merge("test", i.object, `{"metadata":{"finalizers":null}}`)
}

// An empty ConfigMap has no managedFields, and a first apply makes an entry of its
// own for what was there before.
func TestObjectWithoutManagedFieldsIsWithoutThemAfterUndo(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			for _, text := range []string{settings, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"} {
				obj := e.create(text)
				e.setManagedFields(obj, nil)
				e.merge("test", obj, `{"metadata":{"managedFields":[{}]}}`)
				i := e.prepare(0, kind, settingsChanged)
				assert.Empty(t, i.record.Before.GetManagedFields())
				i.done()
				i.finds(outcome.Applied)
				i.undone()
				i.restored()
				e.remove(obj)
			}
		})
	}
}

// An apply to an object without managedFields makes an entry of all that was there,
// which no client has claimed.
func TestFirstApplyOfSomebodyElseIsNoClaimOnOurFields(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(settings)
	e.merge("test", obj, `{"metadata":{"managedFields":[{}]}}`)
	i := e.prepare(0, api.Update, settingsChanged).done()
	e.apply("gitops", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {a: b}}}")
	i.undone()
	assert.Equal(t, "blue", value(t, i.now(), "data", "color"))
	assert.True(t, owns(i.now(), "gitops", ".metadata.labels.a"))
}

// The eleventh updater makes the API server merge the oldest two.
func TestManyUpdatersAreBackAfterUndo(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			obj := e.create(settings)
			for _, n := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
				e.merge("updater-"+n, obj, `{"data":{"key-`+n+`":"x"}}`)
			}
			e.age(obj)
			i := e.prepare(0, kind, settingsChanged)
			if kind == api.Update {
				i.change.Content["data"] = map[string]any{"color": "red", "size": "small"}
				for n := range 9 {
					i.change.Content["data"].(map[string]any)["key-"+strconv.Itoa(n)] = "x"
				}
			}
			i.done()
			i.undone()
			i.restored()
		})
	}
}

// K14: two changes of one target; the second has a before-image of its own.
func TestTwoChangesOfOneTargetAreUndoneInReverse(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(deployment)
	start := e.live(parse(t, deployment))
	first := e.prepare(0, api.Patch, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3}}").done()
	second := e.prepare(1, api.Patch, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {tier: front}}, spec: {replicas: 4}}").done()
	third := e.prepare(2, api.Update, deploymentChanged).done()
	e.merge("somebody", first.object, `{"metadata":{"annotations":{"note":"x"}}}`)
	third.undone()
	second.undone()
	assert.Equal(t, int64(3), value(t, first.now(), "spec", "replicas"))
	assert.True(t, owns(first.now(), first.change.Names.Manager, ".spec.replicas"))
	first.undone()
	now := first.now()
	assert.Equal(t, "x", now.GetAnnotations()["note"], "a third party's")
	assert.Equal(t, start.Object["spec"], now.Object["spec"])
	assert.Equal(t, start.GetLabels(), now.GetLabels())
	assert.Equal(t, []string{"kubectl Apply", "somebody Update"}, managers(now))
	assert.Equal(t, entries(start)[0], entries(now)[0])
}

// K2, K3: values and owners are restored, and nothing is un-applied.
func TestForcedApplyIsRolledBackWithOwnersAndTheirTimes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(deployment)
	e.apply("gitops", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {team: a}}, spec: {template: {spec: {containers: [{name: web, image: 'example.com/web:1', env: [{name: A, value: a}]}]}}}}")
	e.merge("autoscaler", obj, `{"spec":{"replicas":6}}`, "scale")
	e.merge("annotator", obj, `{"metadata":{"annotations":{"checked":"yes"}}}`)
	e.age(obj)
	for _, kind := range writes {
		content := deploymentChanged
		if kind == api.Update {
			content += "\n"
		}
		i := e.prepare(0, kind, content).done()
		assert.Equal(t, int64(3), value(t, i.now(), "spec", "replicas"))
		i.undone()
		assert.Equal(t, int64(6), value(t, i.now(), "spec", "replicas"))
		i.restored()
	}
}

// K19: what controllers write is not ours.
func TestWhatControllersWriteIsNoDriftAndStays(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(deployment)
	i := e.prepare(0, api.Patch, deploymentChanged)
	e.within("the controller has seen it", func() bool {
		return value(t, i.now(), "metadata", "annotations") != "<absent>" && value(t, i.now(), "status") != "<absent>"
	})
	i.done()
	e.within("the controller has made another revision", func() bool {
		return i.now().GetAnnotations()["deployment.kubernetes.io/revision"] == "2"
	})
	i.undone()
	i.restored()
	assert.NotEqual(t, "<absent>", value(t, i.now(), "status"))
}

// K15: the next kubectl apply has nothing to do.
func TestLastAppliedConfigurationIsByteEqual(t *testing.T) {
	t.Parallel()
	const last = `{"apiVersion":"v1","data":{"color":"blue"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"settings"}}` + "\n"
	forWrites(t, func(e *env, i *item) {
		e.merge("kubectl-client-side-apply", i.object, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":`+quoted(last)+`}}}`)
		e.age(i.object)
		i = e.prepare(1, api.ChangeType(i.record.Type), settingsChanged).done()
		i.undone()
		i.restored()
		got := i.now().GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"]
		assert.True(i.t, bytes.Equal([]byte(last), []byte(got)), "it is %q", got)
	})
}

func TestNoSecretIsInAnError(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	const canary = "YzRuNHJ5"
	e.create("{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: " + canary + "}}")
	for _, kind := range writes {
		i := e.prepare(0, kind, "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: "+canary+"Yg==, b: "+canary+"}}").done()
		e.merge("somebody", i.object, `{"data":{"a":"`+canary+`"},"stringData":{"b":"`+canary+`"}}`)
		err := i.undo()
		fails(t, err, errclass.Conflict, errclass.FieldConflict, ".data.b")
		assert.NotContains(t, err.Error(), canary)
		e.remove(i.object)
		e.create("{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: " + canary + "}}")
		for _, bad := range []string{"data: {a: '" + canary + "!'}", "date: {a: " + canary + "}", "type: " + canary + ", data: {a: " + canary + "}"} {
			err := e.plan(0, kind, "{apiVersion: v1, kind: Secret, metadata: {name: s}, "+bad+"}").tryPrepare()
			fails(t, err, errclass.Terminal, errclass.Invalid)
			assert.NotContains(t, err.Error(), canary)
		}
	}
}
