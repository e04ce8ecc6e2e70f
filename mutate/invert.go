package mutate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/snapshot"
)

// Original is a change of a committed Transaction that is to be inverted.
type Original struct {
	// Record is what was kept of it.
	Record snapshot.Record
	// First is the target before the first of the changes that the Transaction has made
	// to it in a row, of which this is one: who owned its fields then owns them now.
	First *unstructured.Unstructured
	// Marker is what the object carries if the change has made it.
	Marker string
	// Overwrite is set where that is to be overwritten which others have changed since.
	Overwrite bool
	// Recreated is set when the target was created again by an earlier change of the
	// Transaction that inverts this one: it has another uid.
	Recreated bool
}

// Owners are who owned the fields of the target before the change, and before those that
// the Transaction has made to it in a row.
func (of Original) Owners() []metav1.ManagedFieldsEntry {
	switch {
	case of.First != nil:
		return of.First.GetManagedFields()
	case of.Record.Before != nil:
		return of.Record.Before.GetManagedFields()
	default:
		return nil
	}
}

// InverseOf is the type of the change that undoes another; empty if its own is none.
func InverseOf(t api.ChangeType) api.ChangeType { return strategies[t].inverse }

// Invert returns the content of c, a change that undoes another after that has
// committed, for the target as it is now. It is a conflict if another client has changed since
// what the other has made, unless that is to be overwritten. There may be something to say
// beside. The content is nil for a Delete.
func (c Change) Invert(ctx context.Context, of Original, live *unstructured.Unstructured) (content map[string]any, notes []string, err error) {
	known, ok := strategies[api.ChangeType(of.Record.Type)]
	if !ok {
		return nil, nil, c.fail(errclass.Terminal, errclass.Invalid, "undo the change of", "unknown type of change %q", of.Record.Type)
	}
	return known.invert(c, ctx, of, live)
}

// invertCreate checks whether an object is as the creation has left it.
func (c Change) invertCreate(ctx context.Context, of Original, live *unstructured.Unstructured) (content map[string]any, notes []string, err error) {
	if live == nil {
		return nil, nil, nil
	}
	if live.GetAnnotations()[MarkerAnnotation] != of.Marker {
		return nil, nil, c.fail(errclass.Conflict, errclass.AlreadyExists, "undo the creation of", "it is not the object that was created: its annotation %s is another", MarkerAnnotation).
			WithHint("it is kept; delete it by hand if it is not wanted")
	}
	found, err := fieldmerge.Foreign(live, func(manager string) bool { return family(manager) || fieldmerge.ControlPlane(manager) })
	if err != nil {
		return nil, nil, c.unreadableOwners(err)
	}
	found = of.withoutHandedOver(found)
	found = together(found, fieldmerge.NewOwners(live, of.Record.After, family))
	if of.Record.After != nil {
		images, err := c.images(ctx, of.Record.After, nil, live)
		if err != nil {
			return nil, nil, err
		}
		for _, f := range images.Drift() {
			// What nobody owns the API server has chosen when it was created, and not in the
			// dry run.
			if !f.ByControllers() && (len(f.Managers) > 0 || f.Now == nil) {
				found = together(found, []fieldmerge.FieldConflict{f})
			}
		}
	}
	if notes, err = c.despite(of, "undo the creation of", found); err != nil {
		return nil, nil, err
	}
	more, err := c.admitAdopted(ctx, live)
	return nil, append(notes, more...), err
}

// withoutHandedOver leaves out what the commit itself has left to others, and they have not
// changed since.
func (of Original) withoutHandedOver(found []fieldmerge.FieldConflict) []fieldmerge.FieldConflict {
	if of.Record.After == nil {
		return found
	}
	leftTo := []string{of.Record.FieldManager}
	for _, e := range of.Record.Owners {
		leftTo = append(leftTo, e.Manager)
	}
	return slices.DeleteFunc(found, func(f fieldmerge.FieldConflict) bool {
		foreign := slices.ContainsFunc(f.Managers, func(manager string) bool { return !slices.Contains(leftTo, manager) })
		return !foreign && len(f.Managers) > 0 && f.Same(of.Record.After)
	})
}

// despite is the conflict of what others have changed since, or what is reported if
// that is to be overwritten.
func (c Change) despite(of Original, op string, found []fieldmerge.FieldConflict) ([]string, error) {
	switch {
	case len(found) == 0:
		return nil, nil
	case of.Overwrite:
		return c.warn("another client has changed it since, which is overwritten, because conflictPolicy is Force: " + listed(c.fields(found))), nil
	default:
		return nil, c.changedSince(op, found)
	}
}

