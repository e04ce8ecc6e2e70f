package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
)

// Which items are rolled back together.
func TestWhatIsRolledBackTogether(t *testing.T) {
	const (
		pending, committed, rollingBack, rolledBack = api.ItemPending, api.ItemCommitted, api.ItemRollingBack, api.ItemRolledBack
	)
	all := Known{0: Unsent, 1: Unsent, 2: Unsent, 3: Unsent}
	graph := func(s *api.TransactionSpec) { s.Order = api.OrderGraph }
	for name, tt := range map[string]struct {
		set    func(*api.TransactionSpec)
		states []api.ItemState
		known  Known
		want   []int
	}{
		"all of a list":                       {nil, []api.ItemState{rollingBack, rollingBack, rollingBack, rollingBack}, all, []int{3, 2, 1, 0}},
		"those in effect":                     {nil, []api.ItemState{rollingBack, rolledBack, rollingBack, pending}, all, []int{2, 0}},
		"none that is not on record":          {nil, []api.ItemState{committed, rollingBack, rollingBack, rollingBack}, all, []int{3, 2, 1}},
		"none below one that is not":          {nil, []api.ItemState{rollingBack, committed, rollingBack, rollingBack}, all, []int{3, 2}},
		"one that may have been sent alone":   {nil, []api.ItemState{rollingBack, rollingBack, rollingBack, rollingBack}, Known{0: Unsent, 1: Unsent, 2: Unsent}, []int{3}},
		"none below one that may have been":   {nil, []api.ItemState{rollingBack, rollingBack, rollingBack, rollingBack}, Known{0: Unsent, 1: Ineffective, 2: Unsent, 3: Unsent}, []int{3, 2}},
		"past those that are over":            {nil, []api.ItemState{rollingBack, rollingBack, rollingBack, rollingBack}, Known{0: Unsent, 1: Unsent, 2: Over, 3: Over}, []int{1, 0}},
		"one that removes an object alone":    {func(s *api.TransactionSpec) { change(s, "d").Type = api.Create }, []api.ItemState{rollingBack, rollingBack, rollingBack, rollingBack}, all, []int{3}},
		"none below one that makes one":       {func(s *api.TransactionSpec) { change(s, "c").Type = api.Delete }, []api.ItemState{rollingBack, rollingBack, rollingBack, rollingBack}, all, []int{3}},
		"none below one that is waited for":   {func(s *api.TransactionSpec) { change(s, "b").Rollback = &api.ChangeRollback{} }, []api.ItemState{rollingBack, rollingBack, rollingBack, rollingBack}, all, []int{3, 2}},
		"all of a graph":                      {graph, []api.ItemState{rollingBack, rollingBack, rollingBack, rollingBack}, all, []int{3, 2, 1, 0}},
		"of a graph as many as may be made":   {func(s *api.TransactionSpec) { graph(s); s.Parallelism = ptr.To(int32(2)) }, []api.ItemState{rollingBack, rollingBack, rollingBack, rollingBack}, all, []int{3, 2}},
		"of a graph up to one that is needed": {func(s *api.TransactionSpec) { change(s, "d").DependsOn = []string{"b"} }, []api.ItemState{rollingBack, rollingBack, rollingBack, rollingBack}, all, []int{3, 2}},
		"of a graph, if by one that is between": {func(s *api.TransactionSpec) {
			change(s, "d").DependsOn = []string{"c"}
			change(s, "c").DependsOn = []string{"a"}
		}, []api.ItemState{rollingBack, rolledBack, rolledBack, rollingBack}, all, []int{3}},
	} {
		t.Run(name, func(t *testing.T) {
			txn := with(api.PhaseRollingBack, tt.states...)
			if tt.set != nil {
				tt.set(&txn.Spec)
			}
			action := Decide(txn, InFlight{Known: tt.known}, fixture.Start, limits)
			assert.Equal(t, Action{Verb: Undo, Item: tt.want[0], Items: tt.want}, action)
		})
	}
}

// Two changes of one object are rolled back in turn, also where a recovery has opened both.
func TestTwoChangesOfAnObjectAreNotRolledBackTogether(t *testing.T) {
	for name, order := range map[string]api.OrderPolicy{"list": "", "graph": api.OrderGraph} {
		t.Run(name, func(t *testing.T) {
			txn := with(api.PhaseRollingBack, api.ItemRollingBack, api.ItemRollingBack, api.ItemRollingBack)
			txn.Spec.Order = order
			txn.Status.Items[0].Target, txn.Spec.Changes[0].Target = txn.Status.Items[2].Target, txn.Spec.Changes[2].Target
			action := Decide(txn, InFlight{Known: Known{0: Unsent, 1: Unsent, 2: Unsent}}, fixture.Start, limits)
			assert.Equal(t, Action{Verb: Undo, Item: 2, Items: []int{2, 1}}, action)
		})
	}
}
