package mutate

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
	"janus.io/janus/snapshot"
)

// restoring is what one call has come to know while it undoes an Update or a Patch.
type restoring struct {
	// restored is what it has restored the values of; nil if it has not yet.
	restored *fieldmerge.Restoration
	// values and marks are what the API server has stored otherwise than was wanted.
	values, marks []fieldmerge.FieldConflict
	// harms are what old values would do, and spared the fields that do not get them.
	harms  []harm
	spared []fieldmerge.FieldConflict
	// notes say what else is not just as it was.
	notes []string
}

// compare notes what the answer to a write differs in from what was wanted. What is a
// conflict with others is named as that.
func (r *restoring) compare(images fieldmerge.Images, wanted, stored *unstructured.Unstructured, conflicts []fieldmerge.FieldConflict) {
	values, marks := images.Strayed(wanted, stored)
	r.values, r.marks = together(r.values, fieldmerge.Outside(values, conflicts)), together(r.marks, marks)
}

// look compares the target as it is with what was desired, if anything of live was written,
// or else what an earlier call has written.
func (r *restoring) look(c Change, images fieldmerge.Images, live, desired *unstructured.Unstructured, conflicts []fieldmerge.FieldConflict) {
	if images.Live != live {
		r.compare(images, desired, images.Live, conflicts)
		return
	}
	r.recall(images, desired, func(e metav1.ManagedFieldsEntry) bool { return !c.Names.ours(e.Manager) })
}

// recall notes what an earlier call has written and the API server has stored otherwise:
// what is there and belongs to the item alone. Another client may have removed what is not
// there.
func (r *restoring) recall(images fieldmerge.Images, wanted *unstructured.Unstructured, foreign func(metav1.ManagedFieldsEntry) bool) {
	values, marks := images.Strayed(wanted, images.Live)
	theirs := func(f fieldmerge.FieldConflict) bool { return f.Now == nil }
	values, marks = slices.DeleteFunc(values, theirs), slices.DeleteFunc(marks, theirs)
	r.values = together(r.values, fieldmerge.WrittenBy(values, images.Live, foreign))
	r.marks = together(r.marks, fieldmerge.WrittenBy(marks, images.Live, foreign))
}

// added notes what admission has added to the change, or to what others have written since.
func (r *restoring) added(images fieldmerge.Images, conflicts []fieldmerge.FieldConflict) {
	values, marks := images.Added()
	r.values = together(r.values, fieldmerge.Outside(values, conflicts))
	r.marks = together(together(r.marks, fieldmerge.Outside(marks, conflicts)), images.Stamps())
}

// altered is the error of an object that was written, and of which the API server has
// stored something else than it was given. It is not written again: the same would come of
// it. It names the conflicts with others beside.
func (c Change) altered(op string, values, conflicts []fieldmerge.FieldConflict) error {
	fields := c.fields(values)
	err := c.fail(errclass.Terminal, errclass.Altered, op, "the API server did not store what was wanted: %s", unlike(fields)).
		WithHint("find what changes it, such as a mutating webhook or policy or the schema of its kind, and correct these fields by hand")
	err.Fields = append(fields, c.fields(conflicts)...)
	return err
}

// stamped says which labels and annotations are not as they were.
func (c Change) stamped(marks []fieldmerge.FieldConflict) []string {
	if len(marks) == 0 {
		return nil
	}
	return []string{"the API server did not store all of it as it was: " + unlike(c.fields(marks))}
}

// unlike names fields in a message: each with the value that was wanted, and the stored one.
func unlike(fields []errclass.Field) string {
	var out string
	for i, f := range fields {
		if i > 0 {
			out += "; "
		}
		if i == 5 {
			return out + "and more"
		}
		out += f.Path
		switch {
		case f.Before != "" && f.Now != "":
			out += ", wanted " + f.Before + ", stored " + f.Now
		case f.Before != "":
			out += ", wanted " + f.Before + ", not stored"
		case f.Now != "":
			out += ", not wanted, stored " + f.Now
		}
	}
	return out
}

// remadeUnlike lists what of a re-created object is not as it was, but for what others have
// written since: what the API server has made of a creation belongs to the item, until
// the entries of who owned it before are put back.
func (c Change) remadeUnlike(images fieldmerge.Images, wanted *unstructured.Unstructured) (values, marks []fieldmerge.FieldConflict) {
	live := images.Live
	was, is := unmarked(snapshot.ForCreate(wanted)), unmarked(snapshot.ForCreate(live))
	foreign := func(e metav1.ManagedFieldsEntry) bool { return !c.Names.ours(e.Manager) && !inherited(e, wanted) }
	values, marks = images.Strayed(was, is)
	values, marks = fieldmerge.WrittenBy(values, live, foreign), fieldmerge.WrittenBy(marks, live, foreign)
	if kinds.Of(c.Ref.GVK.GroupKind()).Loss != nil {
		return nil, together(marks, values) // Its loss was accepted.
	}
	return values, marks
}
