package simulation

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
)

// taken are small workloads whose contents are in sources: in a ConfigMap, and in a Secret.
func taken(one func(name string, objects []thing, changes ...api.Change) scenario) []scenario {
	alpha, delta := pool[0], pool[3]
	news := map[string]string{"a": "new-0", "c": "new-0"}
	refused := thing{configMap, "refused"}.change(api.Create, old)
	return []scenario{
		fromSources(one("from-configmap", []thing{alpha}, alpha.change(api.Patch, news))),
		fromSources(one("from-secret", []thing{delta}, delta.change(api.Patch, news))),
		fromSources(one("from-both-back", []thing{alpha, delta}, alpha.change(api.Update, news), delta.change(api.Patch, news), refused)),
		fromSources(undone(one("from-secret-undone", []thing{delta}, delta.change(api.Update, news)))),
	}
}

// fromSources moves the contents of a small workload, but for what is refused, into a ConfigMap,
// and those of Secrets into a Secret.
func fromSources(s scenario) scenario {
	m := &mover{random: source(1, 1), scenario: &s}
	for i, c := range s.transactions[0].Changes {
		if c.Target.Name == "refused" {
			continue
		}
		kind := configMap
		if c.Target.Kind == secret.Kind {
			kind = secret
		}
		m.move(0, i, m.source(0, thing{kind, "source"}))
		s.transactions[0].Changes[i].ContentFrom.Digest = ""
	}
	for _, source := range s.sources {
		source.returns = true
		s.objects = append(s.objects, source.object(source.values))
	}
	return s
}

// TestSmallWorkloadsMeetActsOnTheirSources has another client change, delete or re-create sources
// before any step, with and without a crash of the process, which may have read them.
// What comes back is no reason to end otherwise, but for a Secret, which is another one then.
func TestSmallWorkloadsMeetActsOnTheirSources(t *testing.T) {
	t.Parallel()
	crash := acts[slices.IndexFunc(acts, func(a act) bool { return a.name == "crash" })]
	for number, s := range small() {
		if len(s.sources) == 0 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			healthy := simulate(t, script{scenario: s, seed: 1})
			n, runs := number, 0
			for _, a := range sourceActs[:len(sourceActs)/again] {
				for _, crashes := range []bool{false, true} {
					both := act{a.name, func(at *actors) error {
						if crashes {
							_ = crash.do(at)
						}
						return a.do(at)
					}}
					for step := range healthy.steps {
						if n++; n%max(1, *every/4) != 0 {
							continue
						}
						o := simulate(t, script{scenario: s, seed: uint64(n), choose: meeting(both, func(w *world) bool { return w.step >= step })}) //nolint:gosec // a count of runs
						assert.Empty(t, o.breaches, "%s, number %d, %s at step %d, with a crash: %t: %s", s.name, n, a.name, step, crashes, o)
						if s.returnsAfter(a) {
							assert.Equal(t, healthy.phases, o.phases, "%s, number %d, %s at step %d, with a crash: %t: %s", s.name, n, a.name, step, crashes, o)
						}
						runs++
					}
				}
			}
			require.NotZero(t, runs)
			t.Logf("%d runs", runs)
		})
	}
}

// returnsAfter reports whether sources are in the end what they were, after an act.
func (s scenario) returnsAfter(a act) bool {
	secrets := slices.ContainsFunc(s.sources, func(o *sourceObject) bool { return o.gvk == secret })
	switch a.name {
	case "touch source", "restore source", "make source", "make another source", "drop keys":
		return true // It is there, or its keys come back.
	case "delete source", "re-create source":
		return !secrets
	}
	return false
}

// TestSmallWorkloadsNeedNoSourceAfterwards deletes all sources for good when a rollback begins,
// or before an undo.
func TestSmallWorkloadsNeedNoSourceAfterwards(t *testing.T) {
	t.Parallel()
	lose := act{"lose all sources", func(a *actors) error {
		for _, s := range a.world.plan.scenario.sources {
			_ = a.remove(s.with(nil))
		}
		return nil
	}}
	for _, s := range small() {
		if len(s.sources) == 0 || !strings.HasSuffix(s.name, "back") && !strings.HasSuffix(s.name, "undone") {
			continue
		}
		for _, source := range s.sources {
			source.returns = false
		}
		healthy := simulate(t, script{scenario: s, seed: 1})
		turned := func(w *world) bool {
			phase, _, _ := unstructured.NestedString(w.transaction(transactionName(0)).Object, "status", "phase")
			return phase == string(api.PhaseRollingBack) || phase == string(api.PhaseCommitted)
		}
		for _, machines := range []int{1, 2} {
			o := simulate(t, script{scenario: s, seed: 1, machines: machines, choose: meeting(lose, turned)})
			assert.Empty(t, o.breaches, "%s: %s", s.name, o)
			assert.Equal(t, healthy.phases, o.phases, "%s: %s", s.name, o)
		}
	}
}
