package wiring

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// maxFields is how many fields the plan of one change lists at most.
const maxFields = 64

// planOf says what the change of an item would do to its target as it is. Of a
// confidential object it names fields, and shows no value.
func planOf(ctx context.Context, t *api.Transaction, i int, s seen) (*api.Plan, error) {
	switch {
	case t.Spec.Changes[i].Type == api.Delete && s.before == nil:
		return &api.Plan{Effect: api.EffectNone}, nil
	case t.Spec.Changes[i].Type == api.Delete:
		return &api.Plan{Effect: api.EffectDelete}, nil
	}
	fields, err := s.change.Differences(ctx, s.before, s.forecast.After)
	if err != nil {
		return nil, err
	}
	out := &api.Plan{Effect: api.EffectChange}
	switch {
	case s.before == nil:
		out.Effect = api.EffectCreate
	case len(fields) == 0:
		out.Effect = api.EffectNone
	}
	enter(out, fields, plan.FieldsShare(len(t.Status.Items)))
	return out, nil
}

// enter puts fields into a out, as far as its share goes, and counts the others. One is
// always listed.
func enter(out *api.Plan, fields []errclass.Field, share int) {
	for n, f := range fields {
		change := api.FieldChange{Field: errclass.Cut(f.Path, 512), Before: f.Before, After: f.Now}
		share -= len(change.Field) + len(change.Before) + len(change.After) + 40
		if n == maxFields || n > 0 && share < 0 {
			out.More = int64(len(fields) - n)
			return
		}
		out.Fields = append(out.Fields, change)
	}
}
