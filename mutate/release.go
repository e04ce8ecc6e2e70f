package mutate

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/snapshot"
)

// A Patch that releases fields applies them with the values that they have, so that it is made,
// found and rolled back like any other Patch, and changes no value. With the commit, HandOver
// leaves out who is to own them no more.

// Releasing is the change with the content that it has for a target as it is. It is refused if a
// manager, or a field, that it names has nothing to release.
func (c Change) Releasing(before *unstructured.Unstructured) (Change, fieldmerge.Released, error) {
	if c.Release == nil || before == nil {
		return c, fieldmerge.Released{}, nil
	}
	const op = "release fields of"
	for _, manager := range c.Release.Managers {
		if family(manager) {
			return c, fieldmerge.Released{}, c.fail(errclass.Terminal, errclass.Invalid, op, "%s is a field manager of Janus, which releases nothing", errclass.Printable(manager)).
				WithHint("a commit leaves fields to their owners")
		}
	}
	found, err := c.Release.On(before)
	if err != nil {
		return c, found, c.unreadableOwners(err)
	}
	var lacking []string
	for _, manager := range found.Idle {
		lacking = append(lacking, errclass.Printable(manager)+" owns no such field")
	}
	for _, path := range found.Fields {
		lacking = append(lacking, "none of the managers owns "+c.path(path))
	}
	if len(lacking) > 0 {
		return c, found, c.fail(errclass.Terminal, errclass.Invalid, op, "there is nothing to release: %s", strings.Join(lacking, "; ")).
			WithHint("kubectl janus owners shows who owns which field; what was written by another version of the kind is released by that version")
	}
	c.Content = found.Content
	return c, found, nil
}

// Unrelease is the change that gives fields back which another has released, and who is to own
// them: who did before that. It is a conflict if another client has written one of them since.
func (c Change) Unrelease(ctx context.Context, of Original, live *unstructured.Unstructured) (Change, []metav1.ManagedFieldsEntry, []string, error) {
	const op = "undo the release of fields of"
	record := of.Record
	switch {
	case record.Before == nil || record.Release == nil:
		return c, nil, nil, c.incomplete(record)
	case live == nil:
		return c, nil, nil, c.fail(errclass.Conflict, errclass.NotFound, op, "another client has deleted it since").WithHint("its owners went with it")
	case !of.Recreated && !sameObject(live, record.Before.GetUID()):
		return c, nil, nil, c.fail(errclass.Conflict, errclass.AlreadyExists, op, "another client has deleted and re-created it since").WithHint("theirs is kept")
	}
	types, err := c.typeOf(ctx)
	if err != nil {
		return c, nil, nil, err
	}
	var written []fieldmerge.FieldConflict
	for _, a := range fieldmerge.Answers(types, record.Content, live.Object, false) {
		a.Managers = a.Owners(live)
		written = append(written, a.FieldConflict)
	}
	r := rewinding{Change: c}
	if err := r.despite(of, op, written); err != nil {
		return c, nil, nil, err
	}
	found, err := record.Release.On(record.Before)
	if err != nil {
		return c, nil, nil, c.unreadableOwners(err)
	}
	if c.Content, err = c.releasedFrom(types, record); err != nil {
		return c, nil, nil, err
	}
	c.Release = &fieldmerge.Release{Fields: record.Release.Fields}
	for n, owned := range found.Owners {
		if n == 0 {
			c.Release.Fields = nil
		}
		c.Release.Fields = append(c.Release.Fields, owned.Paths...)
	}
	if c.Release.Managers, err = receivers(record, c.Release.Fields); err != nil {
		return c, nil, nil, c.unreadableOwners(err)
	}
	return c, of.Owners(), r.notes, nil
}

// releasedFrom is the content of a release with the values of before it: where it undid another by force,
// it may have overwritten what another client had written in between.
func (c Change) releasedFrom(types typed.ParseableType, record snapshot.Record) (map[string]any, error) {
	were := fieldmerge.Answers(types, record.Content, record.Before.Object, false)
	if len(were) == 0 {
		return record.Content, nil
	}
	for _, was := range were {
		if was.Now == nil {
			return nil, c.fail(errclass.Terminal, errclass.Irreversible, "undo the release of fields of", "it has set %s by force, which was not there before", c.path(was.Path)).
				WithHint("remove that by hand")
		}
	}
	content, err := fieldmerge.At(types, record.Content, record.Before)
	if err != nil {
		return nil, c.unreadableOwners(err)
	}
	return content, nil
}

// receivers are to whom released fields went: who was named, or of an undo who had owned them.
func receivers(record snapshot.Record, fields []string) ([]string, error) {
	var out []string
	if record.FieldManager != "" {
		out = append(out, record.FieldManager)
	}
	given := record.Before.DeepCopy()
	given.SetManagedFields(record.Owners)
	for _, e := range record.Owners {
		if family(e.Manager) || slices.Contains(out, e.Manager) {
			continue
		}
		has, err := fieldmerge.Release{Managers: []string{e.Manager}, Fields: fields}.On(given)
		if err != nil {
			return nil, err
		}
		if len(has.Owners) > 0 {
			out = append(out, e.Manager)
		}
	}
	return out, nil
}

// foreseeRelease adds to a forecast what the commit takes from whom, and tries that.
func (c Change) foreseeRelease(ctx context.Context, to Ownership, before, after *unstructured.Unstructured, out *Forecast) error {
	found, err := c.Release.On(before)
	if err != nil {
		return c.unreadableOwners(err)
	}
	out.Taken = append(out.Taken, found.Owners...)
	for _, stays := range found.Stay {
		if stays.Manager != to.FieldManager && !family(stays.Manager) {
			out.Warnings = append(out.Warnings, c.warn(errclass.Printable(stays.Manager)+" owns "+c.path(stays.Paths[0])+" too, and keeps it")...)
		}
	}
	entries, _, err := to.handedOver(ctx, c, before, after)
	if err != nil {
		return err
	}
	return c.tryOwners(ctx, entries, before)
}

// tryOwners dry-runs that the fields of an object get other owners.
func (c Change) tryOwners(ctx context.Context, entries []metav1.ManagedFieldsEntry, live *unstructured.Unstructured) error {
	const op = "dry-run the release of fields of"
	body, err := ownersPatch(entries, nil, live)
	if err != nil {
		return err
	}
	c.Names.Manager = DefaultManager
	options := c.patchOptions()
	options.DryRun = dryRun(true)
	stored, err := c.client().Patch(ctx, c.Ref.Name, types.MergePatchType, body, options)
	if err != nil {
		return c.wrap(err, op)
	}
	left, err := c.Release.On(stored)
	if err != nil {
		return c.unreadableOwners(err)
	}
	wanted := live.DeepCopy()
	wanted.SetManagedFields(entries)
	may, err := c.Release.On(wanted)
	if err != nil {
		return c.unreadableOwners(err)
	}
	if len(left.Owners) > len(may.Owners) {
		return c.fail(errclass.Terminal, errclass.Invalid, op, "the API server would leave %s the owner of %s", errclass.Printable(left.Owners[0].Manager), c.path(left.Owners[0].Paths[0])).
			WithHint("find what changes metadata.managedFields, such as a mutating webhook or policy")
	}
	return nil
}
