package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
)

// finished is a Transaction that ended so many seconds after midnight.
func finished(namespace, name, phase string, second int, items ...any) *unstructured.Unstructured {
	return seen(func(u *unstructured.Unstructured) {
		u.SetNamespace(namespace)
		u.SetName(name)
		status := map[string]any{"phase": phase, "observedGeneration": int64(1), "items": items}
		if second >= 0 {
			status["completionTime"] = fmt.Sprintf("2030-01-02T00:00:%02dZ", second)
		}
		u.Object["status"] = status
	})
}

func TestTheLatestOfANamespaceAreKept(t *testing.T) {
	t.Parallel()
	undoable := finished("a", "can-be-undone", "Committed", 0)
	require.NoError(t, unstructured.SetNestedField(undoable.Object, "x", "status", "rollbackRef", "name"))
	inPart := finished("a", "in-part", "Failed", 0)
	require.NoError(t, unstructured.SetNestedField(inPart.Object, "x", "status", "rollbackRef", "name"))
	require.NoError(t, unstructured.SetNestedField(inPart.Object, "sha256:d", "status", "revisionDigest"))
	going := finished("a", "going", "Committed", 0)
	deletedAt(going)
	there := []*unstructured.Unstructured{
		finished("a", "one", "Committed", 1), finished("a", "two", "Planned", 2), finished("a", "three", "Committed", 3),
		finished("a", "failed-1", "Failed", 1), finished("a", "failed-2", "RolledBack", 2), finished("a", "failed-3", "Failed", 3),
		finished("b", "one", "Committed", 1), finished("b", "failed-1", "RolledBack", 1),
		finished("a", "running", "Committing", -1), undoable, inPart, going,
		finished("a", "not-rolled-back", "Failed", 0, map[string]any{"state": "RolledBack"}, map[string]any{"state": "Unresolved"}),
	}
	for _, c := range []struct {
		keep Retention
		want []string
	}{
		{Retention{}, nil},
		{Retention{Completed: ptr.To(9), Failed: ptr.To(9)}, nil},
		{Retention{Completed: ptr.To(2)}, []string{"a/one"}},
		{Retention{Completed: ptr.To(1), Failed: ptr.To(2)}, []string{"a/failed-1", "a/one", "a/two"}},
		{Retention{Failed: ptr.To(0)}, []string{"a/failed-1", "a/failed-2", "a/failed-3", "b/failed-1"}},
	} {
		got := retired(t, Options{Retention: c.keep}, 0, there)
		assert.Equal(t, c.want, got, "%+v", c.keep)
	}
}

func TestReplicasThatShareANamespaceKeepSoManyOfItTogether(t *testing.T) {
	t.Parallel()
	var there []*unstructured.Unstructured
	for n := range 20 {
		there = append(there, finished("a", fmt.Sprintf("t%02d", n), "Committed", n))
	}
	sharing := Options{Shards: 2, Retention: Retention{Completed: ptr.To(5)}}
	first, second := retired(t, sharing, 0, there), retired(t, sharing, 1, there)
	assert.NotEmpty(t, first)
	assert.NotEmpty(t, second)
	var want []string
	for n := range 15 {
		want = append(want, fmt.Sprintf("a/t%02d", n))
	}
	assert.ElementsMatch(t, want, append(first, second...), "each goes by one replica, and the latest five stay")
}

// retired is what a Controller that holds one shard finds to be too many.
func retired(t *testing.T, o Options, shard int, there []*unstructured.Unstructured) (names []string) {
	t.Helper()
	o.Workers, o.Resync = 1, time.Hour
	ctl, err := New(engine.New(engine.Ports{}, clock.RealClock{}, plan.DefaultPolicy), nil, nil, nil, o)
	require.NoError(t, err)
	for _, u := range there {
		small, err := trim(decodedOf(t, u))
		require.NoError(t, err)
		require.NoError(t, ctl.watches.at("").informer.GetStore().Add(small))
	}
	ctl.held.begin(shard)
	for _, g := range ctl.tooMany() {
		names = append(names, g.name.Namespace+"/"+g.name.Name)
	}
	slices.Sort(names)
	return names
}
