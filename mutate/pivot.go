package mutate

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
)

// admitPivot refuses an Update or a Patch that the API server does not let anyone
// roll back, unless no other change comes after it or it accepts the loss; then it
// warns.
func (c Change) admitPivot(ctx context.Context, before, after *unstructured.Unstructured) ([]string, error) {
	if before == nil || after == nil {
		return nil, nil
	}
	why := kinds.OneWay(c.Ref.GVK.GroupKind(), before, after)
	if why == "" {
		var err error
		if why, err = c.rehearseRules(ctx, before, after); err != nil {
			return nil, err
		}
	}
	forGood, warnings := c.deletes(before, after)
	if why == "" {
		why = forGood
	}
	switch {
	case why == "":
		rules, err := c.transitions(ctx, before, after)
		return append(warnings, rules...), err
	case c.Options.AcceptLoss || known(c.Options.Last):
		return append(c.warn("a rollback cannot undo it: "+why), warnings...), nil
	default:
		return nil, c.fail(errclass.Terminal, errclass.Irreversible, "prepare", "it could not be rolled back: %s", why).
			WithHint("make it the last change, or set acceptLoss: true on it")
	}
}
