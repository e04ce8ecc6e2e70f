package wiring

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/internal/target"
	"janus.io/janus/lockmgr"
	"janus.io/janus/mutate"
	"janus.io/janus/snapshot"
)

// Planner resolves, reads and tries changes, and keeps before-images.
type Planner struct {
	*shared
	late    staleness
	tried   *dryRunCache
	locks   *lockmgr.Manager
	history *History
	// imagesLimit is how many bytes the before-images of a Transaction may take.
	imagesLimit int64
	// waveBytes is how many of them are in memory until they are saved.
	waveBytes int
}

// Prepare reads the targets, tries those of their changes that the pre-flight has not
// tried on the same object, and saves the before-images. Several targets are worked on
// at once; all that is wrong is reported together.
func (p *Planner) Prepare(ctx context.Context, t *api.Transaction, items []int, lost func()) (engine.Prepared, error) {
	confirm := p.late.begin(t)
	s, err := p.session(ctx, t)
	if err != nil {
		return engine.Prepared{}, err
	}
	if err := s.samePerson(); err != nil {
		return engine.Prepared{}, err
	}
	known := p.tried.of(t.UID, s.id.UID)
	if s.undo, err = p.undoOf(ctx, t); err != nil {
		return engine.Prepared{}, err
	}
	s.load = fanout.NewLoad(loadBytes)
	c := &capture{
		session: s, items: items, known: earlier{tries: known}, most: p.waveBytes, prepared: make([]engine.PreparedItem, len(items)),
		save: func(ctx context.Context, ref *api.RollbackRef, records []snapshot.Encoded) (snapshot.Saved, error) {
			if err := confirm(ctx, false); err != nil {
				return snapshot.Saved{}, err
			}
			saved, err := p.store.Save(ctx, ownerOf(t), ref, records)
			if saved.Lost {
				lost()
			}
			return saved, err
		},
	}
	ref, err := c.run(ctx)
	if err != nil {
		return engine.Prepared{}, err
	}
	return engine.Prepared{Account: string(s.id.UID), Ref: ref, Items: c.prepared}, nil
}

// samePerson refuses to go forward as a ServiceAccount that was re-created.
func (s session) samePerson() error {
	pinned := s.txn.Status.ServiceAccountUID
	if pinned == "" || pinned == s.id.UID {
		return nil
	}
	return errclass.New(errclass.Terminal, errclass.ServiceAccountGone, "act as", "ServiceAccount "+s.id.Account.String(),
		"it was deleted and re-created while the Transaction ran").WithHint("create the Transaction again")
}

func ownerOf(t *api.Transaction) snapshot.Owner {
	return snapshot.Owner{Namespace: t.Namespace, Name: t.Name, UID: t.UID}
}

// seen is a target as it was read, and what a change would make of it.
type seen struct {
	change   mutate.Change
	before   *unstructured.Unstructured
	forecast mutate.Forecast
	// owners are those of the fields before the change that an undo rolls back.
	owners []metav1.ManagedFieldsEntry
	// put is to be called when the objects are not needed any more; nil for nothing.
	put func()
}

// done ends the work on the objects.
func (s seen) done() {
	if s.put != nil {
		s.put()
	}
}

// look reads the target of an item, unless it is known already, and tries its change, unless that
// was tried on the target as it is. What it returns is to be done with.
func (s session) look(ctx context.Context, i int, known earlier) (seen, error) {
	found, err := s.readItem(ctx, i, known)
	if err != nil {
		return seen{}, err
	}
	if found.change, _, err = found.change.Releasing(found.before); err != nil {
		return seen{}, err
	}
	size := found.size()
	if s.undo != nil {
		size *= 4 // The content follows from a before-image, which has three such objects.
	}
	if found.put, err = s.load.Take(ctx, size); err != nil {
		return seen{}, err
	}
	done := false
	defer func() {
		if !done {
			found.done()
		}
	}()
	forecast, ok := known.tries.at(i, mutate.VersionOf(found.before))
	if ok && s.undo == nil && !plan.DeletesInstead(s.txn, i) {
		found.forecast = forecast
	} else if err := s.foresee(ctx, i, &found); err != nil {
		return seen{}, err
	}
	done = true
	return found, nil
}

// size is about how many bytes the objects take.
func (s seen) size() int64 {
	n := sizeOf(s.change.Content)
	if s.before != nil {
		n += sizeOf(s.before.Object)
	}
	return int64(n)
}

// readItem reads the content and the target of an item.
func (s session) readItem(ctx context.Context, i int, known earlier) (seen, error) {
	put, err := s.load.Take(ctx, unread)
	if err != nil {
		return seen{}, err
	}
	defer put()
	spec := plan.ChangeOf(s.txn, i)
	content, err := s.sources.content(ctx, s.txn, i, s.id)
	if err != nil {
		return seen{}, err
	}
	change, err := s.changeOf(i, content)
	if err != nil {
		return seen{}, err
	}
	change.Options = s.options(i)
	if before, ok := known.before(i, change.Ref); ok {
		return seen{change: change, before: before}, stillThere(s.txn, i, change.Ref, before)
	}
	before, err := mutate.Read(ctx, change)
	if spec.Type == api.Create && change.Ref.Deferred && errclass.Is(err, errclass.KindNotFound) {
		return seen{}, errclass.New(errclass.Conflict, errclass.AlreadyExists, "create", change.Ref.String(), "it exists already, by another version of its kind").
			WithHint("use Patch or Update to change it; nothing of it was touched")
	}
	if errclass.Is(err, errclass.KindNotFound) && plan.DeletesInstead(s.txn, i) {
		err = s.unlessUnserved(change, err)
	}
	if err != nil {
		return seen{}, s.explainDenied(ctx, change, []string{"get"}, err)
	}
	return seen{change: change, before: before}, stillThere(s.txn, i, change.Ref, before)
}

