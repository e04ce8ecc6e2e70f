package plan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
)

func TestWhatNeedsNoDependsOn(t *testing.T) {
	txn := fixture.Transaction("ns", "crd", "widget", "inside", "free")
	set := func(i int, kind api.ChangeType, target api.Target) {
		txn.Spec.Changes[i].Type, txn.Spec.Changes[i].Target = kind, target
	}
	set(0, api.Create, api.Target{APIVersion: "v1", Kind: "Namespace", Name: "new"})
	set(1, api.Create, api.Target{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "widgets.example.com"})
	set(2, api.Create, api.Target{APIVersion: "example.com/v1", Kind: "Widget", Name: "w"})
	set(3, api.Create, api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "new", Name: "c"})
	txn.Spec.Changes[0].DependsOn = []string{"free"}
	needs, err := needsOf(txn)
	require.NoError(t, err)
	assert.Equal(t, [][]int{{4}, nil, {1}, {0}, nil}, needs)
	order, err := Order(txn)
	require.NoError(t, err)
	assert.Equal(t, []int{4, 0, 1, 2, 3}, order)
}

// Any acyclic graph is gone through in an order that it allows, the same each time.
func TestTheOrderOfAnyGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}[:rapid.IntRange(1, 8).Draw(t, "changes")]
		shuffled := rapid.Permutation(names).Draw(t, "list")
		txn := fixture.Transaction(shuffled...)
		for i, c := range txn.Spec.Changes {
			for _, name := range names[:slices.Index(names, c.Name)] {
				if rapid.Bool().Draw(t, c.Name+" needs "+name) {
					txn.Spec.Changes[i].DependsOn = append(txn.Spec.Changes[i].DependsOn, name)
				}
			}
		}
		order, err := Order(txn)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, i := range order {
			for _, name := range txn.Spec.Changes[i].DependsOn {
				if !seen[name] {
					t.Fatalf("%s comes before %s, which it depends on: %v of %v", txn.Spec.Changes[i].Name, name, order, shuffled)
				}
			}
			seen[txn.Spec.Changes[i].Name] = true
		}
		if len(seen) != len(names) {
			t.Fatalf("%v of %v", order, shuffled)
		}
		if again, _ := Order(txn); !slices.Equal(order, again) {
			t.Fatalf("%v, and then %v", order, again)
		}
	})
}

func withItems(t *api.Transaction) *api.Transaction {
	t = t.DeepCopy()
	t.Status.Items = make([]api.Item, len(t.Spec.Changes))
	return t
}

// What is refused as long as another change is not in effect waits for that and for all
// before it, any of which may be the reason as well, and the order stays as it is.
func TestADeferredChangeWaitsForAllUpToTheOneThatMayBeTheReason(t *testing.T) {
	txn := withItems(fixture.Transaction("a", "b", "c", "d", "e"))
	txn.Spec.Order = api.OrderGraph
	for i := range txn.Status.Items {
		txn.Status.Items[i].Target = txn.Spec.Changes[i].Target
	}
	before := ScheduleOf(txn)
	txn.Status.Items[3].DeferredBy = "b"
	after := ScheduleOf(txn)
	assert.Equal(t, before.Order, after.Order)
	assert.Equal(t, []int{0, 1}, after.needs[3])
	assert.Empty(t, after.needs[4])
	assert.Equal(t, []int{0, 1, 2, 4}, Preparable(txn), "its before-image is taken when its turn comes")

	txn.Status.Items[0].DeferredBy = "e" // as another client may have written it
	assert.Equal(t, before.Order, ScheduleOf(txn).Order)
	assert.Empty(t, ScheduleOf(txn).needs[0])
}

func TestWhichChangeIsTheLastWhateverHappens(t *testing.T) {
	txn := withItems(fixture.Transaction("d", "c", "b", "a"))
	for i, want := range []bool{false, false, false, true} {
		assert.Equal(t, want, IsLast(txn, i), "item %d of a list", i)
	}
	for name, needs := range map[string][]string{"d": {"b", "c"}, "b": {"a"}, "c": {"a"}} {
		change(&txn.Spec, name).DependsOn = needs
	}
	for i, want := range []bool{true, false, false, false} {
		assert.Equal(t, want, IsLast(txn, i), "item %d of a diamond", i)
	}
	wait(&txn.Spec, "d")
	assert.False(t, IsLast(txn, 0), "it may not become ready")
	change(&txn.Spec, "d").DependsOn = []string{"b"}
	change(&txn.Spec, "d").ReadyWhen = nil
	assert.False(t, IsLast(txn, 0), "c may come after it")
}

func TestASourceMayBeChangedOnlyAfterItsContentIsUsed(t *testing.T) {
	source := api.Target{APIVersion: "v1", Kind: "ConfigMap", Name: "source"}
	txn := withItems(fixture.Transaction("first", "uses", "last", "own"))
	for i := range txn.Spec.Changes {
		txn.Spec.Changes[i].Target.Name = txn.Spec.Changes[i].Name
	}
	txn.Spec.Changes[0].Target, txn.Spec.Changes[2].Target = source, source
	txn.Spec.Changes[2].Target.Namespace = txn.Namespace
	from := &api.ContentSource{ConfigMapKeyRef: &api.ContentKey{Name: "source", Key: "key"}}
	txn.Spec.Changes[1].ContentFrom = from
	assert.Equal(t, []int{-1, 0, -1, -1}, SourcesChanged(txn))
	txn.Spec.Changes[0].Type = api.Await
	assert.Equal(t, []int{-1, -1, -1, -1}, SourcesChanged(txn), "it may be waited for")
	txn.Spec.Changes[0].Type = api.Patch
	txn.Status.Items[0].State = api.ItemSkipped
	assert.Equal(t, []int{-1, -1, -1, -1}, SourcesChanged(txn), "what is skipped changes nothing")
	txn.Spec.Order = api.OrderGraph
	assert.Equal(t, []int{-1, 2, -1, -1}, SourcesChanged(txn), "nothing says which comes first")
	txn.Spec.Changes[2].DependsOn = []string{"uses"}
	assert.Equal(t, []int{-1, -1, -1, -1}, SourcesChanged(txn))
	txn.Spec.Changes[1].ContentFrom = &api.ContentSource{SecretKeyRef: &api.ContentKey{Name: "source", Key: "key"}}
	txn.Spec.Changes[2].DependsOn = nil
	assert.Equal(t, []int{-1, -1, -1, -1}, SourcesChanged(txn), "a Secret of that name is another object")
	txn.Spec.Changes[1].ContentFrom, txn.Spec.Changes[2].ContentFrom = nil, from
	assert.Equal(t, []int{-1, -1, -1, -1}, SourcesChanged(txn), "its own target is changed once its content was used")
}

// Of a list, none is next while one before it is under way, though the one right before it is skipped.
func TestTheNextOfAListWaitsForAllBefore(t *testing.T) {
	txn := with(api.PhaseCommitting, api.ItemCommitting, api.ItemCommitting, api.ItemSkipped, api.ItemPrepared)
	assert.Equal(t, -1, ScheduleOf(txn).Next(txn.Status.Items))
	SetItemState(&txn.Status.Items[0], api.ItemCommitted)
	assert.Equal(t, -1, ScheduleOf(txn).Next(txn.Status.Items))
	SetItemState(&txn.Status.Items[1], api.ItemCommitted)
	assert.Equal(t, 3, ScheduleOf(txn).Next(txn.Status.Items))
}
