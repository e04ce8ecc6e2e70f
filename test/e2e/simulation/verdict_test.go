package simulation

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/oracle"
)

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// outcome is what became of a run.
type outcome struct {
	breaches []string
	calls    []faultinject.Call
	missed   []faultinject.At
	phases   []string
	causes   []string
	steps    int
	trace    []string
	evidence oracle.Evidence
	// locksKept says that no process was away for so long that others might take its locks.
	locksKept bool
}

// simulate runs a plan in a bubble of its own and judges it.
func simulate(t *testing.T, p script) (o outcome) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w, err := newWorld(p)
		if err != nil {
			o.breaches = []string{err.Error()}
			return
		}
		if err := w.run(context.Background()); err != nil {
			o.breaches = []string{err.Error()}
			return
		}
		o = w.outcome()
	})
	return o
}

func (w *world) outcome() outcome {
	o := outcome{calls: w.line.Calls(), missed: w.line.Missed(), steps: w.step, trace: w.trace}
	if w.problem != "" {
		o.breaches = append(o.breaches, w.problem)
	}
	evidence := oracle.Evidence{
		TrustsAccounts: w.trust() > 0,
		History:        w.history, Calls: o.calls, Canary: canary, Hidden: hidden, Home: systemNamespace,
		CallsSinceFault: len(o.calls) - w.lastFault, SinceFault: time.Since(w.quietFrom), Processes: w.plan.machines, ClocksTurned: w.turned, ListKeys: map[string][]string{"parts": {"name"}}, Admitted: w.admitted,
		Kinds: schemas().served,
	}
	for _, m := range w.machines {
		evidence.HandedOver = max(evidence.HandedOver, m.handed)
	}
	for i, spec := range w.plan.scenario.transactions {
		run := oracle.Run{Namespace: namespace, Name: transactionName(i), Spec: w.derived(transactionName(i), spec)}
		for _, c := range run.Spec.Changes {
			run.Items = append(run.Items, oracle.Ref{Resource: qualified(schema.FromAPIVersionAndKind(c.Target.APIVersion, c.Target.Kind)), Namespace: namespace, Name: c.Target.Name})
		}
		phase := "gone"
		if t := w.transaction(run.Name); t != nil {
			phase, _, _ = unstructured.NestedString(t.Object, "status", "phase")
			o.causes = append(o.causes, run.Name+": "+causeOf(t))
		}
		o.phases = append(o.phases, phase)
		run.UID = w.uidOf(run.Name)
		evidence.Runs = append(evidence.Runs, run)
	}
	o.evidence = evidence
	for _, b := range oracle.Judge(evidence) {
		o.breaches = append(o.breaches, b.Guarantee+": "+b.Message)
	}
	if o.locksKept = w.locksKept(); w.plan.harmless && o.locksKept {
		o.breaches = append(o.breaches, isolated(evidence)...)
	}
	return o
}

// derived gives the spec of an undo the changes that have followed from it, as its status
// says, and any other as it is.
func (w *world) derived(name string, spec api.TransactionSpec) api.TransactionSpec {
	for _, v := range w.history {
		if spec.UndoOf == nil || v.Ref.Resource != "transactions.backup.janus.io" || v.Ref.Name != name {
			continue
		}
		if t, err := wiring.FromUnstructured(v.Object); err == nil && len(t.Spec.Changes) > 0 {
			return t.Spec
		}
	}
	return spec
}

// source returns the choices of a seed; number tells apart what they are for.
func source(seed, number uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, number)) //nolint:gosec // the same choices for the same seed are the point
}

// seeded is the plan of a seed. One of eight has contents in Secrets and ConfigMaps.
func seeded(seed uint64) script {
	p := drawn(seed)
	if random := source(seed, 6); random.IntN(8) == 0 {
		withSources(random, &p)
	}
	return p
}

