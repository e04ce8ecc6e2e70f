package wiring

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/readiness"
)

// Gates evaluates the conditions of changes over targets of the Transaction, which it
// reads as the Transaction's ServiceAccount.
type Gates struct {
	*shared
}

// Admits evaluates the when of a change.
func (g *Gates) Admits(ctx context.Context, t *api.Transaction, i int) (bool, error) {
	seen, err := g.see(ctx, t, i)
	if err != nil {
		return false, err
	}
	text := t.Spec.Changes[i].When
	wanted, untold, err := seen.truth(ctx, text)
	if err != nil || untold == nil {
		return wanted, err
	}
	return false, errclass.New(errclass.Terminal, errclass.Invalid, "evaluate when of", t.Status.Items[i].Target.String(),
		"%s: %w", text, untold).WithHint("test with has() what may not be there, and with == null who may not")
}

// Ready evaluates the failWhen, and then the readyWhen or goneWhen, of a change. All of them
// see the same objects.
func (g *Gates) Ready(ctx context.Context, t *api.Transaction, i int) (engine.Readiness, error) {
	change := plan.ChangeOf(t, i)
	if change.GoneWhen == nil && change.ReadyWhen == nil {
		return engine.Readiness{Ready: true}, nil
	}
	seen, err := g.see(ctx, t, i)
	if err != nil {
		return engine.Readiness{}, err
	}
	found, err := seen.done(ctx, change)
	found.On = seen.looked()
	if err != nil || !change.Guard {
		return found, err
	}
	live, err := seen.read(ctx, i)
	if live != nil {
		found.UID = live.GetUID()
	}
	return found, err
}

// done evaluates what ends the wait for a change.
func (s *sight) done(ctx context.Context, change api.Change) (engine.Readiness, error) {
	if change.FailWhen != nil {
		if failed, err := s.failed(ctx, *change.FailWhen); err != nil || failed.Failed {
			return failed, err
		}
	}
	if change.GoneWhen != nil {
		return s.holds(ctx, change.GoneWhen.Expression)
	}
	return s.ready(ctx, *change.ReadyWhen)
}

// Restored evaluates the rollback.readyWhen of a change whose compensation is made.
func (g *Gates) Restored(ctx context.Context, t *api.Transaction, i int) (engine.Readiness, error) {
	if !plan.RestoredWhen(t, i) {
		return engine.Readiness{Ready: true}, nil // Another client may have edited it.
	}
	seen, err := g.see(ctx, t, i)
	if err != nil {
		return engine.Readiness{}, err
	}
	found, err := seen.ready(ctx, t.Spec.Changes[i].Rollback.ReadyWhen)
	found.On = seen.looked()
	return found, err
}

// ready evaluates a readyWhen.
func (s *sight) ready(ctx context.Context, when api.ReadyWhen) (engine.Readiness, error) {
	if when.Expression != "" {
		return s.holds(ctx, when.Expression)
	}
	return s.byStatus(ctx)
}

// holds evaluates an expression that may ask for what is not there yet.
func (s *sight) holds(ctx context.Context, text string) (engine.Readiness, error) {
	ready, untold, err := s.truth(ctx, text)
	switch {
	case err != nil:
		return engine.Readiness{}, err
	case untold != nil:
		return engine.Readiness{Message: fmt.Sprintf("%s: %s: %s", s.name(), text, untold)}, nil
	default:
		return engine.Readiness{Ready: ready, Message: fmt.Sprintf("%s: %s is false", s.name(), text)}, nil
	}
}

// failed evaluates a failWhen. One that asks for what is not there yet does not hold.
func (s *sight) failed(ctx context.Context, when api.FailWhen) (engine.Readiness, error) {
	failed, untold, err := s.truth(ctx, when.Expression)
	if err != nil || untold != nil || !failed {
		return engine.Readiness{}, err
	}
	message := fmt.Sprintf("failWhen is true (%s)", when.Expression)
	if when.MessageExpression != "" {
		text, err := s.text(ctx, when.MessageExpression)
		if err != nil {
			return engine.Readiness{}, err
		}
		if text != "" {
			message = text
		}
	}
	return engine.Readiness{Failed: true, ByFailWhen: true, Message: s.name() + ": " + message}, nil
}

// byStatus asks the target's own status.
func (s *sight) byStatus(ctx context.Context) (engine.Readiness, error) {
	live, err := s.read(ctx, s.item)
	if err != nil {
		return engine.Readiness{}, err
	}
	if live == nil && s.txn.Spec.Changes[s.item].Type == api.Await {
		return engine.Readiness{Message: s.name() + ": it does not exist yet"}, nil
	}
	if live == nil {
		return engine.Readiness{Failed: true, Message: s.name() + ": " + gone(s.txn.Spec.Changes[s.item])}, nil
	}
	hasStatus := false
	if readiness.Unseen(live) {
		ref, err := s.refOf(s.item)
		if err != nil {
			return engine.Readiness{}, err
		}
		if hasStatus, err = s.resolver.HasStatus(live.GroupVersionKind().GroupVersion(), ref.GVR.Resource); err != nil {
			return engine.Readiness{}, err
		}
	}
	state, err := readiness.Of(live, hasStatus, s.waiting())
	if err != nil {
		return engine.Readiness{Failed: true, Message: fmt.Sprintf("%s: its status cannot be read: %s", s.name(), s.without(err))}, nil
	}
	if s.sensitive {
		state.Message = "it is not ready"
	}
	return engine.Readiness{Ready: state.Ready, Failed: state.Failed, Message: s.name() + ": " + state.Message}, nil
}

// waiting says since when the target is as it is to be. An Await changes nothing: unless a change of
// the same Transaction has made its target so, what that says counts as it is.
func (s *sight) waiting() readiness.Wait {
	item := &s.txn.Status.Items[s.item]
	now := s.clock.Now()
	switch {
	case item.Type == api.Await && !s.changedHere():
		return readiness.Wait{}
	case item.RollbackWait != nil:
		return readiness.Wait{Since: item.RollbackWait.StartTime.Time, Now: now}
	case item.WaitStartTime != nil:
		return readiness.Wait{Since: item.WaitStartTime.Time, Now: now}
	}
	return readiness.Wait{Since: now, Now: now}
}

// changedHere reports whether a change of the Transaction that is in effect is of the same target.
func (s *sight) changedHere() bool {
	id := s.txn.Status.Items[s.item].Target.Identity()
	return slices.ContainsFunc(s.txn.Status.Items, func(other api.Item) bool {
		return other.Type != api.Await && other.State == api.ItemCommitted && other.Target.Identity() == id
	})
}

// gone says who may have deleted what is waited for.
func gone(change api.Change) string {
	content, _ := contentOf(change) // What is elsewhere is not looked up for the sake of a message.
	ttl, has, _ := unstructured.NestedFieldNoCopy(content, "spec", "ttlSecondsAfterFinished")
	if change.Target.Kind != "Job" || !has {
		return "it was deleted by another client"
	}
	return fmt.Sprintf("it is gone, as after its ttlSecondsAfterFinished (%v), and whether it had completed is not known; raise that to a minute or more", ttl)
}
