package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
)

// With which others the target of a change is deleted.
func TestWhatIsDeletedWithAnother(t *testing.T) {
	deletes := func(s *api.TransactionSpec, name string) {
		change(s, name).When, change(s, name).WhenFalse = "false", api.WhenFalseDelete
	}
	for name, tt := range map[string]struct {
		names  []string
		set    func(*api.TransactionSpec)
		refers map[string]string // by content
		want   map[string][]string
	}{
		"nothing, where nothing is deleted": {
			[]string{"a", "b"}, func(s *api.TransactionSpec) { change(s, "b").DependsOn = []string{"a"} }, nil, map[string][]string{},
		},
		"what names it, and what names that": {
			[]string{"a", "b", "c", "d"}, func(s *api.TransactionSpec) {
				deletes(s, "a")
				change(s, "b").DependsOn, change(s, "c").DependsOn = []string{"a"}, []string{"b"}
			}, nil, map[string][]string{"b": {"a"}, "c": {"a"}},
		},
		"with both that it names": {
			[]string{"c", "a", "b"}, func(s *api.TransactionSpec) {
				deletes(s, "a")
				deletes(s, "b")
				change(s, "b").DependsOn, change(s, "c").DependsOn = []string{"a"}, []string{"b"}
			}, nil, map[string][]string{"b": {"a"}, "c": {"a", "b"}},
		},
		"in a list what refers to it": {
			[]string{"a", "b", "c"}, func(s *api.TransactionSpec) { deletes(s, "a") },
			map[string]string{"c": "a"}, map[string][]string{"c": {"a"}},
		},
		"in a graph not what refers to it": {
			[]string{"a", "b", "c"}, func(s *api.TransactionSpec) {
				deletes(s, "a")
				s.Order = api.OrderGraph
			}, map[string]string{"c": "a"}, map[string][]string{},
		},
		"a later change of the object": {
			[]string{"a1", "b", "a2"}, func(s *api.TransactionSpec) { deletes(s, "a1") }, nil, map[string][]string{"a2": {"a1"}},
		},
		"not an earlier one": {
			[]string{"a1", "b", "a2"}, func(s *api.TransactionSpec) { deletes(s, "a2") }, nil, map[string][]string{},
		},
		"through an Await that names it, and not one of the object": {
			[]string{"a1", "a2", "b", "c", "a3"}, func(s *api.TransactionSpec) {
				deletes(s, "a1")
				change(s, "a2").Type, change(s, "b").Type = api.Await, api.Await
				change(s, "b").DependsOn, change(s, "c").DependsOn = []string{"a1"}, []string{"b", "a2"}
			}, nil, map[string][]string{"b": {"a1"}, "c": {"a1"}, "a3": {"a1"}},
		},
		"not by way of an Await of the object, whose namespace is not on record": {
			[]string{"b", "a1", "a2"}, func(s *api.TransactionSpec) {
				deletes(s, "b")
				change(s, "a1").Type, change(s, "a1").DependsOn = api.Await, []string{"b"}
				change(s, "a1").Target.Namespace = ""
			}, nil, map[string][]string{"a1": {"b"}},
		},
		"what is in a namespace that it makes": {
			[]string{"a", "b", "c"}, func(s *api.TransactionSpec) {
				deletes(s, "a")
				change(s, "a").Target = api.Target{APIVersion: "v1", Kind: "Namespace", Name: "new"}
				change(s, "b").Target.Namespace = "new"
			}, nil, map[string][]string{"b": {"a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			txn := fixture.Transaction(tt.names...)
			tt.set(&txn.Spec)
			refers := make([][]int, len(tt.names))
			for _, name := range tt.names {
				txn.Status.Items = append(txn.Status.Items, api.Item{Name: name, Target: change(&txn.Spec, name).Target, State: api.ItemPending})
			}
			for from, to := range tt.refers {
				refers[IndexOf(txn.Status.Items, from)] = []int{IndexOf(txn.Status.Items, to)}
			}
			require.NoError(t, RelateDeletions(txn, refers))
			got := map[string][]string{}
			for _, item := range txn.Status.Items {
				if item.DeletedWith != nil {
					got[item.Name] = item.DeletedWith
				}
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// A loss is accepted by the change itself, or by all that it is deleted with.
func TestWhoAcceptsALossOfADeletion(t *testing.T) {
	txn := fixture.Transaction("a", "b", "c")
	for i, c := range txn.Spec.Changes {
		txn.Status.Items = append(txn.Status.Items, api.Item{Name: c.Name, Target: c.Target, Type: api.Delete})
		txn.Spec.Changes[i].When = "object != null"
	}
	txn.Status.Items[2].DeletedWith = []string{"a", "b"}
	accepted := func() bool { return ChangeOf(txn, 2).AcceptLoss }
	assert.False(t, accepted())
	txn.Spec.Changes[0].AcceptLoss = true
	assert.False(t, accepted(), "the other does not allow it")
	txn.Spec.Changes[1].AcceptLoss = true
	assert.True(t, accepted())
	txn.Status.Items[2].DeletedWith = nil
	assert.False(t, accepted())
	txn.Spec.Changes[2].AcceptLoss = true
	assert.True(t, accepted())

	got := ChangeOf(txn, 2)
	assert.Equal(t, api.Delete, got.Type)
	assert.Empty(t, got.When, "it is not asked again")
	txn.Status.Items[2].Type = ""
	assert.Equal(t, txn.Spec.Changes[2], ChangeOf(txn, 2))
}

// Which earlier changes decide an activation.
func TestWhatDecidesAnActivation(t *testing.T) {
	crd := api.Target{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "widgets.example.com"}
	service := api.Target{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService", Name: "v1.example.com"}
	for name, tt := range map[string]struct {
		asks   api.Activation
		target api.Target
		set    func(*api.Transaction)
		want   bool
	}{
		"a definition of its group":         {api.Activation{APIVersion: "example.com/v1", Kind: "Widget"}, crd, nil, true},
		"one of another group":              {api.Activation{APIVersion: "other.com/v1", Kind: "Widget"}, crd, nil, false},
		"an API of its version":             {api.Activation{APIVersion: "example.com/v1", Kind: "Widget"}, service, nil, true},
		"an API of another version":         {api.Activation{APIVersion: "example.com/v2", Kind: "Widget"}, service, nil, false},
		"any definition, for an expression": {api.Activation{Expression: "size(kinds) > 1"}, crd, nil, true},
		"any API, for an expression":        {api.Activation{Expression: "size(kinds) > 1"}, service, nil, true},
		"nothing else, for an expression":   {api.Activation{Expression: "size(kinds) > 1"}, api.Target{APIVersion: "v1", Kind: "ConfigMap", Name: "x"}, nil, false},
		"one that is deleted":               {api.Activation{APIVersion: "example.com/v1", Kind: "Widget"}, crd, func(t *api.Transaction) { t.Spec.Changes[0].Type = api.Delete }, true},
		"not one that is only waited for":   {api.Activation{APIVersion: "example.com/v1", Kind: "Widget"}, crd, func(t *api.Transaction) { t.Spec.Changes[0].Type = api.Await }, false},
		"not one that is skipped":           {api.Activation{APIVersion: "example.com/v1", Kind: "Widget"}, crd, func(t *api.Transaction) { t.Status.Items[0].State = api.ItemSkipped }, false},
		"in a graph not one beside it":      {api.Activation{APIVersion: "example.com/v1", Kind: "Widget"}, crd, func(t *api.Transaction) { t.Spec.Order = api.OrderGraph }, false},
		"in a graph one that it depends on": {api.Activation{APIVersion: "example.com/v1", Kind: "Widget"}, crd, func(t *api.Transaction) { t.Spec.Changes[1].DependsOn = []string{"a"} }, true},
		"in a graph one of its own new kind": {api.Activation{APIVersion: "example.com/v1", Kind: "Widget"}, crd, func(t *api.Transaction) {
			t.Spec.Order, t.Spec.Changes[0].Type = api.OrderGraph, api.Create
			t.Spec.Changes[1].Target = api.Target{APIVersion: "example.com/v1", Kind: "Widget", Name: "w"}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			txn := fixture.Transaction("a", "b")
			txn.Spec.Changes[0].Target, txn.Spec.Changes[1].Activation = tt.target, &tt.asks
			for _, c := range txn.Spec.Changes {
				txn.Status.Items = append(txn.Status.Items, api.Item{Name: c.Name, Target: c.Target, State: api.ItemPending})
			}
			if tt.set != nil {
				tt.set(txn)
			}
			assert.Equal(t, tt.want, len(Deciders(txn, 1)) > 0)
			assert.True(t, Undecided(txn, 1))
			NoteResult(&txn.Status.Items[1], api.ConditionActivation, true, txn.CreationTimestamp, "")
			assert.False(t, Undecided(txn, 1), "it is decided once")
		})
	}
}

// What deletes its target instead gives no fields away, and depends on nothing.
func TestWhatDeletesItsTargetInsteadDoesNothingElse(t *testing.T) {
	txn := with(api.PhaseCommitting, api.ItemCommitted, api.ItemPending)
	change(&txn.Spec, "b").Release = &api.Release{Managers: []string{"helm"}}
	change(&txn.Spec, "b").DependsOn = []string{"a"}
	assert.True(t, Releases(txn, 1))
	assert.Equal(t, []string{"a"}, DependsOn(txn, 1))

	txn.Status.Items[1].Type = api.Delete
	assert.False(t, Releases(txn, 1))
	assert.Empty(t, DependsOn(txn, 1))
}
