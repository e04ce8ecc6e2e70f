package mutate

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
)

// admitPivot refuses an Update or a Patch that the API server does not let anyone
// roll back, or that a rollback would spare because of what controllers would destroy,
// unless no other change comes after it or it accepts the loss; then it warns.
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
	if err := c.admitUndo(ctx, before, after); err != nil {
		return nil, err
	}
	if why == "" {
		why = forGood
	}
	if why == "" {
		lost, untold, err := c.destroys(ctx, before, after)
		if err != nil {
			return nil, err
		}
		why, warnings = lost, append(warnings, untold...)
	}
	if why == "" {
		refused, rules, err := c.byDefinition(ctx, before, after)
		if err != nil {
			return nil, err
		}
		why, warnings = refused, append(warnings, rules...)
	}
	switch {
	case why == "":
		return warnings, nil
	case c.Options.AcceptLoss || known(c.Options.Last):
		return append(c.warn("a rollback cannot undo it: "+why), warnings...), nil
	default:
		return nil, c.fail(errclass.Terminal, errclass.Irreversible, "prepare", "it could not be rolled back: %s", why).
			WithHint("make it the last change, or set acceptLoss: true on it")
	}
}

// admitUndo refuses an undo that would have controllers destroy for good what a rollback spares:
// all that is there since the commit others may rely on.
func (c Change) admitUndo(ctx context.Context, before, after *unstructured.Unstructured) error {
	if !c.Options.Inverts || c.Options.AcceptLoss {
		return nil
	}
	harms, err := c.harms(ctx, moment{undo: true}, before, after)
	if err != nil || len(harms) == 0 {
		return err
	}
	hint := "undo the rest by hand, or " + accepting
	if harms[0].reason == errclass.AccessDenied {
		hint = harms[0].hint
	}
	return c.fail(errclass.Terminal, harms[0].reason, "undo the change of", "%s", harms[0].what).WithHint(hint)
}

// admitUndoNow asks that once more when its turn has come: a client may have deleted what the old
// values need.
func (c Change) admitUndoNow(ctx context.Context, before Baseline) error {
	if c.Options.AcceptLoss || !c.Options.Inverts {
		return nil
	}
	image, err := before.Image(ctx)
	if err != nil || image == nil {
		return err
	}
	desired := &unstructured.Unstructured{Object: c.Content}
	if !slices.ContainsFunc(c.risks(), func(r risk) bool { return fieldmerge.Differ(image, desired, r.fields...) }) {
		return nil
	}
	live, err := Read(ctx, c)
	if err != nil || live == nil {
		return err
	}
	return c.admitUndo(ctx, live, desired)
}

const accepting = "set undoOf.acceptLoss to true if that may be lost"

// destroys says what controllers would destroy for good that others have made: because of a
// change, and because of a rollback of it. What cannot be told is worth a warning.
func (c Change) destroys(ctx context.Context, before, after *unstructured.Unstructured) (lost string, untold []string, err error) {
	lost, err = c.overwritten(ctx, before, after)
	if errclass.Is(err, errclass.AccessDenied) {
		untold, err = c.warn("whether a controller would overwrite what others have made cannot be told: the ServiceAccount may not get endpoints"), nil
	}
	if err != nil || lost != "" {
		return lost, untold, err
	}
	harms, err := c.harms(ctx, moment{ahead: true}, after, before)
	for _, h := range harms {
		if h.reason == errclass.AccessDenied {
			untold = append(untold, c.warn("whether a rollback could restore it cannot be told: "+h.what)...)
		} else if lost == "" {
			lost = h.what
		}
	}
	return lost, untold, err
}