// drawn is the plan of a seed with all contents in the Transactions. One of three has two machines.
func drawn(seed uint64) script {
	random := source(seed, 2)
	rates := []float64{0, 0.01, 0.03, 0.1}
	p := script{
		seed: seed, scenario: draw(random), machines: 1 + random.IntN(3)/2, chaotic: 20 + random.IntN(200),
		faultRate: rates[random.IntN(len(rates))], actRate: rates[random.IntN(len(rates))] / 2,
	}
	branch(source(seed, 3), &p.scenario)
	pace(source(seed, 4), &p.scenario)
	goOn(source(seed, 7), &p.scenario)
	takeBack(source(seed, 8), &p.scenario)
	activate(source(seed, 9), &p.scenario)
	giveUp(source(seed, 10), &p.scenario)
	return p
}

// giveUp has one Patch of ten release fields in place of its content, and some of these leave them to
// a manager. That may be refused, since no earlier change may be of the same target.
func giveUp(random *rand.Rand, s *scenario) {
	for i := range s.transactions {
		spec := &s.transactions[i]
		for j := range spec.Changes {
			c := &spec.Changes[j]
			if c.Type != api.Patch || c.WhenFalse != "" || random.IntN(10) > 0 {
				continue
			}
			c.Content, c.Force = nil, nil
			c.Release = &api.Release{Managers: [][]string{{"kubectl"}, {"annotator", "kubectl"}, {"somebody"}}[random.IntN(3)]}
			if random.IntN(2) == 0 {
				c.Release.Fields = []string{".data.a"}
			}
			if random.IntN(3) == 0 {
				spec.FieldManager = []string{"kubectl", "gitops"}[random.IntN(2)]
			}
		}
	}
}

// takeBack has one scenario of eight end with the undo of all that has committed, or of all but the
// first. What comes before is remembered, mostly.
func takeBack(random *rand.Rand, s *scenario) {
	if random.IntN(8) > 0 {
		return
	}
	limit, to := int32(5), random.Int64N(2)
	for i := range s.transactions {
		if random.IntN(8) > 0 {
			s.transactions[i].RevisionHistoryLimit = &limit
		}
	}
	spec := api.TransactionSpec{ServiceAccountName: "deployer", UndoOf: &api.UndoOf{ToRevision: &to}}
	if random.IntN(3) == 0 {
		spec.ConflictPolicy = api.ConflictForce
	}
	if random.IntN(2) == 0 {
		spec.RevisionHistoryLimit = &limit
	}
	s.transactions = append(s.transactions, spec)
}

// goOn has some Transactions go on when a change fails. The CRD does not allow that beside a guard.
func goOn(random *rand.Rand, s *scenario) {
	guards := func(c api.Change) bool { return c.Guard }
	for i := range s.transactions {
		if random.IntN(4) == 0 && !slices.ContainsFunc(s.transactions[i].Changes, guards) {
			s.transactions[i].OnFailure = api.FailureContinue
		}
	}
}

// pace bounds the failed attempts of some Transactions, and how fast some go.
func pace(random *rand.Rand, s *scenario) {
	for i := range s.transactions {
		if random.IntN(6) == 0 {
			s.transactions[i].RetryLimit = ptr.To(int32(random.IntN(6))) //nolint:gosec // a small number
		}
		if random.IntN(6) == 0 {
			s.transactions[i].ChangesPerMinute = ptr.To(1 + int32(random.IntN(300))) //nolint:gosec // a small number
		}
	}
}

func (o outcome) String() string {
	return fmt.Sprintf("%s, %d calls, %d steps\n%s\n%s", strings.Join(o.phases, ", "), len(o.calls), o.steps,
		strings.Join(o.breaches, "\n"), strings.Join(o.causes, "\n"))
}

// causeOf is what a Transaction says about how it is.
func causeOf(t *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(t.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, _ := c.(map[string]any); condition["type"] == "Ready" {
			return fmt.Sprint(condition["reason"], ": ", condition["message"])
		}
	}
	return "it has no condition"
}
