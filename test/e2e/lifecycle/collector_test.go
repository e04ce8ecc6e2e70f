package lifecycle

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// collector is the user of the garbage collector.
const collector = "system:serviceaccount:kube-system:generic-garbage-collector"

// The garbage collector reads an object, and all of its owner, if the owner reference names another
// version than that in which it watches the owner. A Transaction of 1000 changes owns 1000 locks, and
// to read it takes the API server a tenth of a second.
func TestTheGarbageCollectorReadsNothingOfATransaction(t *testing.T) {
	for name, option := range map[string]harness.Option{
		"locks of targets": harness.WithPolicy(unhurried()), "locks of namespaces": harness.LocksInTables(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Apply(fixture.AB)
			e.Refuse()
			e.Start(option)
			known := e.Run("known", "{changes: [{target: {apiVersion: v1, kind: ConfigMap, name: c}, type: Create, content: {}}]}")
			doubted(t, e, known, "before")
			from := len(collected(t, e))

			committed := e.Run("committed", "revisionHistoryLimit: 5\n"+fixture.PatchAB)
			require.Equal(t, api.PhaseCommitted, committed.Status.Phase, harness.Describe(committed))
			rolledBack := e.Run("rolled-back", fixture.PatchAB+fixture.RefusedAtCommit)
			require.Equal(t, api.PhaseRolledBack, rolledBack.Status.Phase, harness.Describe(rolledBack))
			undo := e.Run("undo", "{undoOf: {name: committed}, revisionHistoryLimit: 5}")
			require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))
			doubted(t, e, known, "after")

			assert.Equal(t, []string{"get configmaps after"}, collected(t, e)[from:], "what it has read since")
		})
	}
}

// doubted makes a ConfigMap that refers to its owner in the version that the garbage collector doesn't
// watch, and waits until that has read it. Once it knows the kind, it does so at once.
func doubted(t *testing.T, e *harness.Env, owner *api.Transaction, name string) {
	t.Helper()
	e.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, ownerReferences: [{apiVersion: %s, kind: Transaction, name: %s, uid: %s}]}}",
		name, api.GroupVersion, owner.Name, owner.UID))
	e.Until("the garbage collector reads what refers to a Transaction in the other version", func() bool {
		return slices.Contains(collected(t, e), "get configmaps "+name)
	})
}

// collected is what the garbage collector has read in the namespace, apart from Transactions.
func collected(t *testing.T, e *harness.Env) (out []string) {
	t.Helper()
	events, err := testcluster.Shared(t).Audit(collector, e.Namespace)
	require.NoError(t, err)
	for _, event := range events {
		if event.User == collector && event.Namespace == e.Namespace && event.Resource != api.Resource.Resource {
			out = append(out, event.Verb+" "+event.Resource+" "+event.Name)
		}
	}
	return out
}
