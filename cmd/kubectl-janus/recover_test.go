package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// What a rollback keeps because something would be destroyed is there: nobody is told to make it again.
func TestWhatARollbackKeepsIsNotToBeMadeAgain(t *testing.T) {
	txn := &api.Transaction{}
	txn.Namespace, txn.Name = "shop", "release"
	txn.Status.Phase = api.PhaseFailed
	txn.Spec.Changes = []api.Change{{Name: "set"}, {Name: "claim"}}
	txn.Status.Items = []api.Item{
		{
			Name: "set", Target: api.Target{Kind: "StatefulSet", Namespace: "shop", Name: "db"}, State: api.ItemUnresolved, Reason: errclass.Irreversible,
			Conflicts: []api.FieldConflict{{Field: ".spec.replicas", Now: "3", Before: "1"}},
		},
		{Name: "claim", Target: api.Target{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}, State: api.ItemUnresolved, Reason: errclass.Irreversible},
	}
	var out strings.Builder
	s := &session{}
	s.Out = &out
	require.NoError(t, s.leftovers(txn, ""))
	assert.Contains(t, out.String(), "      .spec.replicas is 3 now; it was to be 1\n")
	assert.Contains(t, out.String(), "What to do: the fields above were left, because a controller would destroy what the message names.")
	assert.Contains(t, out.String(), "What to do: it was kept, because what the message names would be destroyed with it.")
	assert.Contains(t, out.String(), "kubectl janus recover release -n shop --now")
}
