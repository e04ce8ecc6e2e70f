package mutate

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
)

// statusState is what became of the status of a re-created object.
type statusState int

const (
	// statusKept means that there was nothing to do.
	statusKept statusState = iota
	// statusRestored means that it is as it was, and owned by those who owned it.
	statusRestored
	// statusTheirs means that others have written it since.
	statusTheirs
)

// restoreStatus puts back the status of a custom resource, which a creation drops.
// The status of the kinds of Kubernetes itself is what its controllers observe, and
// stays theirs.
func (c Change) restoreStatus(ctx context.Context, live, before *unstructured.Unstructured) (*unstructured.Unstructured, statusState, error) {
	was, ok := before.Object["status"]
	switch {
	case !ok || !fieldmerge.Custom(c.Ref.GVK.GroupKind()):
		return live, statusKept, nil
	case c.statusWrittenSince(live):
		return live, statusTheirs, nil
	case reflect.DeepEqual(was, live.Object["status"]):
		return live, statusRestored, nil
	}
	stored, err := c.putStatus(ctx, live, was, false)
	switch {
	case errclass.Is(err, errclass.NotFound):
		return c.withoutStatus(ctx, live, err)
	case errclass.Is(err, errclass.AccessDenied):
		return live, statusKept, c.statusDenied("re-create", "it was re-created without its status", err)
	case err != nil:
		return nil, statusKept, err
	}
	return stored, statusRestored, nil
}

// withoutStatus tells a kind that has no status subresource from an object that is
// gone.
func (c Change) withoutStatus(ctx context.Context, live *unstructured.Unstructured, cause error) (*unstructured.Unstructured, statusState, error) {
	now, err := Read(ctx, c)
	if err != nil {
		return nil, statusKept, err
	}
	if !sameObject(now, live.GetUID()) {
		return nil, statusKept, cause
	}
	return now, statusKept, nil
}

func (c Change) statusWrittenSince(live *unstructured.Unstructured) bool {
	for _, e := range live.GetManagedFields() {
		if e.Subresource == "status" && !c.Names.ours(e.Manager) {
			return true
		}
	}
	return false
}

// putStatus writes the status as a whole, with a JSON patch: a merge patch cannot
// set a null.
func (c Change) putStatus(ctx context.Context, meets *unstructured.Unstructured, status any, dry bool) (*unstructured.Unstructured, error) {
	body, err := json.Marshal([]operation{
		{"add", "/metadata/uid", string(meets.GetUID())},
		{"add", "/metadata/resourceVersion", meets.GetResourceVersion()},
		{"add", "/status", status},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	options := c.patchOptions()
	options.DryRun = dryRun(dry)
	return c.client().Patch(ctx, c.Ref.Name, types.JSONPatchType, body, options, "status")
}

func (c Change) statusDenied(op, what string, cause error) error {
	return c.fail(errclass.Terminal, errclass.AccessDenied, op, "%s: %w", what, c.wrap(cause, "write the status of")).
		WithHint(fmt.Sprintf("grant the ServiceAccount patch on %s/status", c.Ref.GVR.GroupResource()))
}

// rehearseStatus finds out whether the status could be put back, were the object
// re-created: by a dry run of writing the one that it has.
func (c Change) rehearseStatus(ctx context.Context, before *unstructured.Unstructured) error {
	was, ok := before.Object["status"]
	if !ok || !fieldmerge.Custom(c.Ref.GVK.GroupKind()) || ownsStatus(before) {
		return nil
	}
	_, err := c.putStatus(ctx, before, was, true)
	switch {
	case err == nil, stale(err):
		// Changed or gone meanwhile, or without a status subresource: the right was there.
		return nil
	case errclass.Is(err, errclass.AccessDenied):
		return c.statusDenied("prepare the deletion of", "the deletion could not be rolled back completely", err)
	default:
		return c.wrap(err, "dry-run the status of")
	}
}

// ownsStatus reports whether the status of an object was written like any other
// field: its kind then has no status subresource.
func ownsStatus(obj *unstructured.Unstructured) bool {
	if fieldmerge.StatusApart(obj) {
		return false
	}
	for _, e := range obj.GetManagedFields() {
		var fields map[string]any
		if e.Subresource == "" && e.FieldsV1 != nil && json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) == nil {
			if _, has := fields["f:status"]; has {
				return true
			}
		}
	}
	return false
}
