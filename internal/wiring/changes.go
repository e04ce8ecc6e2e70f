package wiring

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/outcome"
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
	types    *openapi.Types
	parallel int
	written  *written
	patience *patience
}

// change makes the change of an item for the strategies.
func (c *Changes) change(t *api.Transaction, i int, content map[string]any, id *target.Identity) (mutate.Change, error) {
	return changeOf(t, i, content, id, c.store, c.types, c.resolver)
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
	content, err := c.contentFor(ctx, t, i)
	if errors.Is(err, errNotAnObject) {
		return errclass.New(errclass.Terminal, errclass.Invalid, "decode", in.Item().Target.String(), "%w", err)
	}
	if err != nil {
		return err
	}
	change, err := c.change(t, i, content, id)
	if err != nil {
		return err
	}
	change = asked(change, t, i)
	change.Dependants = dependantsOf(c.resolver, id, change.Ref, c.parallel)
	change.OwnerRefs = c.ownerRefsOf(t, i, id)
	change.Confirm, change.MayCreate, change.Made, change.Fresh = in.Confirm, in.MayCreate, in.Made, in.Fresh()
	if before := t.Status.Items[i].Before; before != nil {
		change.Idle = before.Unchanged
	}
	change.Wrote = func(obj *unstructured.Unstructured) { c.written.put(t.UID, change.Ref.ID(), obj) }
	change.Warn = warner(in)
	strategy, err := strategyFor(in.Change().Type, change)
	if err != nil {
		return err
	}
	verbs, _ := strategy.Verbs()
	return c.patience.bear(ctx, t, i, nil, explainDenied(ctx, id, change, verbs, strategy.Do(ctx, change, c.baseline(t, i))))
}

// warner passes on what was not foretold.
func warner(in engine.Intent) func([]string) {
	before := in.Item().Warnings
	return func(warnings []string) {
		in.Warn(slices.DeleteFunc(warnings, func(text string) bool {
			return slices.Contains(before, plan.WithWarnings(nil, []string{mutate.Foretold(text)}, 0)[0])
		}))
	}
}

// baseline is what a write must meet. Its image is read only when the write met
// something else.
func (c *Changes) baseline(t *api.Transaction, i int) mutate.Baseline {
	before := t.Status.Items[i].Before
	if before == nil {
		before = &api.BeforeImage{} // A target that did not exist: nothing is written that did.
	}
	return mutate.Baseline{
		Version: mutate.Version{UID: before.UID, ResourceVersion: before.ResourceVersion},
		Image: func(ctx context.Context) (*unstructured.Unstructured, error) {
			record, err := c.record(ctx, t, i)
			return record.Before, err
		},
	}
}

// Observe checks whether the change of an intent is in effect.
func (c *Changes) Observe(ctx context.Context, in engine.Intent) (outcome.Finding, error) {
	r, err := c.recall(ctx, in)
	if err != nil {
		return outcome.Diverged, err
	}
	r.change.Undoing = in.Item().State == api.ItemRollingBack
	finding, err := r.strategy.Observe(ctx, r.change, r.record)
	if err == nil && finding == outcome.Applied && !r.change.Undoing {
		c.look(ctx, in, r.change)
	}
	return finding, explainDenied(ctx, r.id, r.change, []string{"get"}, err)
}

// look finds out what is to be warned of about a change whose answer nobody has: the
// process that sent it has died, or the answer was lost. What cannot be read now is not
// warned of.
func (c *Changes) look(ctx context.Context, in engine.Intent, change mutate.Change) {
	t, i := in.Transaction(), in.Index()
	content, err := c.contentFor(ctx, t, i)
	if err != nil || content == nil {
		return
	}
	change.Content, change.Warn = content, warner(in)
	if live, err := mutate.Read(ctx, change); err == nil && live != nil {
		change.WarnOf(ctx, live)
	}
}

