package mutate_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
)

func (i *item) handOver() error {
	return mutate.HandOver(i.t.Context(), i.change, i.owners, i.baseline, nil)
}

// handedOver asserts that nobody of the Transaction owns anything any more.
func (i *item) handedOver() {
	i.t.Helper()
	require.NoError(i.t, i.handOver())
	for _, e := range entries(i.now()) {
		assert.NotContains(i.t, e.Manager, "janus-")
	}
}

func TestFieldsGoBackToWhoOwnedThem(t *testing.T) {
	t.Parallel()
	forWrites(t, func(_ *env, i *item) {
		i.done()
		assert.False(i.t, owns(i.now(), "kubectl", ".data.color"))
		i.wire.requests()
		i.handedOver()
		i.sent("GET PATCH")
		now := i.now()
		assert.Equal(i.t, "red", value(i.t, now, "data", "color"))
		assert.Equal(i.t, entries(i.record.Before), entries(now), "owners and their times are as they were")
		i.handedOver()
		i.sent("GET GET")
	})
}

func TestWhatNobodyOwnedIsNobodysAfterwards(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, _ *item) {
		for n := range 3 {
			i := e.prepare(n, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {shape: round, key"+strconv.Itoa(n)+": x}}").done()
			i.handedOver()
			assert.False(e.t, owns(i.now(), mutate.DefaultManager, ".data.shape"))
			assert.Equal(e.t, []string{"kubectl Apply"}, managers(i.now()))
		}
	})
}

// Anyone who carries the object on owns what its own apply would.
func TestWhatNobodyOwnedGoesToTheManagerThatIsNamed(t *testing.T) {
	for kind, content := range map[api.ChangeType]string{
		api.Patch:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {shape: round}}",
		api.Update: "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue, size: large, shape: round}}",
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.create(settings)
			i := e.plan(0, kind, content)
			i.owners.FieldManager = "gitops"
			require.NoError(t, i.tryPrepare())
			i.done().handedOver()
			assert.True(t, owns(i.now(), "gitops", ".data.shape"), "%v", entries(i.now()))
			assert.False(t, owns(i.now(), "gitops", ".data.color"), "it is kubectl's, with the value that it has")
			obj := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {form: oval}}")
			_, err := e.resource(obj).Apply(t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "gitops"})
			require.NoError(t, err)
			assert.NotContains(t, i.now().Object["data"], "shape", "what it names no more goes")
		})
	}
}

// The next apply of the old owner neither meets a conflict nor loses the field.
func TestTheOldOwnerAppliesAgainAfterAHandOver(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		i.handedOver()
		obj := parse(e.t, settings)
		_, err := e.resource(obj).Apply(e.t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "kubectl"})
		require.NoError(e.t, err)
		assert.Equal(e.t, "blue", value(e.t, i.now(), "data", "color"))
	})
}

func TestAHandOverKeepsWhatOthersHaveTakenSince(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		e.merge("somebody", i.object, `{"data":{"color":"green"}}`)
		i.handedOver()
		assert.True(e.t, owns(i.now(), "somebody", ".data.color"))
		assert.False(e.t, owns(i.now(), "kubectl", ".data.color"))
	})
}

func TestAHandOverMeetsAWriter(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		i.wire.requests()
		i.wire.set(func(n int) {
			if n == 1 {
				e.merge("somebody", i.object, `{"data":{"shape":"round"}}`)
			}
		})
		i.handedOver()
		i.sent("GET PATCH GET PATCH")
		assert.True(e.t, owns(i.now(), "somebody", ".data.shape"))
	})
}

