package wiring

import (
	"context"
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

// redefinitions are what items before i make of the definition of its target's kind. One that
// makes it is not among them: there is no object of the kind before.
func (s session) redefinitions(ctx context.Context, i int, ref target.Ref) ([]mutate.Redefinition, error) {
	name := ref.GVR.GroupResource().String()
	defines := func(item api.Item) bool {
		return item.Target.Kind == target.CRDKind.Kind && item.Target.Name == name && item.Resource != "" && item.Changes()
	}
	if !slices.ContainsFunc(s.txn.Status.Items, defines) {
		return nil, nil
	}
	d, err := s.deferring()
	if err != nil {
		return nil, err
	}
	var out []mutate.Redefinition
	for _, j := range d.order[:max(slices.Index(d.order, i), 0)] {
		item := s.txn.Status.Items[j]
		if !defines(item) {
			continue
		}
		earlier, err := d.step(ctx, j, true)
		if err != nil {
			return nil, err
		}
		if earlier.group() != target.CRDKind || earlier.kind != api.Patch && earlier.kind != api.Update {
			continue
		}
		one := mutate.Redefinition{Item: item.Name, After: earlier.content}
		if item.Before != nil {
			record, err := s.record(ctx, j)
			if err != nil {
				return nil, err
			}
			if record.Before != nil {
				one.Before = record.Before.Object
			}
		}
		out = append(out, one)
	}
	return out, nil
}
