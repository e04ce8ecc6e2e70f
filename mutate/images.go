package mutate

import (
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
)

// images puts together what a comparison of the target works with.
func (c Change) images(ctx context.Context, before, after, live *unstructured.Unstructured) (fieldmerge.Images, error) {
	images := fieldmerge.Images{Before: before, After: after, Live: live, Ours: c.Names.ours}
	_, writesStatus := c.Content["status"]
	images.Status = writesStatus && fieldmerge.Custom(c.Ref.GVK.GroupKind()) && !fieldmerge.StatusApart(before) && !fieldmerge.StatusApart(live)
	var err error
	images.Type, err = c.typeOf(ctx)
	return images, err
}

// typeOf tells how the fields of the kind merge, as far as that is known.
func (c Change) typeOf(ctx context.Context) (typed.ParseableType, error) {
	if c.Environment.Type == nil {
		return typed.ParseableType{}, nil
	}
	t, err := c.Environment.Type(ctx)
	return t, c.wrap(err, "find the schema of")
}

// maxValue is how many bytes of a value are shown.
const maxValue = 200

// fields makes fields fit to be shown: values as JSON, cut, and none of a
// sensitive object.
func (c Change) fields(found []fieldmerge.FieldConflict) []errclass.Field {
	var out []errclass.Field
	for _, f := range found {
		field := errclass.Field{Path: c.path(f.Path), Managers: printable(f.Managers), Subresource: f.Subresource}
		if !c.Sensitive {
			field.Now, field.Before = shown(f.Now), shown(f.Before)
		}
		out = append(out, field)
	}
	return out
}

func printable(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, errclass.Printable(name))
	}
	return out
}

// shown is a value as JSON; empty for none.
func shown(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return errclass.Cut(errclass.Printable(string(text)), maxValue)
}

// listed names fields in a message: each with its managers, its value and the one
// that it had.
func listed(fields []errclass.Field) string {
	var out []string
	for i, f := range fields {
		if i == 5 {
			out = append(out, "and more")
			break
		}
		text := f.Path
		if len(f.Managers) > 0 {
			text += " of " + strings.Join(f.Managers, ", ")
		}
		switch {
		case f.Now != "" && f.Before != "":
			text += ", now " + f.Now + ", was " + f.Before
		case f.Now != "":
			text += ", now " + f.Now
		case f.Before != "":
			text += ", removed, was " + f.Before
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}
