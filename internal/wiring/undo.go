package wiring

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
	"janus.io/janus/revision"
	"janus.io/janus/snapshot"
)

// An undo is a Transaction whose changes follow from others. What they are is on record
// in its items from the time when it is validated; with what content, in its before-images
// from the time when they are prepared. Neither is found out twice.

// undoing is what is needed to find the content of the changes of an undo.
type undoing struct {
	changes []inverted
}

// inverted is a change of an undo, and what it undoes: one change, or with toRevision all that
// were made of the target, the newest first.
type inverted struct {
	change api.Change
	steps  []made
}

// made is a change that is undone.
type made struct {
	*past
	at int // among the items of the revision
}

func (m made) item() revision.Item { return m.of.Items[m.at] }

// past is a Transaction that is undone.
type past struct {
	number   int64
	of       revision.Revision
	original *api.Transaction
	reader   *snapshot.Reader
	owner    snapshot.Owner
}

// undoOf opens what a Transaction undoes; nil if it undoes none.
func (p *Planner) undoOf(ctx context.Context, t *api.Transaction) (*undoing, error) {
	if t.Spec.UndoOf == nil {
		return nil, nil
	}
	var all []*past
	for _, which := range t.Status.Undoing.All() {
		of, found, err := p.history.undone(ctx, t.Namespace, which)
		if err != nil {
			return nil, err
		}
		owner := snapshot.Owner{Namespace: t.Namespace, Name: of.Transaction.Name, UID: of.Transaction.UID}
		all = append(all, &past{number: which.Revision, of: of, original: found, reader: p.store.Open(owner, of.Images), owner: owner})
	}
	if t.Spec.UndoOf.ToRevision != nil {
		return &undoing{composed(all)}, nil
	}
	return &undoing{inversions(all[0])}, nil
}

// inversions returns the changes that undo those of a revision. The Delete of what was not
// there has none.
func inversions(of *past) []inverted {
	var out []inverted
	for i := len(of.of.Items) - 1; i >= 0; i-- {
		item := of.of.Items[i]
		if item.Type == api.Delete && (item.Before == nil || item.Before.UID == "") {
			continue
		}
		one := made{of, i}
		change := api.Change{Name: item.Name, Type: mutate.InverseOf(item.Type), Target: item.Target, ReadyWhen: one.readyWhen()}
		out = append(out, inverted{change, []made{one}}.releasing())
	}
	return out
}

// releasing gives back what one change has released, if that is all there is to undo of a target.
func (v inverted) releasing() inverted {
	if release(v.steps) {
		v.change.Type = api.Patch
	}
	return v
}

// release reports whether what is undone by one change is one release.
func release(steps []made) bool { return len(steps) == 1 && steps[0].releases() }

// releases reports whether the change released fields. What an undo patches, it gives back: all
// else that it writes it updates.
func (m made) releases() bool {
	if item := m.item(); m.original.Spec.UndoOf == nil {
		return plan.Releases(m.original, item.Index)
	}
	return m.item().Type == api.Patch
}

// readyWhen is what an undo waits for after it has undone a change: what the Transaction that is
// undone waits for after a compensation.
func (m made) readyWhen() *api.ReadyWhen {
	index := m.item().Index
	if !plan.RestoredWhen(m.original, index) || plan.ChangeName(index, m.original.Spec.Changes[index]) != m.item().Name {
		return nil
	}
	return &m.original.Spec.Changes[index].Rollback.ReadyWhen
}

// derive gives a Transaction that undoes another the changes that follow from that.
func (u *undoing) derive(t *api.Transaction) error {
	if u == nil {
		return nil
	}
	t.Spec.Changes = nil
	for _, c := range u.changes {
		c.change.AcceptLoss = t.Spec.UndoOf.AcceptLoss
		t.Spec.Changes = append(t.Spec.Changes, c.change)
	}
	switch {
	case len(t.Spec.Changes) > plan.MaxChanges:
		return errclass.New(errclass.Terminal, errclass.TooLarge, "undo", revision.Describe(t.Namespace, t.Status.Undoing.Revision),
			"with all others since revision %d, it changed %d objects, and a Transaction changes at most %d", *t.Spec.UndoOf.ToRevision, len(t.Spec.Changes), plan.MaxChanges).
			WithHint("undo to a revision in between first")
	case len(t.Spec.Changes) == 0:
		return errclass.New(errclass.Terminal, errclass.Invalid, "undo", revision.Describe(t.Namespace, t.Status.Undoing.Revision), "it has changed nothing")
	}
	return nil
}