// unlessUnserved passes an error on that a target of a kind which is not served was met with, unless
// the cluster serves that in no version: then there is nothing to delete.
func (s session) unlessUnserved(change mutate.Change, err error) error {
	if _, served, lookErr := s.resolver.Elsewhere(change.Ref); served || lookErr != nil {
		return cmp.Or(lookErr, err)
	}
	return nil
}

// foresee tries the change of an item.
func (s session) foresee(ctx context.Context, i int, found *seen) error {
	kind := plan.ChangeOf(s.txn, i).Type
	strategy, err := strategyFor(kind, found.change)
	if err != nil {
		return err
	}
	var notes []string
	if s.undo != nil {
		if found.change, found.owners, notes, err = s.invert(ctx, i, found.change, found.before); err != nil {
			return s.explainDenied(ctx, found.change, []string{"get"}, err)
		}
	}
	found.forecast, err = mutate.Foresee(ctx, strategy, found.change, s.ownership(found), found.before)
	if err != nil {
		verbs, _ := strategy.Verbs()
		return s.explainDenied(ctx, found.change, verbs, err)
	}
	if kind == api.Create {
		missing, err := s.unlistable(ctx, found.change.Ref)
		if err != nil {
			return err
		}
		notes = append(notes, missing...)
	}
	found.forecast.Warnings = append(notes, found.forecast.Warnings...)
	return nil
}

// stillThere makes sure that a target which an earlier item has changed is still that
// object: with another one that change would be lost.
func stillThere(t *api.Transaction, i int, ref target.Ref, now *unstructured.Unstructured) error {
	for j := i - 1; j >= 0; j-- {
		earlier, err := refOf(t.Status.Items[j])
		if err != nil {
			return err
		}
		if earlier.ID() != ref.ID() || !t.Status.Items[j].Changes() {
			continue
		}
		kind, before := plan.ChangeOf(t, j).Type, t.Status.Items[j].Before
		if kind == api.Create || kind == api.Delete || before == nil || now != nil && now.GetUID() == before.UID {
			return nil
		}
		return errclass.New(errclass.Conflict, errclass.Drifted, "read", ref.String(),
			"another client has deleted it, or deleted and re-created it, since item %s changed it", t.Status.Items[j].Name).
			WithHint("create the Transaction again if it is still wanted")
	}
	return nil
}

// Discard drops the before-images of a Transaction, or lets them live as long as
// it does. A checkpoint that names some may have been lost, so the names that they
// would have are looked at too, unless there can be no others.
func (p *Planner) Discard(ctx context.Context, t *api.Transaction, keep bool, search engine.Search) error {
	p.Forget(t)
	owner, ref := ownerOf(t), t.Status.RollbackRef
	if ref == nil {
		return p.store.Sweep(ctx, owner, saves(t))
	}
	if goes := t.DeletionTimestamp != nil; goes || search != engine.SearchNot {
		if err := p.store.SweepUnlisted(ctx, owner, ref, goes || search == engine.SearchTwice); err != nil {
			return err
		}
	}
	if keep {
		return p.store.Keep(ctx, owner, *ref)
	}
	return p.store.Drop(ctx, owner, *ref)
}

// Forget drops the before-images that were read, what was tried and what was written of a
// Transaction. It has room in what is kept of all of them, and content of Secrets.
func (p *Planner) Forget(t *api.Transaction) {
	p.images.forget(t.UID)
	p.sources.forget(t.UID)
	p.tried.forget(t.UID)
	p.written.forget(t.UID)
	p.patience.forget(t.UID)
}

// saves is how often before-images of a Transaction may have been saved: once for all
// items, once more for each whose target an earlier item changes or that has to be
// wanted first, and once more by a process that was late.
func saves(t *api.Transaction) int {
	targets := map[objectid.ID]bool{}
	n := 2
	for i, item := range t.Status.Items {
		ref, err := refOf(item)
		if err != nil || targets[ref.ID()] || i >= len(t.Spec.Changes) || maybeUnwanted(&t.Spec.Changes[i]) || len(item.DeletedWith) > 0 || item.DeferredBy != "" {
			n++
		}
		targets[ref.ID()] = true
	}
	return n
}

// maybeUnwanted reports whether it may have been asked in the turn of a change whether it is wanted.
func maybeUnwanted(c *api.Change) bool { return c.When != "" || c.Activation != nil }

func notNil(errs []error) []error {
	var out []error
	for _, err := range errs {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}
