package lifecycle

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// A gallery keeps one Transaction of each kind that tools have to tell apart, as the API
// server gave it, below testdata/gitops. The tests of hack/gitops show these to the scripts
// and expressions of deploy/gitops.
type gallery struct {
	*harness.Env
	t    *testing.T
	seen map[string]bool
}

// TestWhatToolsSeeOfATransaction runs Transactions to every end, and takes one picture of
// each phase on the way.
func TestWhatToolsSeeOfATransaction(t *testing.T) {
	t.Parallel()
	g := &gallery{Env: harness.New(t), t: t, seen: map[string]bool{}}
	g.Apply(fixture.AB)
	g.Submit("new", oneOf("a"))
	g.keep("new", g.Transaction("new"))
	watching, err := g.Dynamic.Resource(api.Resource).Namespace(g.Namespace).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer watching.Stop()
	g.Start()
	require.Equal(t, api.PhaseCommitted, g.Ended("new").Status.Phase)
	require.Equal(t, api.PhaseRolledBack, g.Run("rolled-back", `{changes: [
	  {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "3"}}},
	  {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {version: "3"}},
	   readyWhen: {expression: "has(object.data.never)", timeout: 1s}}]}`).Status.Phase)
	require.Equal(t, api.PhasePlanned, g.Run("plan", `{dryRun: true, changes: [
	  {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "4"}}}]}`).Status.Phase)
	require.Equal(t, api.PhaseFailed, g.Run("wrong", oneOf("missing")).Status.Phase)
	for phase, txn := range g.firstOfEach(watching.ResultChan()) {
		g.keep(string(phase), txn)
	}
	g.suspended()
	kept, err := filepath.Glob("../../../testdata/gitops/*.yaml")
	require.NoError(t, err)
	assert.Len(t, kept, len(g.seen), "no picture is left over")
}

func oneOf(name string) string {
	return `{changes: [{target: {apiVersion: v1, kind: ConfigMap, name: ` + name + `}, type: Patch, content: {data: {version: "2"}}}]}`
}

// suspended keeps one that stands still in the middle, and then what a stop leaves of it.
func (g *gallery) suspended() {
	g.t.Helper()
	g.Submit("halted", `{suspend: true, changes: [
	  {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "5"}}},
	  {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {version: "5"}},
	   readyWhen: {expression: "has(object.data.never)"}},
	  {target: {apiVersion: v1, kind: ConfigMap, name: c}, type: Create, content: {data: {version: "5"}}}]}`)
	is := func(condition, status string) func(*api.Transaction) bool {
		return func(t *api.Transaction) bool {
			for _, c := range t.Status.Conditions {
				if c.Type == condition && string(c.Status) == status {
					return t.Status.ObservedGeneration == t.Generation
				}
			}
			return false
		}
	}
	g.keep("Pending-suspended", g.Await("halted", "suspended", is(api.ConditionSuspended, "True")))
	g.set(`{"spec":{"suspend":false}}`)
	g.Await("halted", "waiting", func(t *api.Transaction) bool { return t.Status.Progress == "2/3" })
	g.set(`{"spec":{"suspend":true}}`)
	g.keep("Committing-suspended", g.Await("halted", "suspended again", is(api.ConditionSuspended, "True")))
	g.set(`{"spec":{"cancel":"Stop"}}`)
	g.keep("Failed-stopped", g.Ended("halted"))
}

func (g *gallery) set(patch string) {
	g.t.Helper()
	g.Merge("operator", api.GroupVersion.String()+" "+api.Kind.Kind+"/halted", patch)
}
