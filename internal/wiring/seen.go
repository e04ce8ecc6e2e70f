package wiring

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

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
	done := false
	defer func() {
		if !done {
			found.done()
		}
	}()
	if err != nil {
		return seen{}, err
	}
	if found.change, _, err = found.change.Releasing(found.before); err != nil {
		return seen{}, err
	}
	if found.put == nil {
		size := found.size()
		if s.undo != nil {
			size *= 4 // The content follows from a before-image, which has three such objects.
		}
		if found.put, err = s.load.Take(ctx, size); err != nil {
			return seen{}, err
		}
	}
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

// readItem reads the content and the target of an item. What takes much is to be done with, also
// after an error: others would be read beside it otherwise while it waits for what follows.
func (s session) readItem(ctx context.Context, i int, known earlier) (seen, error) {
	put, err := s.load.Take(ctx, unread)
	if err != nil {
		return seen{}, err
	}
	weight, err := s.sources.weight(ctx, s.txn, i, s.id)
	if err != nil || weight <= unread {
		defer put()
		if err != nil {
			return seen{}, err
		}
		return s.readDecoded(ctx, i, known)
	}
	put()
	if put, err = s.load.Take(ctx, weight+unread); err != nil {
		return seen{}, err
	}
	found, err := s.readDecoded(ctx, i, known)
	found.put = put
	return found, err
}

// readDecoded is readItem when there is room for the content.
func (s session) readDecoded(ctx context.Context, i int, known earlier) (seen, error) {
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
	if before, ok := known.before(i, change.Ref, spec.Type == api.Create); ok {
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
// object: with another one that change would be lost. Nor is it the one that an earlier item has
// deleted.
func stillThere(t *api.Transaction, i int, ref target.Ref, now *unstructured.Unstructured) error {
	for j := i - 1; j >= 0; j-- {
		earlier, err := refOf(t.Status.Items[j])
		if err != nil {
			return err
		}
		item := &t.Status.Items[j]
		if earlier.ID() != ref.ID() || !item.Changes() {
			continue
		}
		lost := false
		switch plan.ChangeOf(t, j).Type {
		case api.Delete:
			return notDeletedBy(t, j, t.Status.Items[i].Target, now)
		case api.Create:
			lost = now != nil && item.CreatedUID != "" && now.GetUID() != item.CreatedUID
		default:
			lost = item.Before != nil && (now == nil || now.GetUID() != item.Before.UID)
		}
		if !lost {
			return nil
		}
		return errclass.New(errclass.Conflict, errclass.Drifted, "read", ref.String(),
			"another client has deleted it, or deleted and re-created it, since item %s changed it", item.Name).
			WithHint("create the Transaction again if it is still wanted")
	}
	return nil
}

// notDeletedBy refuses to believe that a target is there as if item j had not deleted it: the answer is of
// before that.
func notDeletedBy(t *api.Transaction, j int, of api.Target, now *unstructured.Unstructured) error {
	item := &t.Status.Items[j]
	if now == nil || now.GetDeletionTimestamp() != nil || item.State != api.ItemCommitted || item.Before == nil || now.GetUID() != item.Before.UID ||
		!plan.Deletes(t, j) || item.Target.Identity() != of.Identity() {
		return nil
	}
	return errclass.New(errclass.Retryable, errclass.StaleVersion, "read", item.Target.String(), "it was read as it was before item %s deleted it", item.Name)
}
