package simulation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

// modelledRun is one in which nothing happens for which the model of the protocol has no part.
type modelledRun struct {
	name string
	script
	// hangs is set if a process stands still for longer than the Transaction may take.
	hangs bool
}

// How many of what could be tried are one that is: there are thousands.
const (
	ofFaults = 6   // at requests that are not of the protocol, such as those for locks
	ofActs   = 6   // at steps
	ofOrders = 150 // of two processes
)

// modelled are runs of Transactions of the size of the model, with what happens in it.
func modelled(t *testing.T) (out []modelledRun) {
	t.Helper()
	n := 0
	for _, s := range twoChanges() {
		add := func(hangs bool, p script, format string, arguments ...any) {
			p.scenario = s
			out = append(out, modelledRun{s.name + ": " + fmt.Sprintf(format, arguments...), p, hangs})
		}
		turn := func(of int) bool { n++; return n%of == 0 }
		for seed := range uint64(len(windows)) {
			add(false, script{seed: seed}, "seed %d", seed)
		}
		healthy := simulate(t, script{scenario: s, seed: 1})
		each(healthy.calls, -1, func(in faultinject.Injection) {
			if in.Fault == faultinject.Stale || in.Fault == faultinject.FalseNotFound {
				return // No answer to a read is false in the model.
			}
			p, stored := script{seed: 1, injections: []faultinject.Injection{in}}, ofProtocol(healthy.calls, in.At)
			if stored || turn(ofFaults) {
				add(false, p, "%s at %s", in.Fault, in.At)
			}
			if stored && (in.Fault == faultinject.CrashAfter || in.Fault == faultinject.Late) {
				for _, a := range foreignActs(s) {
					p.choose = acting(a, func(w *world) bool { return len(w.line.Missed()) == 0 })
					add(a.name == "hang", p, "%s at %s, then %s", in.Fault, in.At, a.name)
				}
			}
		})
		for step := range healthy.steps {
			for _, a := range foreignActs(s) {
				if turn(ofActs) || s.name == "patch, refused" && strings.HasPrefix(a.name, "write") {
					add(a.name == "hang", script{seed: uint64(step), choose: acting(a, func(w *world) bool { return w.step >= step })}, "%s at step %d", a.name, step)
				}
			}
			for j := 1; j <= healthy.steps; j++ {
				p := script{seed: uint64(step + j), machines: 2}
				if p.choose = switching(step, step+j); turn(ofOrders) {
					add(false, p, "switched at %d and %d later", step, j)
				}
				if p.choose = inTurn(step, j); turn(ofOrders) {
					add(true, p, "hung at %d and %d later", step, j)
				}
			}
		}
	}
	return out
}

// ofProtocol reports whether a call writes a target or the Transaction.
func ofProtocol(calls []faultinject.Call, at faultinject.At) bool {
	for _, c := range calls {
		if c.At == at {
			return c.Kind == faultinject.Write && !c.DryRun && (c.User != "" || c.Resource == api.Resource.Resource)
		}
	}
	return false
}

// twoChanges are Transactions of the size of the model. Widgets have a status, which others write.
func twoChanges() []scenario {
	alpha, beta := thing{widget, "alpha"}, thing{widget, "beta"}
	news := map[string]string{"a": "new", "c": "new"}
	refused := thing{configMap, "refused"}.change(api.Create, old)
	two := func(name string, a, b api.Change, objects ...thing) scenario {
		timeout := api.Duration("60s")
		s := scenario{name: name, transactions: []api.TransactionSpec{{ServiceAccountName: "deployer", Timeout: &timeout, Changes: []api.Change{a, b}}}}
		for _, t := range objects {
			s.objects = append(s.objects, t.with(old))
		}
		return s
	}
	return []scenario{
		two("patch, create", alpha.change(api.Patch, news), beta.change(api.Create, news), alpha),
		two("create, patch", beta.change(api.Create, news), alpha.change(api.Patch, news), alpha),
		two("delete, patch", alpha.change(api.Delete, nil), beta.change(api.Patch, news), alpha, beta),
		two("patch, refused", alpha.change(api.Patch, news), refused, alpha),
		two("create, refused", alpha.change(api.Create, news), refused),
		two("delete, refused", alpha.change(api.Delete, nil), refused, alpha),
	}
}

// foreignActs are what another client does in the model, to each target, and what lets the time be over.
func foreignActs(s scenario) []act {
	out := []act{{"hang", func(a *actors) error {
		a.world.frozen[len(a.world.machines)-1] = time.Now().Add(hang)
		return nil
	}}}
	for i, target := range s.targets() {
		if target.Name == "refused" {
			continue // Nobody may create it.
		}
		of := thing{widget, target.Name}
		write := func(values map[string]any, subresource ...string) func(*actors) error {
			return func(a *actors) error { return a.merge(of.with(nil), "somebody", values, subresource...) }
		}
		out = append(out,
			act{fmt.Sprintf("write the status of %d", i), write(map[string]any{"status": map[string]any{"seen": "theirs"}}, "status")},
			act{fmt.Sprintf("write a field of %d", i), write(map[string]any{"data": map[string]any{"a": "theirs"}})},
			act{fmt.Sprintf("write all fields of %d", i), write(map[string]any{"data": map[string]any{"a": "theirs", "c": "theirs"}})},
			act{fmt.Sprintf("delete %d", i), func(a *actors) error { return a.remove(of.with(nil)) }},
			act{fmt.Sprintf("create %d", i), func(a *actors) error {
				obj := of.with(map[string]string{"a": "theirs"})
				_, err := a.of(obj).Create(context.Background(), obj, metav1.CreateOptions{FieldManager: "somebody"})
				return err
			}},
		)
	}
	return out
}

// acting has another client act once, when the Transaction has come to Preparing.
func acting(a act, when func(*world) bool) func(*world, []*held) *held {
	acted := false
	return func(w *world, ready []*held) *held {
		if !acted && when(w) && w.preparing() {
			acted = true
			err := a.do(w.actors)
			w.note("somebody: %s (%v)", a.name, err)
		}
		return ready[0]
	}
}

// preparing reports whether the Transaction has come to Preparing.
func (w *world) preparing() bool {
	t := w.transaction(transactionName(0))
	if t == nil {
		return false
	}
	phase, _, _ := unstructured.NestedString(t.Object, "status", "phase")
	return phase != "" && phase != string(api.PhasePending)
}
