package wiring

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// planOf says what the change of an item would do to its target as it is. Of a
// confidential object it names fields, and shows no value.
func planOf(ctx context.Context, t *api.Transaction, i int, s seen) (*api.Plan, error) {
	switch {
	case plan.ChangeOf(t, i).Type == api.Delete && s.before == nil:
		return &api.Plan{Effect: api.EffectNone}, nil
	case plan.ChangeOf(t, i).Type == api.Delete:
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
	case len(fields) == 0 && s.change.Release == nil:
		out.Effect = api.EffectNone
	}
	out.Fields, out.More = plan.ChangesOf(fields, plan.FieldsShare(len(t.Status.Items)))
	return out, nil
}
