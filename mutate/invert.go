package mutate

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	// Since names what made the change, where several are inverted by one: another client
	// may have come after any of them.
	Since string
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

// Invert returns the content of c, a change of a type that undoes others after they have
// committed, the newest first, for the target as it is now, and who is to own its fields. It is a
// conflict if another client has changed since what one of the others has made, unless that is to
// be overwritten. There may be something to say beside. The content is nil for a Delete.
//
// Several changes are undone one after the other, each on what undoing the one before it leaves.
// So it shows whether another client came in between, and what nobody of them has changed stays.
func (c Change) Invert(ctx context.Context, as api.ChangeType, of []Original, live *unstructured.Unstructured) (content map[string]any, owners []metav1.ManagedFieldsEntry, notes []string, err error) {
	r := rewinding{Change: c, state: live, real: true}
	for n, one := range of {
		r.begun = n > 0
		known, ok := strategies[api.ChangeType(one.Record.Type)]
		if !ok {
			return nil, nil, nil, c.fail(errclass.Terminal, errclass.Invalid, "undo the change of", "unknown type of change %q", one.Record.Type)
		}
		if err := known.rewind(&r, ctx, one); err != nil {
			return nil, nil, nil, err
		}
	}
	content, err = r.content(ctx, as, live)
	return content, r.owners(as, of), r.notes, err
}

// rewinding is a target on its way back: as it is, without what was undone so far.
type rewinding struct {
	Change
	// state is nil for one that is not there. Its managedFields tell who owns its fields.
	state *unstructured.Unstructured
	// real says that the state is made of the object that is there now, and not of one that was
	// deleted since.
	real bool
	// begun is set once the newest change is undone.
	begun bool
	notes []string
}

// uncreate checks whether the object is as the creation has left it, and takes it away.
func (r *rewinding) uncreate(ctx context.Context, of Original) error {
	if r.state == nil {
		if r.begun {
			r.notes = append(r.notes, r.warn("another client had deleted it after "+of.Since)...)
		}
		return nil
	}
	const op = "undo the creation of"
	if r.state.GetAnnotations()[MarkerAnnotation] != of.Marker {
		return r.fail(errclass.Conflict, errclass.AlreadyExists, op, "it is not the object that was created%s: its annotation %s is another", of.by(), MarkerAnnotation).
			WithHint("it is kept; delete it by hand if it is not wanted")
	}
	found, err := fieldmerge.Foreign(r.state, func(manager string) bool { return family(manager) || fieldmerge.ControlPlane(manager) })
	if err != nil {
		return r.unreadableOwners(err)
	}
	found = of.withoutHandedOver(found)
	found = together(found, fieldmerge.NewOwners(r.state, of.Record.After, family))
	if of.Record.After != nil {
		images, err := r.images(ctx, of.Record.After, nil, r.state)
		if err != nil {
			return err
		}
		for _, f := range images.Drift() {
			// What nobody owns the API server has chosen when it was created, and not in the
			// dry run; and what it has chosen in that is not there.
			if !f.ByControllers() && (len(f.Managers) > 0 || f.Now == nil && !r.madeUp(f.Path, f.Before)) {
				found = together(found, []fieldmerge.FieldConflict{f})
			}
		}
	}
	if err := r.despite(of, op, found); err != nil {
		return err
	}
	r.state = nil
	return nil
}

