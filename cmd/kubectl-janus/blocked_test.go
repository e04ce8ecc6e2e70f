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
	require.NoError(t, s.leftovers(txn, ""))
	assert.Contains(t, out.String(), "cfg  ConfigMap shop/cfg: Unresolved (Blocked): ConfigMap shop/cfg stays as the change made it")
	assert.Contains(t, out.String(), "What to do: do what is said of item web: a recovery rolls back that item first, and then this one. If both are to stay, do nothing.")
	assert.Contains(t, out.String(), "      after db\n      depends on cfg\n")

	items, unread := s.itemNodes(t.Context(), txn)
	require.Empty(t, unread)
	out.Reset()
	s.branches(linesOf(nested(items), false), "")
	assert.Equal(t, strings.TrimPrefix(`
├─ cfg  ConfigMap shop/cfg: Unresolved (Blocked): ConfigMap shop/cfg stays as the change made it
└─ db  ConfigMap shop/db: RolledBack
   └─ web  Deployment shop/web: Unresolved (FieldConflict): others have written it
      └─ after db (RolledBack), cfg (Unresolved)
`, "\n"), out.String())
}

// An item stands once, below the last that it depends on, whatever its dependencies say.
func TestATreeNestsByDependency(t *testing.T) {
	items := []itemNode{
		{Name: "ns"}, {Name: "config", DependsOn: []string{"ns"}}, {Name: "db", DependsOn: []string{"ns"}},
		{Name: "web", DependsOn: []string{"db", "config"}}, {Name: "alone"}, {Name: "lost", DependsOn: []string{"nothing"}},
		{Name: "circle", DependsOn: []string{"back"}}, {Name: "back", DependsOn: []string{"circle"}}, {Name: "self", DependsOn: []string{"self"}},
	}
	var draw func(items []itemNode) string
	draw = func(items []itemNode) string {
		var out []string
		for _, item := range items {
			text := item.Name
			if len(item.Then) > 0 {
				text += "(" + draw(item.Then) + ")"
			}
			out = append(out, text)
		}
		return strings.Join(out, " ")
	}
	assert.Equal(t, "ns(config db(web)) alone lost back(circle) self", draw(nested(items)))
}
