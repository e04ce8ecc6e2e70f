package wiring

import (
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
	records := make([]snapshot.Record, len(items))
	prepared := make([]engine.PreparedItem, len(items))
	problems := make([]error, len(items))
	idle := make([]bool, len(items))
	fanout.Do(p.parallel, len(items), func(n int) {
		records[n], prepared[n], idle[n], problems[n] = s.captureItem(ctx, items[n], known)
	})
	if err := s.deferAgain(ctx, items, prepared, problems); err != nil {
		return engine.Prepared{}, err
	}
	if found := notNil(problems); len(found) > 0 {
		return engine.Prepared{}, first(found)
	}
	if err := confirm(ctx, false); err != nil {
		return engine.Prepared{}, err
	}
	saved, err := p.store.Save(ctx, ownerOf(t), t.Status.RollbackRef, toSave(records, prepared))
	if saved.Lost {
		lost()
	}
	if err != nil {
		return engine.Prepared{}, err
	}
	images := saved.Images
	for n := range prepared {
		if prepared[n].DeferredBy == "" {
			prepared[n].Image, images = images[0], images[1:]
			prepared[n].Image.Unchanged = idle[n]
		}
	}
	return engine.Prepared{Account: string(s.id.UID), Ref: &saved.Ref, Items: prepared}, nil
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

// captureItem reads the target of an item and finds out what its change would do.
func (s session) captureItem(ctx context.Context, i int, known *tries) (record snapshot.Record, item engine.PreparedItem, idle bool, err error) {
	if err := s.mayStill(ctx, i); err != nil {
		return snapshot.Record{}, engine.PreparedItem{}, false, s.bear(ctx, i, err)
	}
	seen, err := s.look(ctx, i, known)
	if err != nil {
		return snapshot.Record{}, engine.PreparedItem{}, false, s.bear(ctx, i, err)
	}
	share := plan.ReportShare(len(s.txn.Status.Items))
	item = engine.PreparedItem{Taken: takenBy(seen.change, seen.forecast.Taken, share), Warnings: plan.WithWarnings(nil, seen.forecast.Warnings, share)}
	return s.recordOf(i, seen), item, seen.forecast.Idle, nil
}

// seen is a target as it was read, and what a change would make of it.
type seen struct {
	change   mutate.Change
	before   *unstructured.Unstructured
	forecast mutate.Forecast
	// owners are those of the fields before the change that an undo rolls back.
	owners []metav1.ManagedFieldsEntry
}

// look reads the target of an item, and tries its change, unless that was tried on the
// target as it is.
func (s session) look(ctx context.Context, i int, known *tries) (seen, error) {
	spec := s.txn.Spec.Changes[i]
	content, err := s.sources.content(ctx, s.txn, i, s.id)
	if err != nil {
		return seen{}, err
	}
	change, err := s.changeOf(i, content)
	if err != nil {
		return seen{}, err
	}
	change.Options = s.options(i)
	strategy, err := strategyFor(spec.Type, change)
	if err != nil {
		return seen{}, err
	}
	before, err := mutate.Read(ctx, change)
	if spec.Type == api.Create && change.Ref.Deferred && errclass.Is(err, errclass.KindNotFound) {
		return seen{}, errclass.New(errclass.Conflict, errclass.AlreadyExists, "create", change.Ref.String(), "it exists already, by another version of its kind").
			WithHint("use Patch or Update to change it; nothing of it was touched")
	}
	if err != nil {
		return seen{}, s.explainDenied(ctx, change, []string{"get"}, err)
	}
	if err := stillThere(s.txn, i, change.Ref, before); err != nil {
		return seen{}, err
	}
	if forecast, ok := known.at(i, mutate.VersionOf(before)); ok && s.undo == nil {
		return seen{change: change, before: before, forecast: forecast}, nil
	}
	var notes []string
	var owners []metav1.ManagedFieldsEntry
	to := mutate.Ownership{FieldManager: s.txn.Spec.FieldManager}
	if s.undo != nil {
		if change.Content, owners, notes, err = s.invert(ctx, i, change, before); err != nil {
			return seen{}, s.explainDenied(ctx, change, []string{"get"}, err)
		}
		to.Former = func(context.Context) ([]metav1.ManagedFieldsEntry, error) { return owners, nil }
	}
	forecast, err := mutate.Foresee(ctx, strategy, change, to, before)
	if err != nil {
		verbs, _ := strategy.Verbs()
		return seen{}, s.explainDenied(ctx, change, verbs, err)
	}
	if spec.Type == api.Create {
		missing, err := s.unlistable(ctx, change.Ref)
		if err != nil {
			return seen{}, err
		}
		notes = append(notes, missing...)
	}
	forecast.Warnings = append(notes, forecast.Warnings...)
	return seen{change, before, forecast, owners}, nil
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
		kind, before := t.Spec.Changes[j].Type, t.Status.Items[j].Before
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
// would have are looked at too.
func (p *Planner) Discard(ctx context.Context, t *api.Transaction, keep, doubt bool) error {
	p.Forget(t)
	owner, ref := ownerOf(t), t.Status.RollbackRef
	if ref == nil {
		return p.store.Sweep(ctx, owner, saves(t))
	}
	if err := p.store.SweepUnlisted(ctx, owner, ref, doubt || t.DeletionTimestamp != nil); err != nil {
		return err
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
		if err != nil || targets[ref.ID()] || i >= len(t.Spec.Changes) || t.Spec.Changes[i].When != "" || item.DeferredBy != "" {
			n++
		}
		targets[ref.ID()] = true
	}
	return n
}

func notNil(errs []error) []error {
	var out []error
	for _, err := range errs {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}
