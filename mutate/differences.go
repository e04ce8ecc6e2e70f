package mutate

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
)

// What is shown instead of the values of a sensitive object. It is the same for every
// value, so that nothing can be told from it.
const (
	maskBefore = "*** (before)"
	maskAfter  = "*** (after)"
)

// identity are the fields that say which object it is. Every change agrees with its
// target there.
var identity = []string{".apiVersion", ".kind", ".metadata.name", ".metadata.namespace"}

// Differences lists, fit to be shown, the fields that the change gives another value:
// Before is the one that they have, Now the one that they get. Either of the objects may
// be nil. What a creation adds as its marks is not listed.
func (c Change) Differences(ctx context.Context, before, after *unstructured.Unstructured) ([]errclass.Field, error) {
	if before == nil {
		after = unmarked(after)
	}
	images, err := c.images(ctx, before, after, nil)
	if err != nil {
		return nil, err
	}
	var out []errclass.Field
	for _, d := range images.Differences() {
		if slices.Contains(identity, d.Path) || d.Made && !d.SetBy(c.Content) {
			continue
		}
		field := errclass.Field{Path: c.path(d.Path), Before: c.disclosed(d.Before, maskBefore), Now: c.disclosed(d.After, maskAfter)}
		if c.Sensitive && len(out) > 0 && out[len(out)-1].Path == field.Path {
			continue // fields of one list, whose items are not told apart
		}
		out = append(out, field)
	}
	return out, nil
}

// disclosed is a value as it may be shown; empty for none.
func (c Change) disclosed(v any, mask string) string {
	switch {
	case v == nil:
		return ""
	case c.Sensitive:
		return mask
	case v == (fieldmerge.Null{}):
		return "null"
	default:
		return shown(v)
	}
}