// by names what made the change, where that is to be told.
func (of Original) by() string {
	if of.Since == "" {
		return ""
	}
	return " by " + of.Since
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

// despite is the conflict of what others have changed since, unless that is to be overwritten,
// which is reported then.
func (r *rewinding) despite(of Original, op string, found []fieldmerge.FieldConflict) error {
	switch {
	case len(found) == 0:
		return nil
	case of.Overwrite:
		r.notes = append(r.notes, r.warn("another client has changed it"+of.since()+", which is overwritten, because conflictPolicy is Force: "+listed(r.fields(found)))...)
		return nil
	default:
		return r.changedSince(of, op, found)
	}
}

// since says since when another client has changed something.
func (of Original) since() string {
	if of.Since == "" {
		return " since"
	}
	return " since " + of.Since
}

// changedSince is the conflict of an object that others have changed since the change
// that is to be undone.
func (c Change) changedSince(of Original, op string, found []fieldmerge.FieldConflict) error {
	fields := c.fields(found)
	err := c.fail(errclass.Conflict, errclass.FieldConflict, op, "another client has changed it%s: %s", of.since(), listed(fields)).
		WithHint("undo what has come after it first, or set conflictPolicy to Force")
	err.Fields = fields
	return err
}

// undelete brings back what was deleted. Whether it can be created, if it is the newest change, the
// API server says.
func (r *rewinding) undelete(_ context.Context, of Original) error {
	if of.Record.Before == nil {
		return r.incomplete(of.Record)
	}
	if r.state != nil && r.begun {
		return r.fail(errclass.Conflict, errclass.AlreadyExists, "undo the deletion of", "another client has created it since %s", of.Since).
			WithHint("theirs is kept; delete it by hand if it is not wanted")
	}
	r.state, r.real = of.Record.Before, false
	return nil
}

// unwrite gives the fields of the change the values that they had before it.
func (r *rewinding) unwrite(ctx context.Context, of Original) error {
	const op = "undo the change of"
	record := of.Record
	switch {
	case record.Before == nil || record.After == nil:
		return r.fail(errclass.Terminal, errclass.Irreversible, op, "what the change made of it was not known when it was prepared").
			WithHint("compare it with its before-image and correct it by hand")
	case r.state == nil:
		return r.fail(errclass.Conflict, errclass.NotFound, op, "another client has deleted it%s", of.since()).
			WithHint("create it again if it is still wanted")
	case !of.Recreated && !sameObject(r.state, record.Before.GetUID()):
		return r.fail(errclass.Conflict, errclass.AlreadyExists, op, "another client has deleted and re-created it%s", of.since()).WithHint("theirs is kept")
	}
	images, err := r.images(ctx, record.Before, record.After, r.state)
	if err != nil {
		return err
	}
	images.Force = of.Overwrite
	images.Ours, images.HandedOver, images.Former, images.LeftTo, images.Given = family, true, of.First, record.FieldManager, record.Owners
	restored := images.Restore()
	if err := r.despite(of, op, restored.Conflicts); err != nil {
		return err
	}
	if len(restored.Reclaimed) > 0 {
		var paths []string
		for _, f := range r.fields(restored.Reclaimed) {
			paths = append(paths, f.Path)
		}
		r.notes = append(r.notes, r.warn("left as they are, because who scales it has written them since: "+strings.Join(paths, ", "))...)
	}
	if record.Release != nil {
		r.notes = append(r.notes, r.warn("who owns what "+errclass.Printable(strings.Join(record.Release.Managers, ", "))+" released stays as it is, because other changes of it are undone too")...)
	}
	if r.state = restored.Desired; of.Since == "" {
		return nil // There is none before it.
	}
	owners, err := images.OwnersBefore(r.state)
	if err != nil {
		return r.unreadableOwners(err)
	}
	r.state.SetManagedFields(owners)
	return nil
}

// content is what the target is to be, for a change of a type: nil for a Delete.
func (r *rewinding) content(ctx context.Context, as api.ChangeType, live *unstructured.Unstructured) (map[string]any, error) {
	switch {
	case r.state == nil && live != nil:
		more, err := r.admitUncreate(ctx, live)
		r.notes = append(r.notes, more...)
		return nil, err
	case r.state == nil:
		return nil, nil
	case !r.real:
		return r.again(ctx, as, live)
	}
	state, err := r.withOwners(ctx, r.state, live.GetOwnerReferences())
	if err != nil {
		return nil, err
	}
	out := fieldmerge.Strip(state)
	if status, there := r.state.Object["status"]; there && fieldmerge.Custom(r.Ref.GVK.GroupKind()) && !fieldmerge.StatusApart(live) {
		// Where it is no subresource it is a field like any other.
		out.Object["status"] = status
	}
	return out.Object, nil
}

// owners are who is to own the fields once they are as they were: who did before the oldest of the
// changes. What was created again has fields of others, too, that came later.
func (r *rewinding) owners(as api.ChangeType, of []Original) []metav1.ManagedFieldsEntry {
	out := of[len(of)-1].Owners()
	if len(of) == 1 || as == api.Delete || r.real {
		return out
	}
	for _, e := range r.state.GetManagedFields() {
		if !family(e.Manager) {
			out = append(slices.Clone(out), e)
		}
	}
	return out
}
