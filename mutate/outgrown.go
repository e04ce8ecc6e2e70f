package mutate

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
)

// outgrown says that a custom resource has a value which its definition does not allow any more, and
// which the change would replace: the API server keeps such a value as long as nobody touches it, and
// lets nobody write it again. What the definition allows is asked by a dry run of a creation. It is
// not asked about an object that is younger than the definition, nor where an earlier item has changed
// the definition: a rollback restores that too.
func (c Change) outgrown(ctx context.Context, definition, before, after *unstructured.Unstructured) (string, error) {
	if !mayBeOutgrown(definition, before) || !differInContent(before.Object, after.Object) || c.createdOtherwise(definition, before, after) {
		return "", nil
	}
	if c.Environment.Redefined != nil {
		if redefined, err := c.Environment.Redefined(ctx); err != nil || len(redefined) > 0 {
			return "", c.wrap(err, "find the definition of")
		}
	}
	_, err := c.createAgain(ctx, before)
	class := errclass.ClassOf(err)
	switch {
	case err == nil:
		return "", nil
	case class == errclass.Retryable, class == errclass.Unknown:
		return "", c.wrap(err, "rehearse the re-creation of")
	case errclass.RefuserOf(err) == "" && slices.ContainsFunc(refusedFields(err), func(path string) bool { return differAt(before.Object, after.Object, path) }):
		return "its definition does not allow any more what it has now: " + c.wrap(err, "rehearse the re-creation of").Error(), nil
	default:
		return "", nil // Refused for its name, for lack of a right, or by a webhook, which says nothing of a rollback.
	}
}

// createdOtherwise reports whether a rule may ask something else of the creation of an object than of the
// update that a rollback is.
func (c Change) createdOtherwise(definition, before, after *unstructured.Unstructured) bool {
	rules := kinds.TransitionRules(definition.Object, c.Ref.GVK.Version, before.Object, after.Object)
	return slices.ContainsFunc(rules, func(r kinds.TransitionRule) bool { return r.Creation })
}

// mayBeOutgrown reports whether a definition may have been changed after an object was created. Times
// are kept by the second.
func mayBeOutgrown(definition, before *unstructured.Unstructured) bool {
	if definition.GetGeneration() == 1 {
		return false
	}
	entries := definition.GetManagedFields()
	if len(entries) == 0 {
		return true
	}
	created := before.GetCreationTimestamp()
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Subresource == "" && (e.Time == nil || !e.Time.Before(&created))
	})
}

// differInContent reports whether two versions of an object differ in what a schema is about.
func differInContent(before, after map[string]any) bool {
	for _, object := range []map[string]any{before, after} {
		for name := range object {
			if name != "metadata" && name != "status" && !reflect.DeepEqual(before[name], after[name]) {
				return true
			}
		}
	}
	return false
}

// differAt reports whether two values differ at a path as the API server writes it, such as
// spec.rules[0].host or spec.limits[cpu]. A key may have dots in it, and is written either way.
func differAt(before, after any, path string) bool {
	if path == "" {
		return !reflect.DeepEqual(before, after)
	}
	if path[0] != '[' && path[0] != '.' {
		path = "." + path
	}
	was, is := members(before), members(after)
	for _, in := range []map[string]any{was, is} {
		for name := range in {
			rest, begins := strings.CutPrefix(path, "."+name)
			begins = begins && (rest == "" || rest[0] == '.' || rest[0] == '[')
			if !begins {
				rest, begins = strings.CutPrefix(path, "["+name+"]")
			}
			if begins && differAt(was[name], is[name], rest) {
				return true
			}
		}
	}
	return false
}

// members are what a map or a list has, by its key or number.
func members(value any) map[string]any {
	switch value := value.(type) {
	case map[string]any:
		return value
	case []any:
		numbered := make(map[string]any, len(value))
		for n, each := range value {
			numbered[strconv.Itoa(n)] = each
		}
		return numbered
	default:
		return nil
	}
}
