package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

// The first change deletes its target instead, which what depends on it has to come before.
func TestADeletionIsHinderedByWhatHasToComeBeforeIt(t *testing.T) {
	fails, falls, made := item{failed: true, state: "Skipped"}, item{state: "Skipped", reason: "DependencyFailed"}, item{state: "Committed"}
	epsilon, beta, alpha := Ref{"configmaps", ns, "epsilon"}, Ref{"configmaps", ns, "beta"}, Ref{"configmaps", ns, "alpha"}
	for what, c := range map[string]struct {
		targets []Ref
		on      [][]int // as the spec has it
		items   []item
		want    bool
	}{
		"a dependent has failed":                       {[]Ref{epsilon, beta}, [][]int{nil, {0}}, []item{falls, fails}, true},
		"a dependent isn't made, since another failed": {[]Ref{epsilon, beta, alpha}, [][]int{nil, nil, {0, 1}}, []item{falls, fails, falls}, true},
		"a later change of the same object has failed": {[]Ref{epsilon, epsilon}, [][]int{nil, nil}, []item{falls, fails}, true},
		"what does not depend on it has failed":        {[]Ref{epsilon, beta}, [][]int{nil, nil}, []item{falls, fails}, false},
		"what depends on it is made":                   {[]Ref{epsilon, beta, alpha}, [][]int{nil, {0}, nil}, []item{falls, made, fails}, false},
	} {
		t.Run(what, func(t *testing.T) {
			end := &state{items: c.items}
			r := &run{
				Run: &Run{Items: c.targets, Spec: api.TransactionSpec{Changes: make([]api.Change, len(c.items))}}, states: []*state{end},
				turning: turning{at: make([]*state, len(c.items)), out: make([]bool, len(c.items))},
			}
			r.at[0] = end
			assert.Equal(t, c.want, r.hindered(end, r.turnedAround(c.on), 0))
		})
	}
}
