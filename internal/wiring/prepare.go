package wiring

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/lockmgr"
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

// Discard drops the before-images of a Transaction, or lets them live as long as
// it does. A checkpoint that names some may have been lost, so the names that they
// would have are looked at too, unless there can be no others.
func (p *Planner) Discard(ctx context.Context, t *api.Transaction, keep bool, search engine.Search) error {
	p.Forget(t)
	owner, ref := ownerOf(t), t.Status.RollbackRef
	if snapshot.NamesNone(ref) {
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
