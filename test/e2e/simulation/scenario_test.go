package simulation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
)

// widget is a custom kind with a status.
var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// canary is a value that only Secrets may hold.
const canary = "canary-7f3a91"

// keys are the keys of data that are written, by Janus and others.
var keys = []string{"a", "b", "c"}

// scenario is what is there at first, and the Transactions.
type scenario struct {
	name         string
	objects      []*unstructured.Unstructured
	transactions []api.TransactionSpec
	// sources hold the contents of changes that are not in the Transactions.
	sources []*sourceObject
}

func (s scenario) targets() []api.Target {
	var out []api.Target
	for _, t := range s.transactions {
		for _, c := range t.Changes {
			out = append(out, c.Target)
		}
	}
	return out
}

// thing is an object of the pool from which scenarios are made.
type thing struct {
	gvk  schema.GroupVersionKind
	name string
}

var (
	configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secret    = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	pool      = []thing{
		{configMap, "alpha"}, {configMap, "beta"}, {configMap, "gamma"},
		{secret, "delta"}, {widget, "epsilon"},
	}
)

func (t thing) target() api.Target {
	return api.Target{APIVersion: t.gvk.GroupVersion().String(), Kind: t.gvk.Kind, Name: t.name}
}

// with is the thing with values at keys.
func (t thing) with(values map[string]string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(t.gvk)
	obj.SetName(t.name)
	obj.Object["data"] = t.data(values)
	return obj
}

func (t thing) data(values map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range values {
		out[key] = value
		if t.gvk == secret {
			out[key] = encode(canary + value)
		}
	}
	return out
}

func (t thing) change(kind api.ChangeType, values map[string]string) api.Change {
	c := api.Change{Target: t.target(), Type: kind}
	if kind != api.Delete {
		c.Content = raw(map[string]any{"data": t.data(values)})
	}
	return c
}

func raw(content map[string]any) *runtime.RawExtension {
	encoded, err := json.Marshal(content)
	if err != nil {
		panic(err) // maps of text
	}
	return &runtime.RawExtension{Raw: encoded}
}

var old = map[string]string{"a": "old-a", "b": "old-b"}

// draw makes a scenario: mostly one Transaction, of up to four changes. In one of ten
// there are two or three, which cost as many times more; TestContenders has more of them.
func draw(random *rand.Rand) scenario {
	s := scenario{name: "random"}
	exists := map[thing]bool{}
	for _, t := range pool {
		if exists[t] = random.IntN(4) > 0; exists[t] {
			obj := t.with(old)
			if t.gvk == widget {
				obj.Object["parts"] = drawParts(random, 1)
			}
			if random.IntN(12) == 0 {
				obj.SetFinalizers([]string{"example.com/slow"})
			}
			s.objects = append(s.objects, obj)
		}
	}
	transactions := 1
	if random.IntN(10) == 0 {
		transactions = 2 + random.IntN(2)
	}
	for range transactions {
		s.transactions = append(s.transactions, drawTransaction(random, exists))
	}
	if s.transactions[0].RevisionHistoryLimit != nil && random.IntN(2) == 0 {
		s.transactions = append(s.transactions, drawUndo(random))
	}
	return s
}

func drawTransaction(random *rand.Rand, exists map[thing]bool) api.TransactionSpec {
	spec := api.TransactionSpec{ServiceAccountName: "deployer"}
	there := map[thing]bool{}
	for t, is := range exists {
		there[t] = is
	}
	for n := range 1 + random.IntN(3) {
		t := pool[random.IntN(len(pool))]
		spec.Changes = append(spec.Changes, drawChange(random, t, there, n))
	}
	if random.IntN(5) < 2 {
		at := random.IntN(len(spec.Changes) + 1)
		refused := thing{configMap, "refused"}.change(api.Create, old)
		spec.Changes = append(spec.Changes[:at], append([]api.Change{refused}, spec.Changes[at:]...)...)
	}
	if random.IntN(4) == 0 {
		spec.ConflictPolicy = api.ConflictForce
	}
	if random.IntN(2) == 0 {
		spec.OnDelete = api.DeleteRollback
	}
	lockTimeout := api.Duration(fmt.Sprintf("%ds", 10+random.IntN(50)))
	timeout := api.Duration(fmt.Sprintf("%ds", 60+random.IntN(240)))
	spec.LockTimeout, spec.Timeout = &lockTimeout, &timeout
	if random.IntN(3) == 0 {
		limit := int32(1 + random.IntN(2)) //nolint:gosec // it is small
		spec.RevisionHistoryLimit = &limit
	}
	spec.DryRun = random.IntN(10) == 0
	if random.IntN(6) == 0 {
		spec.Approval = &api.Approval{Required: true}
	}
	return spec
}

