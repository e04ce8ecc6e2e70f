package wiring

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
	"janus.io/janus/snapshot"
)

// Changes makes the changes of items by mutate's strategies.
type Changes struct {
	*shared
}

// Do makes the change of an intent.
func (c *Changes) Do(ctx context.Context, in engine.Intent) error {
	s, err := c.session(ctx, in.Transaction())
	if err != nil {
		return err
	}
	if err := s.samePerson(); err != nil {
		return err
	}
	i := in.Index()
	content, err := s.content(ctx, i)
	if errors.Is(err, errNotAnObject) {
		return errclass.New(errclass.Terminal, errclass.Invalid, "decode", in.Item().Target.String(), "%w", err)
	}
	if err != nil {
		return err
	}
	change, err := s.changeOf(i, content)
	if err != nil {
		return err
	}
	change.Options = s.options(i)
	change.Fences = mutate.Fences{Confirm: in.Confirm, MayCreate: in.MayCreate, Fresh: in.Fresh()}
	strategy, err := strategyFor(in.Change().Type, change)
	if err != nil {
		return err
	}
	done, err := strategy.Do(ctx, change, s.baseline(i))
	if err != nil {
		verbs, _ := strategy.Verbs()
		return s.bear(ctx, i, s.explainDenied(ctx, change, verbs, err))
	}
	if done.Created != "" {
		in.Made(done.Created)
	}
	if done.Unchanged {
		in.Unchanged()
	}
	if done.Target != nil {
		s.written.put(s.txn.UID, change.Ref.ID(), done.Target)
	}
	warn(in, done.Warnings)
	return nil
}

// warn passes on what was not foretold.
func warn(in engine.Intent, warnings []string) {
	if len(warnings) == 0 {
		return
	}
	before := in.Item().Warnings
	in.Warn(slices.DeleteFunc(warnings, func(text string) bool {
		return slices.Contains(before, plan.WithWarnings(nil, []string{mutate.Foretold(text)}, 0)[0])
	}))
}

// Observe checks whether the change of an intent is in effect.
func (c *Changes) Observe(ctx context.Context, in engine.Intent) (outcome.Finding, error) {
	r, err := c.recall(ctx, in)
	if err != nil {
		return outcome.Diverged, err
	}
	r.effect.Undoing = in.Item().State == api.ItemRollingBack
	finding, err := r.strategy.Observe(ctx, r.change, r.effect)
	if err == nil && finding == outcome.Applied && !r.effect.Undoing {
		r.look(ctx, in)
	}
	return finding, r.explainDenied(ctx, r.change, []string{"get"}, err)
}

// look finds out what is to be warned of about a change whose answer nobody has: the
// process that sent it has died, or the answer was lost. What cannot be read now is not
// warned of.
func (r recalled) look(ctx context.Context, in engine.Intent) {
	content, err := r.content(ctx, in.Index())
	if err != nil || content == nil {
		return
	}
	change := r.change
	change.Content = content
	if live, err := mutate.Read(ctx, change); err == nil && live != nil && change.Marked(live) {
		warn(in, change.Warnings(ctx, live))
	}
}

// Undo compensates the change of an intent. Where nothing was written, there is nothing to undo.
func (c *Changes) Undo(ctx context.Context, in engine.Intent) (outcome.Undone, error) {
	if in.Item().Unchanged {
		return outcome.Undone{}, nil
	}
	r, err := c.recall(ctx, in)
	if err != nil {
		return outcome.Undone{}, err
	}
	t := r.txn
	r.effect.Overwrite = t.Spec.ConflictPolicy == api.ConflictForce && plan.Unchanged(t) && len(in.Item().Conflicts) > 0
	r.effect.Seen, r.effect.Settled = r.written.take(t.UID, r.change.Ref.ID()), in.Last()
	r.change.Fences = mutate.Fences{
		Confirm: in.Confirm, MayCreate: in.MayCreate, Restored: in.Restored,
		Fresh: in.Fresh() && t.Status.Recoveries == 0 && t.Status.HandledRecovery == "", // An earlier attempt may have re-created it.
	}
	if err := in.Confirm(ctx, false); err != nil {
		return outcome.Undone{}, err
	}
	undone, err := r.strategy.Undo(ctx, r.change, r.effect)
	_, verbs := r.strategy.Verbs()
	return undone, r.explainDenied(ctx, r.change, append(verbs, "get"), err)
}

// recalled is what is needed to look at a change or to roll it back.
type recalled struct {
	session
	change   mutate.Change
	strategy mutate.Strategy
	effect   mutate.Effect
}

// recall puts together what is needed to undo a change. It all comes from the
// before-image, which is checked against its digest, and nothing from the spec. A
// ServiceAccount that was re-created under its name will do: otherwise nobody could
// finish what was begun.
func (c *Changes) recall(ctx context.Context, in engine.Intent) (recalled, error) {
	t, i := in.Transaction(), in.Index()
	record, err := session{shared: c.shared, txn: t}.record(ctx, i)
	if err != nil {
		return recalled{}, err
	}
	s, err := c.session(ctx, t)
	if err != nil {
		return recalled{}, err
	}
	change, err := s.changeOf(i, nil)
	if err != nil {
		return recalled{}, err
	}
	if err := sameTarget(record, change); err != nil {
		return recalled{}, err
	}
	effect := mutate.Effect{
		Record: record, Created: cmp.Or(in.Item().CreatedUID, in.Item().RecreatedUID), Recreated: recreated(t, i, change.Ref),
	}
	if t.Status.StartTime != nil {
		effect.Began = t.Status.StartTime.Time
	}
	strategy, err := strategyFor(api.ChangeType(record.Type), change)
	return recalled{session: s, change: change, strategy: strategy, effect: effect}, err
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
		if err == nil && later.ID() == ref.ID() && plan.Deletes(t, j) {
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