// What the change was answered with is what the hand-over starts from. If another
// client has written the target since, or deleted it, it is read after all.
func TestAHandOverOfWhatWasJustWrittenNeedNotRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(e *env, i *item)
		sends     string
	}{
		"nothing":  {func(*env, *item) {}, "PATCH"},
		"a write":  {func(e *env, i *item) { e.merge("somebody", i.object, `{"data":{"shape":"round"}}`) }, "PATCH GET PATCH"},
		"deletion": {func(e *env, i *item) { e.remove(i.object) }, "PATCH GET GET"},
		"another":  {func(e *env, i *item) { e.remove(i.object); e.create(settings) }, "PATCH GET"},
	} {
		t.Run(name, func(t *testing.T) {
			forWrites(t, func(e *env, i *item) {
				wrote := i.done().made.Target
				require.NotNil(t, wrote)
				assertSame(t, wrote, i.now())
				c.meanwhile(e, i)
				i.wire.requests()
				require.NoError(t, mutate.HandOver(t.Context(), i.change, i.owners, i.baseline, wrote))
				i.sent(c.sends)
				if now := i.now(); now != nil {
					assert.NotContains(t, strings.Join(managers(now), " "), "janus-")
				}
			})
		})
	}
}

// To roll back what was just written, the target need not be read either.
func TestWhatWasJustWrittenIsRolledBackWithoutALook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(e *env, i *item)
		sends     string
	}{
		"nothing": {func(*env, *item) {}, "PATCH PATCH"},
		"a write": {func(e *env, i *item) { e.merge("somebody", i.object, `{"data":{"shape":"round"}}`) }, "PATCH GET PATCH PATCH"},
	} {
		t.Run(name, func(t *testing.T) {
			forWrites(t, func(e *env, i *item) {
				i.effect.Seen = i.done().made.Target
				c.meanwhile(e, i)
				i.wire.requests()
				require.NoError(t, i.undo())
				i.sent(c.sends)
				assert.Equal(t, "blue", value(t, i.now(), "data", "color"))
				assert.NotContains(t, strings.Join(managers(i.now()), " "), "janus-")
			})
		})
	}
}

func TestAHandOverGoesOnAfterACrashAtAnyRequest(t *testing.T) {
	t.Parallel()
	forWrites(t, func(_ *env, i *item) {
		i.done()
		for n := range 2 {
			i.wire.refuseNth(n)
			require.Error(i.t, i.handOver())
			i.wire.loseNth(n)
			if err := i.handOver(); err == nil {
				break
			}
		}
		i.wire.requests()
		i.handedOver()
		assert.Equal(i.t, entries(i.record.Before), entries(i.now()))
	})
}

// Three items of one Transaction on one object are handed over at once.
func TestSeveralItemsOnOneObjectAreHandedOver(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	items := []*item{
		e.prepare(0, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}").done(),
	}
	items = append(items, e.prepare(1, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: green, shape: round}}").done())
	items[0].handedOver()
	assert.Equal(t, []string{"kubectl Apply"}, managers(items[0].now()))
	assert.True(t, owns(items[0].now(), "kubectl", ".data.color"))
}

func TestNothingIsHandedOverOfWhatIsGoneOrAnother(t *testing.T) {
	t.Parallel()
	forWrites(t, func(e *env, i *item) {
		i.done()
		e.remove(i.object)
		require.NoError(e.t, i.handOver())
		e.create(settings)
		require.NoError(e.t, i.handOver())
	})
}

// What is taken is told beforehand.
func TestTakesNamesFieldsAndWhoOwnsThem(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(shop)
	e.merge("autoscaler", obj, `{"spec":{"replicas":5}}`, "scale")
	i := e.plan(0, api.Patch, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop}, spec: {replicas: 3, template: {spec: {containers: [{name: web, image: 'example.com/web:2'}]}}}}")
	forecast, err := mutate.Foresee(t.Context(), i.strategy, i.change, i.owners, i.now())
	require.NoError(t, err)
	got := map[string][]string{}
	for _, owned := range forecast.Taken {
		got[owned.Manager+" "+owned.Subresource] = owned.Paths
	}
	assert.Equal(t, map[string][]string{
		"kubectl ":         {`.spec.template.spec.containers[name="web"].image`},
		"autoscaler scale": {".spec.replicas"},
	}, got)
}

func TestAnUnforcedPatchTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.plan(0, api.Patch, settingsChanged)
	i.change.Options.Unforced = true
	err := i.tryPrepare()
	fails(t, err, errclass.Conflict, errclass.FieldConflict, ".data.color of kubectl", "force is false")
	assert.Equal(t, []errclass.Field{{Path: ".data.color", Managers: []string{"kubectl"}}}, errclass.FieldsOf(err))
	assert.Equal(t, "blue", value(t, i.now(), "data", "color"))
}

// Neither the manager that earlier Transactions have left nor those of other items
// stand in the way of an unforced Patch.
func TestAnUnforcedPatchGoesOverWhatJanusLeft(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	patch := func(n int, manager, shape string) *item {
		i := e.plan(n, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {shape: "+shape+"}}")
		i.change.Options.Unforced, i.change.Names.Manager, i.change.Names.Family = true, manager+strconv.Itoa(n), manager
		require.NoError(t, i.tryPrepare())
		return i.done()
	}
	patch(0, "janus-0a1b2c3d-", "round")
	i := patch(1, "janus-0a1b2c3d-", "square")
	assert.Equal(t, "square", value(t, i.now(), "data", "shape"))
	require.NoError(t, patch(0, "janus-99999999-", "oval").handOver())
	i = patch(0, "janus-88888888-", "flat")
	assert.Equal(t, "flat", value(t, i.now(), "data", "shape"))
	// One that was let go in the middle has left its own.
	i = patch(0, "janus-77777777-", "high")
	assert.Equal(t, "high", value(t, i.now(), "data", "shape"))
	e.merge("somebody", i.object, `{"data":{"shape":"theirs"}}`)
	i = e.plan(2, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {shape: x}}")
	i.change.Options.Unforced = true
	fails(t, i.tryPrepare(), errclass.Conflict, errclass.FieldConflict, ".data.shape of somebody")
}

// Content that was made without looking at the target drops what others added.
func TestAnUpdateThatRemovesFieldsOfOthersIsWarnedOf(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(settings)
	e.merge("annotator", obj, `{"metadata":{"annotations":{"checked":"yes"}}}`)
	i := e.prepare(0, api.Update, settingsChanged)
	require.Len(t, i.warnings, 1)
	assert.Contains(t, i.warnings[0], "it removes what annotator has written: .metadata.annotations.checked")
}

// An object that nobody owned has no owner afterwards.
func TestAHandOverOfAnObjectWithoutOwners(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(settings)
	e.setManagedFields(obj, []metav1.ManagedFieldsEntry{})
	require.Empty(t, entries(e.live(obj)))
	i := e.prepare(0, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}").done()
	i.handedOver()
	assert.Empty(t, managers(i.now()))
	_, err := e.resource(obj).Apply(t.Context(), obj.GetName(), parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}"), metav1.ApplyOptions{FieldManager: "kubectl"})
	require.NoError(t, err)
}

// A Transaction that ended half-way and goes on later would take for its own, and
// undo, what another has committed since.
func TestNothingIsLeftToAnItemOfAnotherTransaction(t *testing.T) {
	t.Parallel()
	for kind, colors := range map[api.ChangeType][]string{api.Update: {"purple"}, api.Patch: {"purple", "red"}} {
		for _, color := range colors {
			t.Run(string(kind)+" of "+color, func(t *testing.T) {
				t.Parallel()
				e := newEnv(t)
				e.create(settings)
				e.apply("janus-0badcafe-3", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: "+color+"}}")
				i := e.prepare(0, kind, settingsChanged).done()
				require.NoError(t, i.handOver())
				assert.Equal(t, "red", value(t, i.now(), "data", "color"))
				assert.True(t, owns(i.now(), mutate.DefaultManager, ".data.color"), "%v", managers(i.now()))
			})
		}
	}
}