// drawUndo makes an undo of the first Transaction.
func drawUndo(random *rand.Rand) api.TransactionSpec {
	spec := undoOf(0)
	if random.IntN(3) == 0 {
		spec.ConflictPolicy = api.ConflictForce
	}
	if random.IntN(2) == 0 {
		spec.OnDelete = api.DeleteRollback
	}
	limit := int32(random.IntN(3)) //nolint:gosec // it is small
	spec.RevisionHistoryLimit = &limit
	return spec
}

// undoOf is a Transaction that undoes another of the scenario. It is created once that has
// ended.
func undoOf(n int) api.TransactionSpec {
	return api.TransactionSpec{ServiceAccountName: "deployer", UndoOf: &api.UndoOf{Name: transactionName(n)}}
}

// drawParts makes a list with keys, in one order or another.
func drawParts(random *rand.Rand, size int64) []any {
	list := []any{}
	for _, n := range random.Perm(len(keys)) {
		if random.IntN(3) > 0 {
			list = append(list, part(keys[n], size))
		}
	}
	return list
}

func drawChange(random *rand.Rand, t thing, there map[thing]bool, n int) api.Change {
	value := func() string { return fmt.Sprintf("new-%d", n) }
	values := map[string]string{}
	for _, key := range keys {
		if random.IntN(2) == 0 {
			values[key] = value()
		}
	}
	kind := api.Create
	if there[t] || random.IntN(20) == 0 {
		kind = []api.ChangeType{api.Patch, api.Patch, api.Update, api.Delete}[random.IntN(4)]
	}
	there[t] = kind != api.Delete
	c := t.change(kind, values)
	if t.gvk == widget && kind != api.Delete {
		c.Content = raw(map[string]any{"data": t.data(values), "parts": drawParts(random, int64(10+n))})
	}
	if kind == api.Patch && random.IntN(8) == 0 {
		no := false
		c.Force = &no
	}
	return c
}

