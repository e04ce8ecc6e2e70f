package mutate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

// dials installs a kind with two versions, and returns its CRD.
func (e *env) dials(kind, plural string) *unstructured.Unstructured {
	e.t.Helper()
	return e.crd(kind, plural, "{name: v1, served: true, storage: false, "+anything+"}", "{name: v2, served: true, storage: true, "+anything+"}")
}

// withdraw has the API server not serve a kind by v1 any more. It gives an object of the
// kind as v2 names it.
func (e *env) withdraw(crd, obj *unstructured.Unstructured) *unstructured.Unstructured {
	e.t.Helper()
	e.edit(crd, `[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	e.within("v1 is not served", func() bool { return e.live(obj) == nil })
	now := obj.DeepCopy()
	now.SetAPIVersion("example.com/v2")
	return now
}

func TestACreationIsRolledBackThoughItsVersionIsServedNoMore(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	crd := e.dials("Dial", "dials")
	i := e.prepare(0, api.Create, "{apiVersion: example.com/v1, kind: Dial, metadata: {name: d}, spec: {size: 2}}").done()
	now := e.withdraw(crd, i.object)
	require.NotNil(t, e.live(now))
	i.finds(outcome.Applied)
	i.undone()
	assert.Nil(t, e.live(now), "it is still there by v2")
}

func TestADeletionIsNotTakenForDoneBecauseItsVersionIsServedNoMore(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	crd := e.dials("Lever", "levers")
	const lever = "{apiVersion: example.com/v1, kind: Lever, metadata: {name: d}, spec: {size: 2}}"
	e.create(lever)
	i := e.prepare(0, api.Delete, lever)
	now := e.withdraw(crd, i.object)
	i.finds(outcome.NotApplied)
	fails(t, i.do(), errclass.Terminal, errclass.KindNotFound, "serves it in example.com/v2 and not in example.com/v1")
	assert.NotNil(t, e.live(now))
}

func TestAWriteIsNotRolledBackByAVersionThatItWasNotMadeBy(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			e := newEnv(t)
			crd := e.dials("Knob", "knobs")
			e.create("{apiVersion: example.com/v1, kind: Knob, metadata: {name: d}, spec: {size: 2}}")
			i := e.prepare(0, kind, "{apiVersion: example.com/v1, kind: Knob, metadata: {name: d}, spec: {size: 3}}").done()
			now := e.withdraw(crd, i.object)
			before := e.live(now)
			fails(t, i.undo(), errclass.Terminal, errclass.KindNotFound, "example.com/v2", "serve that version again")
			assert.Equal(t, before, e.live(now))
			e.edit(crd, `[{"op":"replace","path":"/spec/versions/0/served","value":true}]`)
			e.within("v1 is served again", func() bool { return e.live(i.object) != nil })
			i.undone()
			i.restored()
			e.remove(now)
			e.remove(crd)
		})
	}
}

func TestFieldsAreHandedOverThoughTheirVersionIsServedNoMore(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	crd := e.dials("Gear", "gears")
	e.create("{apiVersion: example.com/v1, kind: Gear, metadata: {name: d}, spec: {size: 2}}")
	i := e.prepare(0, api.Patch, "{apiVersion: example.com/v1, kind: Gear, metadata: {name: d}, spec: {size: 3, colour: red}}").done()
	now := e.withdraw(crd, i.object)
	require.NoError(t, mutate.HandOver(t.Context(), i.change, i.owners, i.baseline, nil))
	var managers []string
	for _, entry := range e.live(now).GetManagedFields() {
		managers = append(managers, entry.Manager+" "+entry.APIVersion)
	}
	assert.Equal(t, []string{"kubectl example.com/v1"}, managers)
}

// With its last version a kind goes, and its objects with it.
func TestOfAKindThatIsGoneThereAreNoObjects(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	crd := e.dials("Cog", "cogs")
	i := e.prepare(0, api.Create, "{apiVersion: example.com/v1, kind: Cog, metadata: {name: d}, spec: {size: 2}}").done()
	e.remove(crd)
	i.finds(outcome.NotApplied)
	i.undone()
	// To re-create one takes its CRD.
	j := e.plan(1, api.Delete, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
	j.change.Ref, j.change.Environment.Elsewhere = i.change.Ref, i.change.Environment.Elsewhere
	j.record.Before = i.record.After
	fails(t, j.undo(), errclass.Retryable, errclass.KindNotFound, "does not serve Cog in example.com/v1", "its CRD is needed")
}

func TestA404OfAVersionThatIsServedProvesNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	crd := e.dials("Crank", "cranks")
	i := e.prepare(0, api.Create, "{apiVersion: example.com/v1, kind: Crank, metadata: {name: d}, spec: {size: 2}}").done()
	now := e.withdraw(crd, i.object)
	i.change.Environment.Elsewhere = func() (target.Ref, bool, error) { return i.change.Ref, true, nil }
	_, err := i.strategy.Observe(t.Context(), i.change, i.begun())
	fails(t, err, errclass.Unknown, errclass.ServerUnavailable, "answers as if it did not")
	fails(t, i.undo(), errclass.Unknown, errclass.ServerUnavailable, "example.com/v1")
	assert.NotNil(t, e.live(now))
}

// The API server keeps one entry of an applier, whatever the version of it.
func TestWhatTwoTransactionsHaveSetByTwoVersionsKeepsItsOwners(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.dials("Valve", "valves")
	e.create("{apiVersion: example.com/v1, kind: Valve, metadata: {name: k}, spec: {size: 2}}")
	for n, change := range []string{"example.com/v1, spec: {a: 1}", "example.com/v2, spec: {b: 1}"} {
		i := e.plan(n, api.Patch, "{kind: Valve, metadata: {name: k}, apiVersion: "+change+"}")
		i.owners.FieldManager = "gitops"
		require.NoError(t, i.tryPrepare())
		i.done()
		require.NoError(t, mutate.HandOver(t.Context(), i.change, i.owners, i.baseline, nil))
	}
	var owned []string
	for _, entry := range entries(e.live(parse(t, "{apiVersion: example.com/v1, kind: Valve, metadata: {name: k}}"))) {
		if entry.Manager == "gitops" {
			owned = append(owned, entry.Fields...)
		}
	}
	assert.Subset(t, owned, []string{".spec.a", ".spec.b"})
}
