package random

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/test/harness"
)

// tampering is what another client does, at a moment of a Transaction, to what Janus
// keeps or goes by: before-images, the owners of a target's fields, locks.
type tampering struct {
	w    *fuzzWorld
	what string
	// moment is "do 1", "undo 0", "undo" for the first, or "checkpoint 4".
	moment string
	pick   int
	act    func(x *tampering, txn *api.Transaction) error

	mu          sync.Mutex
	done        bool
	failed      error
	checkpoints int
	// warm is set once a before-image may have been read before the act.
	warm bool
	// dirty are the items whose before-image is not what was saved any more.
	dirty map[int]bool
	// versions are those of the targets when the first was about to be rolled back.
	versions map[int]string
}

func (x *tampering) String() string {
	if x == nil {
		return ""
	}
	return x.what
}

// reached acts if it is the moment. It reports problems later: it is called from
// within Janus.
func (x *tampering) reached(ctx context.Context, moments ...string) {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done || !slices.Contains(moments, x.moment) {
		return
	}
	txn, err := x.w.transaction(ctx)
	if err != nil || txn == nil {
		x.failed = err
		return
	}
	x.done = true
	x.failed = x.act(x, txn)
}

// turning notes what the targets are like when the first is about to be rolled back.
func (x *tampering) turning(ctx context.Context) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.versions != nil {
		return
	}
	x.versions = map[int]string{}
	if txn, err := x.w.transaction(ctx); err == nil && txn != nil {
		for i := range txn.Status.Items {
			x.versions[i] = x.w.versionOf(ctx, txn.Status.Items[i].Target)
		}
	}
}

func (x *tampering) warmed() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.warm = x.warm || !x.done
}

// witnessed puts the moments of a tampering around the changes.
type witnessed struct {
	engine.Changes
	w *fuzzWorld
}

func (c witnessed) Do(ctx context.Context, in engine.Intent) error {
	c.w.tamper.reached(ctx, fmt.Sprint("do ", in.Index()))
	return c.Changes.Do(ctx, in)
}

func (c witnessed) Observe(ctx context.Context, in engine.Intent) (outcome.Finding, error) {
	if x := c.w.tamper; x != nil {
		x.warmed()
	}
	return c.Changes.Observe(ctx, in)
}

func (c witnessed) Undo(ctx context.Context, in engine.Intent) (outcome.Undone, error) {
	if x := c.w.tamper; x != nil {
		x.turning(ctx)
		x.reached(ctx, "undo", fmt.Sprint("undo ", in.Index()))
		x.warmed()
	}
	return c.Changes.Undo(ctx, in)
}

func (w *fuzzWorld) watching() []harness.Option {
	return []harness.Option{
		harness.WithChanges(func(inner engine.Changes) engine.Changes { return witnessed{inner, w} }),
		harness.Recording(harness.Journaling{After: func(*api.Transaction) {
			if x := w.tamper; x != nil {
				x.mu.Lock()
				n := x.checkpoints
				x.checkpoints++
				x.mu.Unlock()
				x.reached(w.Context(), fmt.Sprint("checkpoint ", n))
			}
		}}),
	}
}

// check: what was tampered with is not written from, and the Transaction says so.
func (x *tampering) check(t *rapid.T, w *fuzzWorld, txn *api.Transaction) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed != nil {
		t.Fatalf("%s: %v", x.what, x.failed)
	}
	for i, item := range txn.Status.Items {
		if !x.dirty[i] || x.warm || x.versions == nil || item.State == api.ItemRejected || item.State == api.ItemPending || item.State == api.ItemPrepared {
			continue
		}
		if item.State != api.ItemUnresolved || item.Reason != errclass.BeforeImageTampered && item.Reason != errclass.BeforeImageLost {
			t.Fatalf("item %d is %s %s, although its before-image is not what was saved", i, item.State, item.Reason)
		}
		if now := w.versionOf(w.Context(), item.Target); !x.shared(txn, i) && now != x.versions[i] {
			t.Fatalf("the target of item %d was written: it was at %s and is at %s", i, x.versions[i], now)
		}
	}
}

