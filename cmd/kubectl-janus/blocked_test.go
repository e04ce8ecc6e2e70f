package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// What a rollback has left for the sake of another item is shown with that item, and so is what
// depends on what.
func TestABlockedItemIsShownWithWhatBlocksIt(t *testing.T) {
	txn := &api.Transaction{}
	txn.Namespace, txn.Name = "shop", "release"
	txn.Status.Phase = api.PhaseFailed
	txn.Spec.Changes = []api.Change{{Name: "cfg"}, {Name: "db"}, {Name: "web", DependsOn: []string{"db"}}}
	target := func(kind, name string) api.Target {
		return api.Target{APIVersion: "v1", Kind: kind, Namespace: "shop", Name: name}
	}
	txn.Status.Items = []api.Item{
		{Name: "cfg", Target: target("ConfigMap", "cfg"), State: api.ItemUnresolved, Reason: errclass.Blocked, BlockedBy: "web", Message: "ConfigMap shop/cfg stays as the change made it"},
		{Name: "db", Target: target("ConfigMap", "db"), State: api.ItemRolledBack},
		{Name: "web", Target: target("Deployment", "web"), State: api.ItemUnresolved, Reason: errclass.FieldConflict, DependsOn: []string{"cfg", "db"}, Message: "others have written it"},
	}
	var out strings.Builder
	s := &session{}
	s.Out = &out
	require.NoError(t, s.leftovers(txn))
	assert.Contains(t, out.String(), "cfg  ConfigMap shop/cfg: Unresolved (Blocked): ConfigMap shop/cfg stays as the change made it")
	assert.Contains(t, out.String(), "What to do: do what is said of item web: a recovery rolls back that item first, and then this one. If both are to stay, do nothing.")
	assert.Contains(t, out.String(), "      after db\n      depends on cfg\n")

	n, err := s.itemNode(t.Context(), txn, 2)
	require.NoError(t, err)
	assert.Equal(t, []node{{text: "after db (RolledBack)"}, {text: "depends on cfg (Unresolved)"}}, n.children)
}