// invert completes the change of an item by its content, for the target as it is now, and finds who
// owned its fields before the changes that the item rolls back.
func (s session) invert(ctx context.Context, i int, c mutate.Change, live *unstructured.Unstructured) (_ mutate.Change, owners []metav1.ManagedFieldsEntry, notes []string, err error) {
	steps := s.undo.steps(s.txn.Status.Items[i].Name)
	originals := make([]mutate.Original, len(steps))
	for n, step := range steps {
		if originals[n], err = step.load(ctx); err != nil {
			return c, nil, nil, err
		}
		if err := sameTarget(originals[n].Record, c); err != nil {
			return c, nil, nil, err
		}
		originals[n].Overwrite = s.txn.Spec.ConflictPolicy == api.ConflictForce
		if s.txn.Spec.UndoOf.ToRevision != nil {
			originals[n].Since = fmt.Sprintf("revision %d, Transaction %s", step.number, step.owner.Name)
		}
	}
	if len(originals) == 0 {
		return c, nil, nil, notFound(s.txn.Status.Items[i])
	}
	for j := range s.txn.Status.Items[:i] {
		earlier, err := refOf(s.txn.Status.Items[j])
		if err == nil && earlier.ID() == c.Ref.ID() && s.txn.Spec.Changes[j].Type == api.Create {
			originals[0].Recreated = true
		}
	}
	if release(steps) {
		return c.Unrelease(ctx, originals[0], live)
	}
	c.Content, owners, notes, err = c.Invert(ctx, s.txn.Spec.Changes[i].Type, originals, live)
	return c, owners, notes, err
}

func notFound(item api.Item) error {
	return errclass.New(errclass.Terminal, errclass.BeforeImageLost, "undo", "item "+item.Name, "the revision names no before-image of it")
}

// steps are the changes that an item rolls back, by its name.
func (u *undoing) steps(item string) []made {
	if u != nil {
		for _, c := range u.changes {
			if c.change.Name == item {
				return c.steps
			}
		}
	}
	return nil
}

// confidential reports whether the content of a change that an item rolls back came from a
// Secret.
func (u *undoing) confidential(item string) bool {
	for _, step := range u.steps(item) {
		if step.item().Confidential {
			return true
		}
	}
	return false
}

// load reads what is known of a change that is undone.
func (m made) load(ctx context.Context) (mutate.Original, error) {
	of := m.item()
	if of.Before == nil {
		return mutate.Original{}, notFound(api.Item{Name: of.Name})
	}
	record, err := m.reader.Load(ctx, *of.Before)
	if err != nil {
		return mutate.Original{}, err
	}
	first, err := m.first(ctx)
	return mutate.Original{Record: record, First: first, Marker: markerOf(m.owner.UID, of.Index)}, err
}

// image returns the target of an item as it was before the oldest change that it rolls back; nil
// if that has made it.
func (u *undoing) image(ctx context.Context, item api.Item) (map[string]any, error) {
	steps := u.steps(item.Name)
	if len(steps) == 0 {
		return nil, notFound(item)
	}
	original, err := steps[len(steps)-1].load(ctx)
	if err != nil || original.Record.Before == nil {
		return nil, err
	}
	return original.Record.Before.Object, nil
}

// first returns the target of a change before the first of the changes that its Transaction has
// made to it in a row; nil if that is the change itself, or has made it.
func (m made) first(ctx context.Context) (*unstructured.Unstructured, error) {
	items, at := m.of.Items, m.at
	for j := m.at - 1; j >= 0 && items[at].Type != api.Create; j-- {
		if items[j].Target.Identity() != items[m.at].Target.Identity() {
			continue
		}
		if items[j].Type == api.Delete {
			break
		}
		at = j
	}
	if at == m.at || items[at].Before == nil {
		return nil, nil
	}
	record, err := m.reader.Load(ctx, *items[at].Before)
	return record.Before, err
}
