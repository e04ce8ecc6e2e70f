package adapter

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/fault"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
	"janus.io/janus/snapshot"
)

// Changes makes the changes of items by mutate's strategies.
type Changes struct {
	clients  *target.Clients
	resolver *target.Resolver
	store    *snapshot.Store
	images   *images
}

// Do makes the change of an intent.
func (c *Changes) Do(ctx context.Context, in engine.Intent) error {
	t, i := in.Transaction(), in.Index()
	id, err := c.clients.As(ctx, accountOf(t))
	if err != nil {
		return err
	}
	if err := samePerson(t, id); err != nil {
		return err
	}
	content, err := contentOf(in.Change())
	if err != nil {
		return fault.New(fault.Terminal, fault.Invalid, "decode", engine.Describe(in.Item().Target), "%w", err)
	}
	change, err := changeOf(t, i, content, id, c.store)
	if err != nil {
		return err
	}
	strategy, err := strategyFor(in.Change().Type, change)
	if err != nil {
		return err
	}
	verbs, _ := strategy.Verbs()
	return explainDenied(ctx, id, change, verbs, strategy.Do(ctx, change, c.baseline(t, i)))
}

// baseline is what a write must meet. Its image is read only when the write met
// something else.
func (c *Changes) baseline(t *api.Transaction, i int) mutate.Baseline {
	before := t.Status.Items[i].Before
	return mutate.Baseline{
		Version: mutate.Version{UID: before.UID, ResourceVersion: before.ResourceVersion},
		Image: func(ctx context.Context) (*unstructured.Unstructured, error) {
			record, err := c.record(ctx, t, i)
			return record.Before, err
		},
	}
}

// Observe looks whether the change of an intent is in effect.
func (c *Changes) Observe(ctx context.Context, in engine.Intent) (engine.Finding, error) {
	r, err := c.recall(ctx, in)
	if err != nil {
		return engine.Diverged, err
	}
	finding, err := r.strategy.Observe(ctx, r.change, r.record)
	return map[mutate.Finding]engine.Finding{
		mutate.NotApplied: engine.NotApplied, mutate.Applied: engine.Applied,
		mutate.Applying: engine.Applying, mutate.Diverged: engine.Diverged,
	}[finding], explainDenied(ctx, r.id, r.change, []string{"get"}, err)
}

// Undo takes the change of an intent back.
func (c *Changes) Undo(ctx context.Context, in engine.Intent) error {
	r, err := c.recall(ctx, in)
	if err != nil {
		return err
	}
	_, verbs := r.strategy.Verbs()
	return explainDenied(ctx, r.id, r.change, append(verbs, "get"), r.strategy.Undo(ctx, r.change, r.record))
}

// recalled is what is needed to look at a change or to take it back.
type recalled struct {
	id       *target.Identity
	change   mutate.Change
	strategy mutate.Strategy
	record   snapshot.Record
}

// recall puts together what is needed to take a change back. It all comes from the
// before-image, which is checked against its digest, and nothing from the spec. A
// ServiceAccount that was re-created under its name will do: otherwise nobody could
// finish what was begun.
func (c *Changes) recall(ctx context.Context, in engine.Intent) (recalled, error) {
	t, i := in.Transaction(), in.Index()
	record, err := c.record(ctx, t, i)
	if err != nil {
		return recalled{}, err
	}
	id, err := c.clients.As(ctx, accountOf(t))
	if err != nil {
		return recalled{}, err
	}
	change, err := changeOf(t, i, nil, id, c.store)
	if err != nil {
		return recalled{}, err
	}
	if record.Target.Key() != change.Ref.Key() {
		return recalled{}, fault.New(fault.Terminal, fault.BeforeImageTampered, "restore", change.Ref.String(),
			"the before-image is of another object, %s", record.Target)
	}
	change.Recreated = recreated(t, i, change.Ref)
	change.OwnerThere = c.ownerThere(id, change.Ref.Namespace)
	change.Contents = c.contentsOf(id, change.Ref.GVK.GroupKind())
	strategy, err := strategyFor(api.ChangeType(record.Type), change)
	return recalled{id: id, change: change, strategy: strategy, record: record}, err
}

// recreated reports whether a later item deleted the target of item i and has been
// taken back.
func recreated(t *api.Transaction, i int, ref target.Ref) bool {
	for j := i + 1; j < len(t.Status.Items) && j < len(t.Spec.Changes); j++ {
		later, err := refOf(t.Status.Items[j])
		if err == nil && later.Key() == ref.Key() && t.Spec.Changes[j].Type == api.Delete && t.Status.Items[j].State == api.ItemRolledBack {
			return true
		}
	}
	return false
}

// ownerThere looks for owners as the ServiceAccount. One that it may not see, or
// whose kind is not served, is taken to be there: it cannot be told.
func (c *Changes) ownerThere(id *target.Identity, namespace string) func(context.Context, metav1.OwnerReference) (bool, error) {
	return func(ctx context.Context, owner metav1.OwnerReference) (bool, error) {
		ref, err := c.resolver.ResolveOwner(owner, namespace)
		if fault.Is(err, fault.KindNotFound) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		live, err := id.Resource(ref).Get(ctx, owner.Name, metav1.GetOptions{})
		switch {
		case fault.Is(err, fault.NotFound):
			return false, nil
		case fault.Is(err, fault.AccessDenied):
			return true, nil
		case err != nil:
			return false, fault.Wrap(err, "read the owner", ref.String(), false)
		default:
			return live.GetUID() == owner.UID, nil
		}
	}
}

func strategyFor(kind api.ChangeType, c mutate.Change) (mutate.Strategy, error) {
	strategy, ok := mutate.For(kind)
	if !ok {
		return nil, fault.New(fault.Terminal, fault.Invalid, "find the strategy for", c.Ref.String(), "unknown type of change %q", kind)
	}
	return strategy, nil
}

func (c *Changes) record(ctx context.Context, t *api.Transaction, i int) (snapshot.Record, error) {
	before, ref := t.Status.Items[i].Before, t.Status.RollbackRef
	if before == nil || ref == nil {
		return snapshot.Record{}, fault.New(fault.Terminal, fault.BeforeImageLost, "read the before-image of",
			engine.Describe(t.Status.Items[i].Target), "the status names none")
	}
	return c.images.reader(c.store, t).Load(ctx, *before)
}

// images keeps a reader of before-images for each Transaction that needs them, so
// that a rollback of many items reads each object once.
type images struct {
	mu      sync.Mutex
	readers map[types.UID]imagesOf
}

type imagesOf struct {
	objects int
	reader  *snapshot.Reader
}

func newImages() *images { return &images{readers: map[types.UID]imagesOf{}} }

func (m *images) reader(store *snapshot.Store, t *api.Transaction) *snapshot.Reader {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(t.Status.RollbackRef.Objects)
	if known, ok := m.readers[t.UID]; ok && known.objects == n {
		return known.reader
	}
	fresh := imagesOf{objects: n, reader: store.Open(ownerOf(t), *t.Status.RollbackRef)}
	m.readers[t.UID] = fresh
	return fresh.reader
}

func (m *images) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.readers, uid)
}
