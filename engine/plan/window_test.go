package plan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
)

func change(s *api.TransactionSpec, name string) *api.Change {
	return &s.Changes[slices.IndexFunc(s.Changes, func(c api.Change) bool { return c.Name == name })]
}

// wait lets a change be done only once its target is ready.
func wait(s *api.TransactionSpec, name string) {
	change(s, name).ReadyWhen = &api.ReadyWhen{Status: api.StatusReady, Timeout: ptr.To(api.Duration("1m"))}
}

// Which intents one checkpoint opens.
func TestTheWindow(t *testing.T) {
	const (
		pending, prepared, committing, committed = api.ItemPending, api.ItemPrepared, api.ItemCommitting, api.ItemCommitted
	)
	for name, tt := range map[string]struct {
		set    func(*api.TransactionSpec)
		states []api.ItemState
		most   int
		want   []int
	}{
		"all of a list":                     {nil, []api.ItemState{prepared, prepared, prepared, prepared}, 10, []int{0, 1, 2, 3}},
		"no more than so many":              {nil, []api.ItemState{prepared, prepared, prepared, prepared}, 3, []int{0, 1, 2}},
		"those that are open count":         {nil, []api.ItemState{committed, committing, committing, prepared}, 3, []int{3}},
		"up to one without a before-image":  {nil, []api.ItemState{committed, prepared, pending, prepared}, 10, []int{1}},
		"up to one that is waited for":      {func(s *api.TransactionSpec) { wait(s, "b") }, []api.ItemState{prepared, prepared, prepared, prepared}, 10, []int{0, 1}},
		"none after one that is waited for": {func(s *api.TransactionSpec) { wait(s, "b") }, []api.ItemState{committed, committing, prepared, prepared}, 10, nil},
		"those after one that is skipped":   {nil, []api.ItemState{committing, committing, api.ItemSkipped, prepared}, 10, []int{3}},
		"none of a list after one that is waited for and one that is skipped": {func(s *api.TransactionSpec) { wait(s, "b") }, []api.ItemState{committed, committing, api.ItemSkipped, prepared}, 10, nil},
		"all of a graph, in its order":                                        {func(s *api.TransactionSpec) { change(s, "a").DependsOn = []string{"d"} }, []api.ItemState{prepared, prepared, prepared, prepared}, 10, []int{3, 0, 1, 2}},
		"of a graph those that need not wait":                                 {func(s *api.TransactionSpec) { change(s, "b").DependsOn = []string{"a"}; wait(s, "a") }, []api.ItemState{prepared, prepared, prepared, prepared}, 10, []int{0, 2, 3}},
		"of a graph as many as may be waited for": {func(s *api.TransactionSpec) {
			change(s, "d").DependsOn = []string{"a"}
			wait(s, "a")
			wait(s, "b")
			s.Parallelism = ptr.To(int32(2))
		}, []api.ItemState{prepared, prepared, prepared, prepared}, 10, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			txn := with(api.PhaseCommitting, tt.states...)
			if tt.set != nil {
				tt.set(&txn.Spec)
			}
			assert.Equal(t, tt.want, ScheduleOf(txn).Window(txn, tt.most))
		})
	}
}

// Of a change that has failed it may not be known whether it is in effect. An intent that was opened
// beside it, of a change that depends on it, is not acted on meanwhile, and keeps no other from being
// opened: the step that opens intents opens some.
func TestAnIntentThatWaitsForOneThatHasFailedKeepsNoOtherFromBeingOpened(t *testing.T) {
	for name, set := range map[string]func(*api.TransactionSpec){
		"whose own dependent has no before-image": func(s *api.TransactionSpec) { change(s, "c").DependsOn = []string{"b"} },
		"that is waited for": func(s *api.TransactionSpec) {
			change(s, "c").DependsOn = []string{"b"}
			wait(s, "b")
			s.Parallelism = ptr.To(int32(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			txn := with(api.PhaseCommitting, api.ItemCommitting, api.ItemCommitting, api.ItemPending, api.ItemPrepared)
			txn.Spec.OnFailure = api.FailureContinue
			change(&txn.Spec, "b").DependsOn = []string{"a"}
			set(&txn.Spec)
			txn.Status.Items[0].Failed = true

			decided := Decide(txn, InFlight{}, fixture.Start, limits)

			require.Equal(t, Open, decided.Verb)
			assert.Equal(t, 3, decided.Item)
			assert.Equal(t, []int{3}, ScheduleOf(txn).Window(txn, 10))
			txn.Status.Items[3].State = api.ItemCommitted
			assert.Equal(t, Settle, Decide(txn, InFlight{}, fixture.Start, limits).Verb, "and then it is found out")
		})
	}
}
