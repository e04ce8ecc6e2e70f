package wiring

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// advise says of problems that a change which comes later may be what they lack: the order
// is the user's, and is never rearranged.
func (f *preflight) advise(ctx context.Context, problems []plan.Problem) error {
	d, err := f.deferring()
	if err != nil {
		return nil // There is no order; that is the problem.
	}
	for n, p := range problems {
		found := asFault(p.Err)
		if found == nil || f.undo != nil {
			continue
		}
		j, err := d.later(ctx, p.Item, p.Err)
		if err != nil {
			return err
		}
		if j < 0 {
			continue
		}
		own := *found
		own.Hint = fmt.Sprintf("item %s, %s, comes later and may be what it needs: put it first", plan.ChangeName(j, f.txn.Spec.Changes[j]), f.txn.Spec.Changes[j].Target)
		problems[n].Err = &own
	}
	return nil
}

// later returns the first item after i that makes what it lacks; -1 for none.
func (d *deferring) later(ctx context.Context, i int, refusal error) (int, error) {
	after := d.order[slices.Index(d.order, i)+1:]
	for _, j := range after {
		if d.makes(ctx, i, j, refusal) {
			return j, nil
		}
	}
	if d.txn.Status.Items[i].Resource == "" || hurdleOf(refusal) == "" || hurdleOf(refusal) == absent {
		return -1, nil
	}
	own, err := d.step(ctx, i, true)
	if err != nil {
		return -1, err
	}
	for _, j := range after {
		if !d.txn.Status.Items[j].Changes() || d.txn.Status.Items[j].Resource == "" {
			continue
		}
		other, err := d.step(ctx, j, false)
		if err != nil {
			return -1, err
		}
		if explains(other, own, refusal) {
			return j, nil
		}
	}
	return -1, nil
}

// makes reports whether change j makes the namespace or the kind of change i, that being
// what refuses it.
func (d *deferring) makes(ctx context.Context, i, j int, refusal error) bool {
	own, other := d.txn.Status.Items[i].Target, d.txn.Spec.Changes[j]
	gv, err := schema.ParseGroupVersion(other.Target.APIVersion)
	if err != nil || !d.txn.Status.Items[j].Changes() {
		return false
	}
	switch kind := gv.WithKind(other.Target.Kind).GroupKind(); {
	case errclass.Is(refusal, errclass.NamespaceNotFound):
		return kind == target.NamespaceKind && other.Type == api.Create && other.Target.Name == own.Namespace
	case errclass.Is(refusal, errclass.KindNotFound) && kind == target.CRDKind:
		content, err := d.sources.content(ctx, d.txn, j, d.id)
		wanted := schema.FromAPIVersionAndKind(own.APIVersion, own.Kind)
		return err == nil && slices.ContainsFunc(target.PlannedKinds(content), func(p target.PlannedKind) bool { return p.GVK == wanted })
	}
	return false
}

// asFault returns the fault in an error; nil if there is none.
func asFault(err error) *errclass.Error {
	var found *errclass.Error
	errors.As(err, &found)
	return found
}
