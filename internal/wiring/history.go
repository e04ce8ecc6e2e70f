package wiring

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/revision"
	"janus.io/janus/snapshot"
)

// History remembers Transactions that have ended with changes in effect as ControllerRevisions that refer
// to their before-images.
type History struct {
	revisions *revision.Store
	store     *snapshot.Store
	journal   *Journal
	pruning   *coalescer
}

func newHistory(revisions *revision.Store, store *snapshot.Store, journal *Journal) *History {
	h := &History{revisions: revisions, store: store, journal: journal}
	h.pruning = newCoalescer(h.forgetOldest)
	return h
}

// Number gives t a number.
func (h *History) Number(ctx context.Context, t *api.Transaction, floor int64) (int64, error) {
	return h.revisions.Next(ctx, t.Namespace, floor)
}

// Digest is that of what is to be remembered of t.
func (h *History) Digest(t *api.Transaction) (string, error) {
	what, err := h.revisionOf(t)
	if err != nil {
		return "", err
	}
	return revision.Digest(what)
}

// Keep makes the revision.
func (h *History) Keep(ctx context.Context, t *api.Transaction) (taken bool, err error) {
	what, err := h.revisionOf(t)
	if err != nil {
		return false, err
	}
	labels := snapshot.Labels(t.Name)
	if !inEffect(t) {
		labels[revision.UnchangedLabel] = "true"
	}
	return h.revisions.Create(ctx, t.Namespace, t.Status.Revision, labels, what)
}

// revisionOf is what is remembered of a Transaction: the same before and after a crash,
// for it follows from what does not change any more.
func (h *History) revisionOf(t *api.Transaction) (revision.Revision, error) {
	out := revision.Revision{Transaction: revision.Owner{Name: t.Name, UID: t.UID}, ServiceAccount: t.Spec.ServiceAccountName}
	if t.Status.RollbackRef != nil {
		out.Images = *t.Status.RollbackRef
	}
	order, err := plan.Order(t)
	if err != nil {
		return out, err
	}
	for _, i := range order {
		if i >= len(t.Status.Items) || !t.Status.Items[i].Changes() {
			continue
		}
		item := t.Status.Items[i]
		set, err := h.setBy(t, i)
		if err != nil {
			return out, errclass.New(errclass.Terminal, errclass.Invalid, "remember", describe(t), "item %s: %w", item.Name, err)
		}
		out.Items = append(out.Items, revision.Item{
			Index: i, Name: item.Name, Type: plan.ChangeOf(t, i).Type, Target: item.Target, Before: item.Before, Set: set,
			Confidential: item.Confidential,
		})
	}
	return out, nil
}

// setBy is what a change has set, as a digest. An undo sets what follows from what it has
// undone.
func (h *History) setBy(t *api.Transaction, i int) (string, error) {
	change, item := plan.ChangeOf(t, i), t.Status.Items[i]
	switch {
	case t.Status.Undoing != nil:
		return undoneDigest(t.Status.Undoing), nil
	case item.Confidential:
		return "", nil
	case change.ContentFrom != nil:
		return item.ContentDigest, nil
	}
	content, err := contentOf(change)
	kind := schema.FromAPIVersionAndKind(change.Target.APIVersion, change.Target.Kind).GroupKind()
	if err != nil || content == nil || h.store.Sensitive(kind) {
		return "", err
	}
	return revision.SetBy(content)
}

// Remembered looks for the revision of t.
func (h *History) Remembered(ctx context.Context, t *api.Transaction) (bool, error) {
	owner, err := h.revisions.Owner(ctx, t.Namespace, t.Status.Revision)
	if errclass.Is(err, errclass.NotFound) {
		return false, nil
	}
	return owner.UID == t.UID, err
}

// Prune forgets the oldest. Transactions that commit at the same time share it: each by
// itself would list the same revisions, and all would try to delete the same ones. One of
// them stands for the others because it matters to none of them who forgets a revision: it
// lists after the revisions of all were made, and what it does follows from what the API
// server says then, not from the Transaction that asks. Another process may forget the same
// ones meanwhile, and one that hung may be late with it: a revision is deleted as it was
// listed, by its uid, and a before-image only if it is that of the Transaction.
func (h *History) Prune(ctx context.Context, t *api.Transaction, limit int) error {
	return h.pruning.share(ctx, t.Namespace, limit)
}

func (h *History) forgetOldest(ctx context.Context, namespace string, limit int) error {
	known, err := h.revisions.List(ctx, namespace)
	if err != nil {
		return err
	}
	outdated := revision.Outdated(known, limit)
	stays, errs := make([]bool, len(outdated)), make([]error, len(outdated))
	fanout.Do(forgetting, len(outdated), func(i int) { stays[i], errs[i] = h.dropImages(ctx, namespace, outdated[i]) })
	for i, old := range outdated {
		err := errs[i]
		if err == nil && !stays[i] {
			err = h.revisions.Delete(ctx, old)
		}
		if err != nil { // Those after it stay, so that the history has no gap.
			return fmt.Errorf("forget revision %d: %w", old.Number, err)
		}
	}
	return nil
}

// forgetting is of how many revisions the before-images are dropped side by side: all that commit in the
// namespace meanwhile wait for that.
const forgetting = 8

// dropImages drops the before-images to which a revision refers. The revision is deleted after
// that: the other way round, nobody would look for them after a crash. What they are is believed
// of their Transaction alone, for others can make revisions. With a Transaction that is
// gone they are gone, too. One that has not ended has yet to say that it is remembered:
// its revision stays, and is forgotten by the next.
func (h *History) dropImages(ctx context.Context, namespace string, old revision.Entry) (stays bool, err error) {
	t, err := h.transaction(ctx, types.NamespacedName{Namespace: namespace, Name: old.Owner.Name})
	if err != nil || t == nil || t.UID != old.Owner.UID {
		return false, err
	}
	if !t.Status.Phase.Terminal() {
		return true, nil
	}
	remembered := t.Status.Revision == old.Number && t.Status.RollbackRef != nil
	if plan.EndedInEffect(&t.Status) && remembered {
		err = h.store.DropKept(ctx, ownerOf(t), *t.Status.RollbackRef)
	}
	return false, err
}

// transaction reads a Transaction, nil if it does not exist, which is confirmed.
func (h *History) transaction(ctx context.Context, name types.NamespacedName) (*api.Transaction, error) {
	t, err := h.journal.Read(ctx, name)
	if t == nil && err == nil {
		return h.journal.Read(ctx, name)
	}
	return t, err
}
