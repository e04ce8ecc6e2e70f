package mutate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
)

// HoldFinalizer keeps an object that is being deleted until what it has adopted is free
// of it. An object that is on its way out adopts nothing more, and while it is there the
// garbage collector deletes nothing that it owns. So the object itself is the record of
// what is under way: anyone who comes after a crash goes on from what is there.
const HoldFinalizer = "backup.janus.io/spares-adopted"

func held(obj metav1.Object) bool { return slices.Contains(obj.GetFinalizers(), HoldFinalizer) }

// adoption is the tree of an object that this change made, with what it has adopted. What
// the ServiceAccount may not look at might be adopted.
func (c Change) adoption(ctx context.Context, live *unstructured.Unstructured) (tree, error) {
	found, err := c.Environment.dependants(ctx, live, Everything)
	if err != nil {
		return tree{}, err
	}
	if _, anything := kinds.Adopts(c.Ref.GVK.GroupKind()); len(found.Unseen) > 0 && !anything {
		return tree{}, c.fail(errclass.Terminal, errclass.AccessDenied, "delete", "whether it has adopted what was there before cannot be told: the ServiceAccount may not list %s", strings.Join(found.Unseen, ", ")).
			WithHint("grant it list on them, or delete the object by hand; kubectl delete --cascade=orphan keeps what it owns")
	}
	return treeOf(live, found.All), nil
}

// deleteSparing begins the deletion of an object that has adopted others. Whether these can
// be freed is tried before anything is done.
func (c Change) deleteSparing(ctx context.Context, live *unstructured.Unstructured, t tree) error {
	for _, d := range t.adopted {
		if err := c.free(ctx, d, t, true); err != nil {
			return c.sparingDenied(err, d)
		}
	}
	for _, d := range t.between() {
		if err := c.takeDown(ctx, d, true); err != nil {
			return c.sparingDenied(err, d)
		}
	}
	if err := c.Fences.confirm(ctx, false); err != nil {
		return err
	}
	if !held(live) {
		now, err := c.setHold(ctx, c.client(), live, true, false)
		if err != nil {
			return c.sparingDenied(c.wrap(err, "hold"), nil)
		}
		live = now
	}
	if err := c.remove(ctx, VersionOf(live), metav1.DeletePropagationBackground, false); err != nil {
		return err
	}
	return c.awaitFree(t.adopted)
}

// sparingDenied is the refusal to delete what has adopted others that the ServiceAccount
// cannot free; d is nil if it is the object itself.
func (c Change) sparingDenied(cause error, d fmt.Stringer) error {
	if !errclass.Is(cause, errclass.AccessDenied) && !errclass.Is(cause, errclass.Rejected) && !errclass.Is(cause, errclass.Invalid) {
		return cause
	}
	what := "it has adopted objects that were there before, and cannot be held until they are free"
	if d != nil {
		what = "it owns " + d.String() + ", which goes with it or was there before, and cannot be freed of it"
	}
	return c.fail(errclass.Terminal, errclass.ReasonOf(cause), "delete", "%s: %w", what, cause).
		WithHint("grant the ServiceAccount patch on them, or delete the object by hand with kubectl delete --cascade=orphan")
}

func (c Change) awaitFree(adopted []Dependant) error {
	return c.fail(errclass.Retryable, errclass.Terminating, "delete", "it is being deleted, and held until %s is free of it", some(adopted))
}

// some names a few of many.
func some(list []Dependant) string {
	var names []string
	for _, d := range list {
		if len(names) == 3 {
			return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), len(list)-len(names))
		}
		names = append(names, d.String())
	}
	return strings.Join(names, ", ")
}

