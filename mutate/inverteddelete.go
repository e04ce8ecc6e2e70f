package mutate

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/snapshot"
)

// The undo of a Delete is a Create of what was deleted.

// again is what was deleted, with the owners that it can have. If it was created again since, and
// stays, the object keeps the marks of who has made it.
func (r *rewinding) again(ctx context.Context, as api.ChangeType, live *unstructured.Unstructured) (map[string]any, error) {
	before := r.state
	if status, _ := before.Object["status"].(map[string]any); len(status) > 0 && fieldmerge.Custom(r.Ref.GVK.GroupKind()) && fieldmerge.StatusApart(before) {
		r.notes = append(r.notes, r.warn(".status is not restored, because it is for controllers to write")...)
	}
	lost, err := r.lost(ctx, before)
	if err != nil {
		return nil, err
	}
	for _, text := range lost {
		r.notes = append(r.notes, r.warn(text)...)
	}
	again, err := r.withOwners(ctx, before, nil)
	if err != nil {
		return nil, err
	}
	out := unmarked(snapshot.ForCreate(again)) // It is another change that makes it now.
	if as == api.Update && live != nil {
		keepMarks(out, live)
	}
	return out.Object, nil
}

// withOwners returns an object with the references to owners that it can have: to one that was
// created again with its new uid, to one that is gone none, or the garbage collector would delete
// it. Those that it has already stay. While one is to be created first, it has no uid yet.
func (r *rewinding) withOwners(ctx context.Context, obj *unstructured.Unstructured, has []metav1.OwnerReference) (*unstructured.Unstructured, error) {
	now := map[types.UID]types.UID{}
	for _, owner := range has {
		now[owner.UID] = owner.UID
	}
	for _, owner := range obj.GetOwnerReferences() {
		if now[owner.UID] != "" {
			continue
		}
		if r.toBeCreated(owner) {
			return nil, r.fail(errclass.Terminal, errclass.OwnerGone, "restore the owners of", "%s %s is created by an earlier change", owner.Kind, owner.Name)
		}
		uid, err := r.ownerUID(ctx, owner)
		if err != nil {
			return nil, err
		}
		if now[owner.UID] = uid; uid == "" {
			r.notes = append(r.notes, r.warn(fmt.Sprintf("the reference to its owner %s %s is left out, because that is gone", owner.Kind, owner.Name))...)
		}
	}
	out, err := fieldmerge.Reown(obj, func(old types.UID) types.UID { return now[old] })
	if err != nil {
		return nil, r.unreadableOwners(err)
	}
	return out, nil
}

// ownerUID is the uid of the object that has the name of an owner now; empty if none has.
func (c Change) ownerUID(ctx context.Context, owner metav1.OwnerReference) (types.UID, error) {
	if c.Environment.OwnerRefs == nil {
		return owner.UID, nil
	}
	uid, known, err := c.owner(ctx, owner)
	if !known {
		return owner.UID, err
	}
	return uid, err
}
