package mutate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
		if slices.Contains(identity, d.Path) || (d.Made || before == nil && c.placeholder(d)) && !d.SetBy(c.Content) {
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

// placeholders are what names and values have that the API server makes up for a dry run: the uid of
// a Job in the labels of its Pods, and the name of a volume that admission adds to a Pod.
var placeholders = map[schema.GroupKind]string{
	{Group: "batch", Kind: "Job"}: "controller-uid",
	{Kind: "Pod"}:                 `"kube-api-access-`,
}

// placeholder reports whether the value that a dry run shows for a field of a new object is made up
// for that dry run: the API server chooses it when the object is made, as it does addresses.
func (c Change) placeholder(d fieldmerge.Difference) bool {
	return d.Allocated || c.madeUp(d.Path, d.After)
}

// madeUp reports whether a field or its value bears the sign of what is made up for a dry run.
func (c Change) madeUp(path string, value any) bool {
	sign, some := placeholders[c.Ref.GVK.GroupKind()]
	if !some {
		return false
	}
	text, err := json.Marshal(value)
	return strings.Contains(path, sign) || err == nil && strings.Contains(string(text), sign)
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