// Undo compensates the change of an intent.
func (c *Changes) Undo(ctx context.Context, in engine.Intent) (outcome.Undone, error) {
	r, err := c.recall(ctx, in)
	if err != nil {
		return outcome.Undone{}, err
	}
	t := in.Transaction()
	r.change.Overwrite = t.Spec.ConflictPolicy == api.ConflictForce && plan.Unchanged(t) && len(in.Item().Conflicts) > 0
	r.change.Confirm, r.change.MayCreate = in.Confirm, in.MayCreate
	r.change.Seen = c.written.take(t.UID, r.change.Ref.ID())
	r.change.Fresh = in.Fresh() && t.Status.Recoveries == 0 && t.Status.HandledRecovery == "" // An earlier attempt may have re-created it.
	r.change.Settled = in.Last()
	if err := in.Confirm(ctx, false); err != nil {
		return outcome.Undone{}, err
	}
	undone, err := r.strategy.Undo(ctx, r.change, r.record)
	_, verbs := r.strategy.Verbs()
	return undone, explainDenied(ctx, r.id, r.change, append(verbs, "get"), err)
}

// recalled is what is needed to look at a change or to roll it back.
type recalled struct {
	id       *target.Identity
	change   mutate.Change
	strategy mutate.Strategy
	record   snapshot.Record
}

// recall puts together what is needed to undo a change. It all comes from the
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
	change, err := c.change(t, i, nil, id)
	if err != nil {
		return recalled{}, err
	}
	if err := sameTarget(record, change); err != nil {
		return recalled{}, err
	}
	change.Created, change.Recreated = cmp.Or(in.Item().CreatedUID, in.Item().RecreatedUID), recreated(t, i, change.Ref)
	change.OwnerRefs = c.ownerRefsOf(t, i, id)
	if t.Status.StartTime != nil {
		change.Began = t.Status.StartTime.Time
	}
	change.Contents = c.contentsOf(id, change.Ref.GVK.GroupKind())
	change.ContentsOf = func(kind schema.GroupKind) func(context.Context, *unstructured.Unstructured) (mutate.Contents, error) {
		return c.contentsOf(id, kind)
	}
	change.Dependants = dependantsOf(c.resolver, id, change.Ref, c.parallel)
	strategy, err := strategyFor(api.ChangeType(record.Type), change)
	return recalled{id: id, change: change, strategy: strategy, record: record}, err
}

func sameTarget(record snapshot.Record, change mutate.Change) error {
	if record.Target.ID() == change.Ref.ID() {
		return nil
	}
	return errclass.New(errclass.Terminal, errclass.BeforeImageTampered, "restore", change.Ref.String(),
		"the before-image is of another object, %s", record.Target)
}

// recreated returns the uid of the object that was made in place of the target of item
// i when the Delete that followed it was rolled back; empty if none was.
func recreated(t *api.Transaction, i int, ref target.Ref) types.UID {
	for j := i + 1; j < len(t.Status.Items) && j < len(t.Spec.Changes); j++ {
		later, err := refOf(t.Status.Items[j])
		if err == nil && later.ID() == ref.ID() && t.Spec.Changes[j].Type == api.Delete {
			return t.Status.Items[j].RecreatedUID
		}
	}
	return ""
}

func strategyFor(kind api.ChangeType, c mutate.Change) (mutate.Strategy, error) {
	strategy, ok := mutate.For(kind)
	if !ok {
		return nil, errclass.New(errclass.Terminal, errclass.Invalid, "find the strategy for", c.Ref.String(), "unknown type of change %q", kind)
	}
	return strategy, nil
}

func (c *Changes) record(ctx context.Context, t *api.Transaction, i int) (snapshot.Record, error) {
	before, ref := t.Status.Items[i].Before, t.Status.RollbackRef
	if before == nil || ref == nil {
		return snapshot.Record{}, imageLost(t, i)
	}
	return c.images.reader(c.store, t).Load(ctx, *before)
}

func imageLost(t *api.Transaction, i int) error {
	return errclass.New(errclass.Terminal, errclass.BeforeImageLost, "read the before-image of", t.Status.Items[i].Target.String(), "the status names none")
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
	owners  map[int]map[types.UID]bool // of items that have been asked about
}

func newImages() *images { return &images{readers: map[types.UID]imagesOf{}} }

func (m *images) reader(store *snapshot.Store, t *api.Transaction) *snapshot.Reader {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(t.Status.RollbackRef.Objects)
	if known, ok := m.readers[t.UID]; ok && known.objects == n {
		return known.reader
	}
	fresh := imagesOf{objects: n, reader: store.Open(ownerOf(t), *t.Status.RollbackRef), owners: map[int]map[types.UID]bool{}}
	m.readers[t.UID] = fresh
	return fresh.reader
}

func (m *images) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.readers, uid)
}