// changedSince is the conflict of an object that others have changed since the change
// that is to be undone.
func (c Change) changedSince(op string, found []fieldmerge.FieldConflict) error {
	fields := c.fields(found)
	err := c.fail(errclass.Conflict, errclass.FieldConflict, op, "another client has changed it since: %s", listed(fields)).
		WithHint("undo what has come after it first, or set conflictPolicy to Force")
	err.Fields = fields
	return err
}

// invertDelete returns what is to be created again, with the owners that it can have.
func (c Change) invertDelete(ctx context.Context, of Original, _ *unstructured.Unstructured) (map[string]any, []string, error) {
	before := of.Record.Before
	if before == nil {
		return nil, nil, c.incomplete(of.Record)
	}
	now := map[types.UID]types.UID{}
	var notes []string
	for _, owner := range before.GetOwnerReferences() {
		uid, err := c.ownerUID(ctx, owner)
		if err != nil {
			return nil, nil, err
		}
		if now[owner.UID] = uid; uid == "" {
			notes = append(notes, c.warn(fmt.Sprintf("the reference to its owner %s %s is left out, because that is gone", owner.Kind, owner.Name))...)
		}
	}
	if status, _ := before.Object["status"].(map[string]any); len(status) > 0 && fieldmerge.Custom(c.Ref.GVK.GroupKind()) && statusApart(before) {
		notes = append(notes, c.warn(".status is not restored, because it is for controllers to write")...)
	}
	again, err := fieldmerge.Reown(before, func(old types.UID) types.UID { return now[old] })
	if err != nil {
		return nil, nil, c.unreadableOwners(err)
	}
	content := unmarked(snapshot.ForCreate(again)) // It is the new change that makes it now.
	return content.Object, notes, nil
}

// ownerUID is the uid of the object that has the name of an owner now; empty if none has.
func (c Change) ownerUID(ctx context.Context, owner metav1.OwnerReference) (types.UID, error) {
	if c.Environment.OwnerRefs == nil {
		return owner.UID, nil
	}
	uid, known, err := c.Environment.OwnerRefs.Owner(ctx, owner)
	if !known {
		return owner.UID, err
	}
	return uid, err
}

// invertWrite returns the object as it is to be: as it is now, with the fields of the change
// as they were before it.
func (c Change) invertWrite(ctx context.Context, of Original, live *unstructured.Unstructured) (map[string]any, []string, error) {
	const op = "undo the change of"
	record := of.Record
	switch {
	case record.Before == nil || record.After == nil:
		return nil, nil, c.fail(errclass.Terminal, errclass.Irreversible, op, "what the change made of it was not known when it was prepared").
			WithHint("compare it with its before-image and correct it by hand")
	case live == nil:
		return nil, nil, c.fail(errclass.Conflict, errclass.NotFound, op, "another client has deleted it since").
			WithHint("create it again if it is still wanted")
	case !of.Recreated && !sameObject(live, record.Before.GetUID()):
		return nil, nil, c.fail(errclass.Conflict, errclass.AlreadyExists, op, "another client has deleted and re-created it since").WithHint("theirs is kept")
	}
	images, err := c.images(ctx, record.Before, record.After, live)
	if err != nil {
		return nil, nil, err
	}
	images.Force = of.Overwrite
	images.Ours, images.HandedOver, images.Former, images.LeftTo, images.Given = family, true, of.First, record.FieldManager, record.Owners
	restored := images.Restore()
	notes, err := c.despite(of, op, restored.Conflicts)
	if err != nil {
		return nil, nil, err
	}
	if len(restored.Reclaimed) > 0 {
		var paths []string
		for _, f := range c.fields(restored.Reclaimed) {
			paths = append(paths, f.Path)
		}
		notes = append(notes, c.warn("left as they are, because who scales it has written them since: "+strings.Join(paths, ", "))...)
	}
	out := fieldmerge.Strip(restored.Desired)
	if status, there := restored.Desired.Object["status"]; there && fieldmerge.Custom(c.Ref.GVK.GroupKind()) && !statusApart(live) {
		// Where it is no subresource it is a field like any other.
		out.Object["status"] = status
	}
	return out.Object, notes, nil
}
