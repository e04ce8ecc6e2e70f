package mutate

import (
	"context"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// admitAnswer checks whether the target would become what the content says. Of a null that
// the API server takes for something else than leaving a field out, the change is refused;
// so it is if nothing would come of it. Anything else that admission, or the schema of the
// kind, makes of what the content sets is warned of.
func (c Change) admitAnswer(ctx context.Context, s Strategy, before, after *unstructured.Unstructured) ([]string, error) {
	asked, builtIn := c.asked().Object, !fieldmerge.Custom(c.Ref.GVK.GroupKind())
	if len(fieldmerge.Answers(typed.ParseableType{}, asked, after.Object, builtIn)) == 0 {
		return nil, nil // That takes no schema to see, which costs something to read.
	}
	images, err := c.images(ctx, before, after, nil)
	if err != nil {
		return nil, err
	}
	var others, nulls []fieldmerge.Answer
	for _, a := range fieldmerge.Answers(images.Type, asked, after.Object, builtIn) {
		if a.Before == (fieldmerge.Null{}) {
			nulls = append(nulls, a)
		} else {
			others = append(others, a)
		}
	}
	warnings, err := c.admitNulls(s, before, nulls)
	if err != nil || len(others) == 0 {
		return warnings, err
	}
	fields := c.answered(others)
	if before != nil && len(images.Differences()) == 0 {
		return nil, c.fail(errclass.Terminal, errclass.Invalid, "prepare", "the change would have no effect, because the API server does not store what the content says: %s", unlike(fields)).
			WithHint("find what changes it, such as a mutating webhook or policy, or leave the fields out")
	}
	return append(warnings, c.warn(wouldNotStore+unlike(fields))...), nil
}

// Warnings say what of the content is not so in the target, which this change has made: the
// API server has stored something else, though the dry run did not show it, as where a
// webhook or a policy has come since. What another writer has changed by now is not looked
// at, nor is a null, about which it was decided before.
func (c Change) Warnings(ctx context.Context, target *unstructured.Unstructured) []string {
	if c.Content == nil {
		return nil
	}
	asked, builtIn := c.asked().Object, !fieldmerge.Custom(c.Ref.GVK.GroupKind())
	if len(fieldmerge.Answers(typed.ParseableType{}, asked, target.Object, builtIn)) == 0 {
		return nil
	}
	t, err := c.typeOf(ctx)
	if err != nil {
		t = typed.ParseableType{} // The lists of a kind whose schema cannot be read are compared as wholes.
	}
	var found []fieldmerge.FieldConflict
	for _, a := range fieldmerge.Answers(t, asked, target.Object, builtIn) {
		if a.Before != (fieldmerge.Null{}) {
			found = append(found, a.FieldConflict)
		}
	}
	others := func(e metav1.ManagedFieldsEntry) bool { return !c.Names.ours(e.Manager) }
	if found = fieldmerge.WrittenBy(found, target, others); len(found) == 0 {
		return nil
	}
	return c.warn(notStored + unlike(c.fields(found)))
}

const (
	notStored     = "the API server did not store what the content says: "
	wouldNotStore = "the API server would not store what the content says: "
)

// Foretold is what a warning about a change that is made would have been before it was made.
func Foretold(warning string) string { return strings.Replace(warning, notStored, wouldNotStore, 1) }

func (c Change) answered(list []fieldmerge.Answer) []errclass.Field {
	var found []fieldmerge.FieldConflict
	for _, a := range list {
		found = append(found, a.FieldConflict)
	}
	return c.fields(found)
}

// asked is the content as it is sent, with the nulls that are in the stringData of a Secret.
func (c Change) asked() *unstructured.Unstructured {
	out := c.body(Version{})
	text, _ := c.Content["stringData"].(map[string]any)
	data, _ := out.Object["data"].(map[string]any)
	if c.Ref.GVK.GroupKind() != target.SecretKind {
		return out
	}
	data = maps.Clone(data)
	for key, value := range text {
		if value == nil && data != nil {
			data[key] = nil
		}
	}
	if data != nil {
		out.Object["data"] = data
	}
	return out
}

// admitNulls decides about fields that are null in the content, and that the target would
// have all the same. Null says to leave a field out, and that is what the API server makes
// of it in a Create and an Update, but for the entries of maps, of which it makes empty
// ones: that is warned of. An apply removes little, and a Patch is refused.
func (c Change) admitNulls(s Strategy, before *unstructured.Unstructured, nulls []fieldmerge.Answer) ([]string, error) {
	_, patches := s.(patchStrategy)
	var refused, kept []fieldmerge.Answer
	for _, a := range nulls {
		was, had := any(nil), false
		if before != nil {
			was, had = a.In(before.Object)
		}
		same := had && fieldmerge.SameValue(was, a.Now)
		switch {
		case !patches && !a.Entry:
		case !patches, same && fieldmerge.Hollow(was):
			kept = append(kept, a)
		case same && fieldmerge.Tracked(before) && len(a.Owners(before)) == 0:
			kept = append(kept, a)
		case !had && !a.Entry:
		default:
			refused = append(refused, a)
		}
	}
	if len(refused) > 0 {
		fields := c.answered(refused)
		var paths []string
		for _, f := range fields {
			paths = append(paths, f.Path)
		}
		err := c.fail(errclass.Terminal, errclass.Invalid, "prepare", "a Patch cannot remove a field, and null would not: %s", strings.Join(paths, ", ")).
			WithHint("remove it with an Update that leaves it out, or leave it out of the Patch")
		err.Fields = fields
		return nil, err
	}
	var out []string
	for _, f := range c.answered(kept) {
		value := f.Now
		if value == "" {
			value = "a value"
		}
		out = append(out, c.warn(fmt.Sprintf("%s is null in the content, which removes nothing: it is %s", f.Path, value))...)
	}
	return out, nil
}
