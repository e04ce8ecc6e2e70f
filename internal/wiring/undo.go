package wiring

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
	"janus.io/janus/revision"
	"janus.io/janus/snapshot"
)

// An undo is a Transaction whose changes follow from another. What they are is on record
// in its items from the time when it is validated; with what content, in its before-images
// from the time when they are prepared. Neither is found out twice.

// inverse returns the changes that undo those of a revision. The Delete of what was not
// there has none. What the Transaction that is undone waits for after a compensation, the undo
// waits for after the change.
func inverse(of revision.Revision, original *api.Transaction, acceptLoss bool) []api.Change {
	var out []api.Change
	for i := len(of.Items) - 1; i >= 0; i-- {
		item := of.Items[i]
		if item.Type == api.Delete && (item.Before == nil || item.Before.UID == "") {
			continue
		}
		change := api.Change{Name: item.Name, Type: mutate.InverseOf(item.Type), Target: item.Target, AcceptLoss: acceptLoss}
		if plan.RestoredWhen(original, item.Index) && plan.ChangeName(item.Index, original.Spec.Changes[item.Index]) == item.Name {
			change.ReadyWhen = &original.Spec.Changes[item.Index].Rollback.ReadyWhen
		}
		out = append(out, change)
	}
	return out
}

// undo is what is needed to find the content of the changes of an undo.
type undo struct {
	of       revision.Revision
	original *api.Transaction // what is undone
	reader   *snapshot.Reader
	owner    snapshot.Owner
}

// undoOf opens what a Transaction undoes; nil if it undoes none.
func (p *Planner) undoOf(ctx context.Context, t *api.Transaction) (*undo, error) {
	if t.Spec.UndoOf == nil {
		return nil, nil
	}
	of, found, err := p.history.undone(ctx, t)
	if err != nil {
		return nil, err
	}
	owner := snapshot.Owner{Namespace: t.Namespace, Name: of.Transaction.Name, UID: of.Transaction.UID}
	return &undo{of: of, original: found, reader: p.store.Open(owner, of.Images), owner: owner}, nil
}

// derive gives a Transaction that undoes another the changes that follow from that.
func (u *undo) derive(t *api.Transaction) error {
	if u == nil {
		return nil
	}
	t.Spec.Changes = inverse(u.of, u.original, t.Spec.UndoOf.AcceptLoss)
	if len(t.Spec.Changes) == 0 {
		return errclass.New(errclass.Terminal, errclass.Invalid, "undo", revision.Describe(t.Namespace, t.Status.Undoing.Revision), "it has changed nothing")
	}
	return nil
}

// invert finds the content of the change of an item, for the target as it is now, and who
// owned its fields before the change that the item rolls back.
func (s session) invert(ctx context.Context, i int, c mutate.Change, live *unstructured.Unstructured) (content map[string]any, owners []metav1.ManagedFieldsEntry, notes []string, err error) {
	original, err := s.undo.find(ctx, s.txn.Status.Items[i])
	if err != nil {
		return nil, nil, nil, err
	}
	if err := sameTarget(original.Record, c); err != nil {
		return nil, nil, nil, err
	}
	for j := range s.txn.Status.Items[:i] {
		earlier, err := refOf(s.txn.Status.Items[j])
		if err == nil && earlier.ID() == c.Ref.ID() && s.txn.Spec.Changes[j].Type == api.Create {
			original.Recreated = true
		}
	}
	original.Overwrite = s.txn.Spec.ConflictPolicy == api.ConflictForce
	content, notes, err = c.Invert(ctx, original, live)
	return content, original.Owners(), notes, err
}

// confidential reports whether the content of the change that an item rolls back came from a
// Secret.
func (u *undo) confidential(item string) bool {
	return u != nil && slices.ContainsFunc(u.of.Items, func(of revision.Item) bool { return of.Name == item && of.Confidential })
}

// find finds what an item rolls back, by its name.
func (u *undo) find(ctx context.Context, item api.Item) (mutate.Original, error) {
	for i, of := range u.of.Items {
		if of.Name != item.Name || of.Before == nil {
			continue
		}
		record, err := u.reader.Load(ctx, *of.Before)
		if err != nil {
			return mutate.Original{}, err
		}
		first, err := u.first(ctx, i)
		return mutate.Original{Record: record, First: first, Marker: markerOf(u.owner.UID, of.Index)}, err
	}
	return mutate.Original{}, errclass.New(errclass.Terminal, errclass.BeforeImageLost, "undo", "item "+item.Name, "the revision names no before-image of it")
}

// image returns the target of an item as it was before the change that it rolls back; nil if
// that has made it.
func (u *undo) image(ctx context.Context, item api.Item) (map[string]any, error) {
	original, err := u.find(ctx, item)
	if err != nil || original.Record.Before == nil {
		return nil, err
	}
	return original.Record.Before.Object, nil
}

// first returns the target of an item before the first of the changes that have been made to
// it in a row; nil if that is the item's own, or has made it.
func (u *undo) first(ctx context.Context, item int) (*unstructured.Unstructured, error) {
	at := item
	for j := item - 1; j >= 0 && u.of.Items[at].Type != api.Create; j-- {
		if u.of.Items[j].Target.Identity() != u.of.Items[item].Target.Identity() {
			continue
		}
		if u.of.Items[j].Type == api.Delete {
			break
		}
		at = j
	}
	if at == item || u.of.Items[at].Before == nil {
		return nil, nil
	}
	record, err := u.reader.Load(ctx, *u.of.Items[at].Before)
	return record.Before, err
}