// small are the workloads of which every plan is run. Those whose names end in "back" are
// rolled back, the one that is tried is planned, those that go on fail; the others commit.
func small() []scenario {
	alpha, beta, delta, epsilon := pool[0], pool[1], pool[3], pool[4]
	refused := thing{configMap, "refused"}.change(api.Create, old)
	news := map[string]string{"a": "new", "c": "new"}
	one := func(name string, objects []thing, changes ...api.Change) scenario {
		s := scenario{name: name, transactions: []api.TransactionSpec{{ServiceAccountName: "deployer", Changes: changes}}}
		for _, t := range objects {
			obj := t.with(old)
			if t.gvk == widget {
				obj.Object["status"] = map[string]any{"seen": "before"}
			}
			s.objects = append(s.objects, obj)
		}
		return s
	}
	return slices.Concat(branched(one), taken(one), approved(one), activated(one), []scenario{
		one("patch", []thing{alpha}, alpha.change(api.Patch, news)),
		one("update", []thing{alpha}, alpha.change(api.Update, news)),
		one("create", nil, alpha.change(api.Create, news)),
		one("create-empty", nil, alpha.change(api.Create, nil)),
		one("delete", []thing{alpha}, alpha.change(api.Delete, nil)),
		one("patch-back", []thing{alpha}, alpha.change(api.Patch, news), refused),
		one("update-back", []thing{alpha}, alpha.change(api.Update, news), refused),
		one("create-back", nil, alpha.change(api.Create, news), refused),
		one("delete-back", []thing{alpha}, alpha.change(api.Delete, nil), refused),
		one("widget-delete-back", []thing{epsilon}, epsilon.change(api.Delete, nil), refused),
		one("widget", []thing{epsilon}, epsilon.change(api.Patch, news)),
		one("widget-back", []thing{epsilon}, epsilon.change(api.Patch, news), refused),
		one("secret-back", []thing{delta}, delta.change(api.Patch, news), refused),
		one("chain", []thing{alpha}, alpha.change(api.Patch, news), alpha.change(api.Patch, map[string]string{"a": "newer"})),
		one("patch-delete-back", []thing{alpha}, alpha.change(api.Patch, news), alpha.change(api.Delete, nil), refused),
		one("chain-back", []thing{alpha}, alpha.change(api.Patch, news), alpha.change(api.Patch, map[string]string{"a": "newer"}), refused),
		one("unchanged", []thing{alpha}, alpha.change(api.Patch, map[string]string{"a": "old-a"}), beta.change(api.Delete, nil)),
		one("unchanged-back", []thing{alpha, beta}, alpha.change(api.Patch, map[string]string{"a": "old-a"}), beta.change(api.Update, old), refused),
		undone(one("unchanged-undone", []thing{alpha}, alpha.change(api.Update, old))),
		remembered(one("remembered", []thing{alpha}, alpha.change(api.Patch, news))),
		undone(goingOn(one("continues-undone", []thing{alpha, beta}, alpha.change(api.Patch, news), refused, beta.change(api.Delete, nil)))),
		undone(one("patch-undone", []thing{alpha}, alpha.change(api.Patch, news))),
		undone(one("create-undone", nil, alpha.change(api.Create, news))),
		undone(one("secret-delete-undone", []thing{delta}, delta.change(api.Delete, nil))),
		allUndone(one("twice-undone", []thing{alpha}, alpha.change(api.Patch, map[string]string{"a": "new"})), alpha.change(api.Patch, map[string]string{"c": "newer"})),
		one("two", []thing{alpha, beta}, alpha.change(api.Patch, news), beta.change(api.Update, news)),
		tried(one("tried", []thing{alpha, delta}, alpha.change(api.Patch, news), delta.change(api.Patch, news), beta.change(api.Create, news), alpha.change(api.Delete, nil))),
	})
}

// remembered has the Transactions of a scenario remembered.
func remembered(s scenario) scenario {
	limit := int32(1)
	for i := range s.transactions {
		s.transactions[i].RevisionHistoryLimit = &limit
	}
	return s
}

// tried makes the Transaction of a small workload one that is to be tried only.
func tried(s scenario) scenario {
	s.transactions[0].DryRun = true
	return s
}

// undone has the Transaction of a scenario remembered, and undone.
func undone(s scenario) scenario {
	s = remembered(s)
	s.transactions = append(s.transactions, undoOf(0))
	return s
}

// allUndone has a scenario go on with another Transaction, and both undone at once.
func allUndone(s scenario, changes ...api.Change) scenario {
	s.transactions = append(s.transactions, api.TransactionSpec{ServiceAccountName: "deployer", Changes: changes})
	s = remembered(s)
	limit, to := int32(2), int64(0)
	for i := range s.transactions {
		s.transactions[i].RevisionHistoryLimit = &limit
	}
	s.transactions = append(s.transactions, api.TransactionSpec{ServiceAccountName: "deployer", UndoOf: &api.UndoOf{ToRevision: &to}})
	return s
}

// end is how a small workload ends if nothing happens.
func (s scenario) end() api.Phase {
	switch {
	case strings.HasSuffix(s.name, "back"):
		return api.PhaseRolledBack
	case strings.HasPrefix(s.name, "never-restored"):
		return api.PhaseFailed
	case s.transactions[0].DryRun:
		return api.PhasePlanned
	case s.transactions[0].OnFailure == api.FailureContinue:
		return api.PhaseFailed
	}
	return api.PhaseCommitted
}
