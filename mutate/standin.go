package mutate

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/snapshot"
)

// Some objects a controller re-creates by itself once they are deleted: the Endpoints of a
// Service, the ReplicaSet of a Deployment, the ServiceAccount default. No person has made
// such a stand-in. It is replaced by what was there, on condition that nobody has written
// it since it was seen, and where it is the same already, only its field owners are
// restored.

// givenEmpty are objects that the control plane puts into every namespace without any
// content. Nothing is tracked of their creation, so they have no field manager.
var givenEmpty = map[schema.GroupKind]string{{Kind: "ServiceAccount"}: "default"}

// standIn reports whether nobody but the control plane has written an object.
func (c Change) standIn(live *unstructured.Unstructured) bool {
	entries := live.GetManagedFields()
	if len(entries) == 0 {
		return hollow(live) && givenEmpty[c.Ref.GVK.GroupKind()] == c.Ref.Name
	}
	return !slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return !fieldmerge.ControlPlane(e.Manager) })
}

// replace gives a stand-in the content that the deleted object had. As long as other
// changes are to be rolled back, the controller may be at work because of one of them, and
// would write it again.
func (c Change) replace(ctx context.Context, live, wanted *unstructured.Unstructured, settled bool) (*unstructured.Unstructured, error) {
	if live.GetDeletionTimestamp() != nil {
		return nil, c.awaitGone(live)
	}
	if !settled {
		return nil, c.fail(errclass.Terminal, errclass.ControllerMade, "re-create", "%s has re-created it since it was deleted", makers(live)).
			WithHint("it is replaced when the other changes are rolled back")
	}
	if err := c.Fences.confirm(ctx, false); err != nil {
		return nil, err
	}
	after, err := c.patchValues(ctx, live, inPlaceOf(live, wanted))
	if errclass.Is(err, errclass.Invalid) && !wrongUID(err) {
		return nil, c.fail(errclass.Terminal, errclass.ControllerMade, "re-create", "%s has re-created it since it was deleted, and it cannot be replaced: %w",
			makers(live), c.wrap(err, "patch")).
			WithHint("the controller's is kept; compare it with the before-image")
	}
	return after, err
}

// makers names who has written a stand-in.
func makers(live *unstructured.Unstructured) string {
	var names []string
	for _, e := range live.GetManagedFields() {
		if !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	if len(names) == 0 {
		return "the control plane"
	}
	return strings.Join(names, ", ")
}

// inPlaceOf is a live object with the content of another, and with its own identity and
// status.
func inPlaceOf(live, wanted *unstructured.Unstructured) *unstructured.Unstructured {
	out := snapshot.ForCreate(wanted)
	meta, _ := out.Object["metadata"].(map[string]any)
	own, _ := live.Object["metadata"].(map[string]any)
	for name, value := range own {
		switch name {
		case "labels", "annotations", "ownerReferences", "finalizers":
		default:
			meta[name] = value
		}
	}
	if status, there := live.Object["status"]; there {
		out.Object["status"] = status
	} else {
		delete(out.Object, "status")
	}
	return out
}

// withoutStandIns takes off an object what the control plane owns since it was re-created,
// as far as that was there before: it has its old owners again, with their times.
func withoutStandIns(live, wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var kept []metav1.ManagedFieldsEntry
	for _, e := range live.GetManagedFields() {
		stray := false
		if fieldmerge.ControlPlane(e.Manager) && e.Subresource == "" {
			one := live.DeepCopy()
			one.SetManagedFields([]metav1.ManagedFieldsEntry{e})
			fields, err := fieldmerge.Foreign(one, func(string) bool { return false })
			if err != nil {
				return nil, err
			}
			stray = !slices.ContainsFunc(fields, func(f fieldmerge.FieldConflict) bool { return !f.SetBy(wanted.Object) })
		}
		if !stray {
			kept = append(kept, e)
		}
	}
	if len(kept) == len(live.GetManagedFields()) {
		return live, nil
	}
	out := live.DeepCopy()
	out.SetManagedFields(kept)
	return out, nil
}