// goOnSparing goes on with a deletion that deleteSparing has begun: the references of what
// was adopted are taken off, then the object is let go. It may be called again after any
// outcome. What goes with the object and has adopted something itself, such as the
// ReplicaSet of a Deployment, is taken down first in the same way.
func (c Change) goOnSparing(ctx context.Context, live *unstructured.Unstructured) error {
	t, err := c.adoption(ctx, live)
	if err != nil {
		return err
	}
	if err := c.Fences.confirm(ctx, false); err != nil {
		return err
	}
	waits := false
	for _, d := range t.goes {
		if d.DeletionTimestamp == nil && (held(d) || slices.ContainsFunc(t.between(), func(b Dependant) bool { return b.UID == d.UID })) {
			if err := c.takeDown(ctx, d, false); err != nil {
				return c.sparingDenied(err, d)
			}
			waits = true // What controllers do meanwhile is looked at next time.
		}
	}
	if waits {
		return c.awaitFree(t.adopted)
	}
	for _, d := range t.adopted {
		if err := c.free(ctx, d, t, false); err != nil {
			return c.sparingDenied(err, d)
		}
	}
	if len(t.adopted) > 0 {
		if t, err = c.adoption(ctx, live); err != nil {
			return err
		}
		if len(t.adopted) > 0 {
			return c.awaitFree(t.adopted)
		}
	}
	for _, d := range t.goes {
		if held(d) {
			if _, err := c.setHold(ctx, c.Environment.clientOf(d.GVR, d.Namespace), d, false, false); err != nil && !stale(err) {
				return c.sparingDenied(errclass.Wrap(err, "remove the finalizer of", d.String(), false), d)
			}
		}
	}
	if err := c.letGo(ctx, live); err != nil {
		return err
	}
	return c.awaitGone(withoutHold(live))
}

// letGo takes the finalizer off again, whether all is free or the object is kept after all.
func (c Change) letGo(ctx context.Context, live *unstructured.Unstructured) error {
	if !held(live) {
		return nil
	}
	_, err := c.setHold(ctx, c.client(), live, false, false)
	if stale(err) {
		return c.fail(errclass.Retryable, errclass.StaleVersion, "remove the finalizer of", "it changes while its finalizer is taken off")
	}
	return c.wrap(err, "remove the finalizer of")
}

func withoutHold(live *unstructured.Unstructured) *unstructured.Unstructured {
	out := live.DeepCopy()
	out.SetFinalizers(exceptHold(live))
	return out
}

func exceptHold(obj metav1.Object) []string {
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == HoldFinalizer })
}

// setHold adds or removes the finalizer.
func (c Change) setHold(ctx context.Context, client dynamic.ResourceInterface, obj metav1.Object, on, dry bool) (*unstructured.Unstructured, error) {
	finalizers := exceptHold(obj)
	if on {
		finalizers = append(finalizers, HoldFinalizer)
	}
	return c.patchMetadata(ctx, client, obj, "finalizers", finalizers, dry)
}

// takeDown deletes what goes with the object anyway, and holds it until what it has adopted
// is free of it.
func (c Change) takeDown(ctx context.Context, d Dependant, dry bool) error {
	client, version := c.Environment.clientOf(d.GVR, d.Namespace), Version{UID: d.UID, ResourceVersion: d.ResourceVersion}
	if !held(d) {
		now, err := c.setHold(ctx, client, d, true, dry)
		if err != nil {
			return c.passing(err, "hold", d)
		}
		if !dry {
			version = VersionOf(now)
		}
	}
	background := metav1.DeletePropagationBackground
	err := client.Delete(ctx, d.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &version.UID, ResourceVersion: &version.ResourceVersion},
		PropagationPolicy: &background, DryRun: dryRun(dry),
	})
	return c.passing(err, "delete", d)
}

// free takes the references to what goes off an object that stays.
func (c Change) free(ctx context.Context, d Dependant, t tree, dry bool) error {
	left := slices.DeleteFunc(slices.Clone(d.OwnerReferences), func(owner metav1.OwnerReference) bool { return t.owners[owner.UID] })
	_, err := c.patchMetadata(ctx, c.Environment.clientOf(d.GVR, d.Namespace), d, "ownerReferences", left, dry)
	return c.passing(err, "take the owner reference off", d)
}

// passing is an error of a write to a dependant. One that was changed or has gone meanwhile
// is looked at again.
func (c Change) passing(err error, op string, d Dependant) error {
	if stale(err) {
		return c.fail(errclass.Retryable, errclass.StaleVersion, "delete", "%s, which it owns, changes meanwhile", d)
	}
	return errclass.Wrap(err, op, d.String(), false)
}

// patchMetadata sets one list of the metadata of an object as it was seen.
func (c Change) patchMetadata(ctx context.Context, client dynamic.ResourceInterface, obj metav1.Object, field string, list any, dry bool) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion(), field: list,
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	return client.Patch(ctx, obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: c.Names.Manager, DryRun: dryRun(dry)})
}