// shared reports whether another item changes the target too.
func (x *tampering) shared(txn *api.Transaction, i int) bool {
	return slices.ContainsFunc(txn.Status.Items, func(other api.Item) bool {
		return other.Name != txn.Status.Items[i].Name && other.Target == txn.Status.Items[i].Target
	})
}

// drawTampering draws who does what when.
func (w *fuzzWorld) drawTampering(t *rapid.T, items int) *tampering {
	names := everyKey(tamperings, nil)
	x := &tampering{w: w, dirty: map[int]bool{}, what: rapid.SampledFrom(names).Draw(t, "tampering"), pick: rapid.IntRange(0, 5).Draw(t, "pick")}
	x.act = tamperings[x.what]
	n := rapid.IntRange(0, items-1).Draw(t, "item")
	x.moment = rapid.SampledFrom([]string{"undo", "undo", "undo", fmt.Sprint("undo ", n), fmt.Sprint("do ", n), fmt.Sprint("do ", n), fmt.Sprint("checkpoint ", 2+n), fmt.Sprint("checkpoint ", 5+n)}).Draw(t, "moment")
	return x
}

// drawPlain draws a spec that nothing is wrong with, over objects that are there.
func drawPlain(t *rapid.T, n int, namespace, other string) *fuzzedSpec {
	s := &fuzzedSpec{n: n, namespace: namespace, other: other, spec: map[string]any{"timeout": "4s"}, named: map[string]bool{}}
	var changes []any
	gone := map[string]bool{}
	for i := range rapid.IntRange(1, 4).Draw(t, "changes") {
		k := rapid.SampledFrom([]string{"ConfigMap", "Secret", "Widget", "Service"}).Draw(t, "kind")
		at := slices.IndexFunc(fuzzedKinds, func(f fuzzedKind) bool { return f.kind == k })
		name, how := fmt.Sprint("there-", n), rapid.SampledFrom([]string{"Patch", "Patch", "Update", "Delete", "Create"}).Draw(t, "type")
		if how == "Create" || gone[k] {
			name, how = fmt.Sprintf("made%d-%d", i, n), "Create"
		}
		gone[k] = gone[k] || how == "Delete"
		s.name(fuzzedKinds[at].apiVersion, k, name, "")
		change := map[string]any{"type": how, "target": map[string]any{"apiVersion": fuzzedKinds[at].apiVersion, "kind": k, "name": name}}
		if how != "Delete" {
			content := map[string]any{}
			if how != "Patch" {
				content = decoded(fuzzedKinds[at].base).(map[string]any)
			}
			put(content, "metadata.labels.l", fmt.Sprint("v", i))
			change["content"] = content
		}
		changes = append(changes, change)
	}
	if rapid.IntRange(0, 4).Draw(t, "refused") > 0 {
		s.name("v1", "ConfigMap", fmt.Sprint("refused-", n), "")
		changes = append(changes, decoded(fmt.Sprintf(`{"target":{"apiVersion":"v1","kind":"ConfigMap","name":"refused-%d"},"type":"Create","content":{}}`, n)))
	}
	s.spec["changes"] = changes
	if rapid.Bool().Draw(t, "force") {
		s.spec["conflictPolicy"] = "Force"
	}
	s.drawSources(t, false)
	return s
}

// transaction is the one of the case at hand.
func (w *fuzzWorld) transaction(ctx context.Context) (*api.Transaction, error) {
	return w.read(ctx, fmt.Sprint("fuzz-", w.cases))
}

// versionOf is the version of a target; empty if it does not exist.
func (w *fuzzWorld) versionOf(ctx context.Context, target api.Target) string {
	client, err := w.For(schema.FromAPIVersionAndKind(target.APIVersion, target.Kind), target.Namespace)
	if err != nil {
		return err.Error()
	}
	obj, err := client.Get(ctx, target.Name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return string(obj.GetUID()) + " " + obj.GetResourceVersion()
}
