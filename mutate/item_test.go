package mutate_test

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
	"janus.io/janus/snapshot"
)

// item is a change that has been prepared.
type item struct {
	*env
	strategy mutate.Strategy
	change   mutate.Change
	object   *unstructured.Unstructured // names the target
	record   snapshot.Record
	owners   mutate.Ownership
	effect   mutate.Effect // but for the record
	baseline mutate.Baseline
	warnings []string // of the preparation
	idle     bool     // as the preparation found
	forecast mutate.Forecast
	made     mutate.Done    // by the last attempt to make the change
	report   outcome.Undone // of the last undo; what was overwritten by an earlier one stays
}

// plan makes the n-th change of a Transaction; content names the target, and a
// Delete needs no more of it.
func (e *env) plan(n int, kind api.ChangeType, content string) *item {
	e.t.Helper()
	obj := parse(e.t, content)
	ref, err := e.resolver.Resolve(api.Target{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Name: obj.GetName()}, e.namespace, nil)
	require.NoError(e.t, err)
	strategy, ok := mutate.For(kind)
	require.True(e.t, ok)
	i := &item{env: e, strategy: strategy, object: obj}
	i.record = snapshot.Record{Item: n, Type: string(kind), Target: ref}
	i.change = mutate.Change{
		Ref: ref, Sensitive: ref.GVK.Kind == "Secret",
		Names: mutate.Names{
			Manager: "janus-0a1b2c3d-" + strconv.Itoa(n), Family: "janus-0a1b2c3d-", Marker: "0a1b2c3d-uid." + strconv.Itoa(n),
			Transaction: types.NamespacedName{Namespace: "shop", Name: "release"},
		},
		Environment: mutate.Environment{
			Now:       time.Now,
			Cluster:   e.dynamic,
			Type:      func(ctx context.Context) (typed.ParseableType, error) { return e.types.Of(ctx, ref.GVK) },
			Elsewhere: func() (target.Ref, bool, error) { return e.resolver.Elsewhere(ref) },
		},
	}
	if kind != api.Delete {
		i.change.Content = obj.Object
	}
	return i
}

// tryPrepare does what the planner does: read, admit, try, and keep a record.
func (i *item) tryPrepare() error {
	i.t.Helper()
	ctx := i.t.Context()
	before, err := mutate.Read(ctx, i.change)
	if err != nil {
		return err
	}
	if i.change.Content == nil { // That of an undo is known.
		if i.change, _, err = i.change.Releasing(before); err != nil {
			return err
		}
	}
	forecast, err := mutate.Foresee(ctx, i.strategy, i.change, i.owners, before)
	if err != nil {
		return err
	}
	i.idle, i.forecast, i.record.FieldManager = forecast.Idle, forecast, i.owners.FieldManager
	i.record.Content, i.record.Release = i.change.Content, i.change.Release
	i.warnings, i.record.Before, i.record.After, i.record.Took = forecast.Warnings, before, forecast.After, forecast.Took
	// The record that a rollback works from has been stored and read.
	stored, err := snapshot.Encode(i.record)
	require.NoError(i.t, err)
	i.record, err = snapshot.Decode(stored)
	require.NoError(i.t, err)
	i.baseline = mutate.BaselineOf(i.record.Before)
	i.wire.requests()
	return nil
}

// prepare prepares a change, and tries again what may pass, as the engine does: a controller
// may be writing the object.
func (e *env) prepare(n int, kind api.ChangeType, content string) *item {
	e.t.Helper()
	i := e.plan(n, kind, content)
	var err error
	for range 10 {
		if err = i.tryPrepare(); errclass.ClassOf(err) != errclass.Retryable {
			break
		}
	}
	require.NoError(e.t, err)
	return i
}

func (i *item) do() (err error) {
	i.made, err = i.strategy.Do(i.t.Context(), i.change, i.baseline)
	return err
}

// begun is what is known of the change once it may be in effect.
func (i *item) begun() mutate.Effect {
	e := i.effect
	e.Record = i.record
	return e
}

// undo undoes the change as a rollback does: without the content.
func (i *item) undo() error {
	c := i.change
	c.Content = nil
	e := i.begun()
	e.Created = cmp.Or(e.Created, i.report.Recreated) // The engine has recorded it.
	before := i.report.Overwritten
	var err error
	i.report, err = i.strategy.Undo(i.t.Context(), c, e)
	if len(i.report.Overwritten) == 0 {
		i.report.Overwritten = before
	}
	return err
}

func (i *item) done() *item {
	i.t.Helper()
	require.NoError(i.t, patiently(i.do))
	return i
}

func (i *item) undone() {
	i.t.Helper()
	require.NoError(i.t, patiently(i.undo))
}

// patiently tries again what controllers were too busy for, as the engine does.
func patiently(try func() error) error {
	for n := 0; ; n++ {
		err := try()
		if !errclass.Is(err, errclass.StaleVersion) || n == 20 {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (i *item) finds(want outcome.Finding) {
	i.t.Helper()
	c := i.change
	c.Content = nil
	got, err := i.strategy.Observe(i.t.Context(), c, i.begun())
	require.NoError(i.t, err)
	assert.Equal(i.t, want, got, "what observe finds (0 not applied, 1 applied, 2 applying, 3 diverged)")
}

func (i *item) now() *unstructured.Unstructured { return i.live(i.object) }

// restored asserts that the target is what it was: every field but what the server
// sets, and the owners of the fields with their times.
func (i *item) restored() {
	i.t.Helper()
	assertSame(i.t, i.record.Before, i.now())
}
