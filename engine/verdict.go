package engine

import (
	"context"
	"fmt"
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// verdict is what the conditions of a change were found to be when its turn came. Those that were
// not asked are not in it.
type verdict []judgement

type judgement struct {
	condition api.ConditionName
	holds     bool
}

// wanted reports whether the change is to be made.
func (v verdict) wanted() bool {
	for _, j := range v {
		if !j.holds {
			return false
		}
	}
	return true
}

// deletes reports whether the target of a change is to be deleted.
func (v verdict) deletes(c api.Change) bool {
	return c.WhenFalse == api.WhenFalseDelete && slices.Contains(v, judgement{api.ConditionWhen, false})
}

// judge asks whether change i is wanted. What is not activated is asked no more: the objects that its
// when sees may be of kinds that nobody knows.
func (s committing) judge(ctx context.Context, i int) (verdict, error) {
	var found verdict
	if plan.Undecided(s.txn, i) {
		activated, err := s.Gates.Activates(ctx, s.txn, i)
		if err != nil {
			return nil, err
		}
		found = append(found, judgement{api.ConditionActivation, activated})
	}
	if found.wanted() && plan.ChangeOf(s.txn, i).When != "" {
		admitted, err := s.Gates.Admits(ctx, s.txn, i)
		if err != nil {
			return nil, err
		}
		found = append(found, judgement{api.ConditionWhen, admitted})
	}
	return found, nil
}

// noteVerdict records what the conditions of an item were found to be.
func (s committing) noteVerdict(item *api.Item, found verdict) {
	for _, j := range found {
		plan.NoteResult(item, j.condition, j.holds, *s.now(), "")
	}
}

// deleteInstead records that item i deletes its target, after those that depend on it have deleted
// theirs. From then on it is not asked again.
func (s committing) deleteInstead(ctx context.Context, i int, found verdict) error {
	return s.record(ctx, func(status *api.TransactionStatus) error {
		s.noteVerdict(&status.Items[i], found)
		return plan.DeleteInstead(s.txn, status.Items, i)
	})
}

// skip records that the change of item i is not wanted, and so are not those that depend
// on it.
func (s committing) skip(ctx context.Context, i int, found verdict) error {
	return s.record(ctx, func(status *api.TransactionStatus) error {
		item, change := &status.Items[i], &s.txn.Spec.Changes[i]
		s.noteVerdict(item, found)
		reason, message := plan.ReasonWhenFalse, fmt.Sprintf("%s is left as it is: when is false (%s)", item.Target.String(), change.When)
		if found[len(found)-1].condition == api.ConditionActivation {
			reason, message = plan.ReasonNotActivated, plan.NotActivated(item, change.Activation)
		}
		if err := plan.Skip(item, reason, message); err != nil {
			return err
		}
		return plan.SkipDependents(s.txn, status.Items)
	})
}
