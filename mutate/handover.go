package mutate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
)

// DefaultManager is the field manager that keeps, after a commit, what marks an object as
// made by a Transaction. It is the same for every Transaction, so that they leave no pile of
// managers.
const DefaultManager = "janus"

// Ownership says who is to own the fields of a target once the Transaction has committed,
// beside those who owned them before.
type Ownership struct {
	// FieldManager is the applier to which a commit leaves what nobody owned before; empty
	// for nobody.
	FieldManager string
	// Sets gives what the changes of the target set, if that is more than the content.
	Sets func() ([]map[string]any, error)
	// Former gives who owned the fields before the change that this one undoes, and what it releases
	// if that has released fields; nil for one that undoes none.
	Former func(ctx context.Context) ([]metav1.ManagedFieldsEntry, *fieldmerge.Release, error)
	// Release says who is to own which of the fields no more; nil for nobody.
	Release *fieldmerge.Release
}

// HandOver leaves the fields of a committed change to those who are to own them.
// It does so for every item of the Transaction at once; before is the target as it
// was before the first of them, absent if the Transaction made it. A target that is
// gone, is another object by now, or bears no manager of the Transaction has nothing
// to hand over, and its before-image is not asked for. As it was seen last, if it was,
// the target need not be read: the write meets that, or the target is read all the same.
func HandOver(ctx context.Context, c Change, to Ownership, before Baseline, seen *unstructured.Unstructured) error {
	looked := false
	for range attempts {
		live := seen
		if seen = nil; live == nil {
			var err error
			if c, live, err = c.locate(ctx); err != nil {
				return err
			}
		}
		if live == nil || !before.Absent() && !sameObject(live, before.UID) {
			return nil
		}
		if !fieldmerge.Owned(live, c.Names.sibling) {
			if looked {
				return nil
			}
			looked = true // One answer may be of before the change.
			continue
		}
		var image *unstructured.Unstructured
		if !before.Absent() {
			var err error
			if image, err = before.Image(ctx); err != nil {
				return err
			}
		}
		entries, changed, err := to.handedOver(ctx, c, image, live)
		if err != nil || !changed {
			return err
		}
		c.Names.Manager = DefaultManager // anyone who reads the audit log can tell it from the change
		if _, err := c.setOwners(ctx, entries, live); !stale(err) {
			return c.wrap(err, "hand over the fields of")
		}
	}
	return c.fail(errclass.Retryable, errclass.StaleVersion, "hand over the fields of", "it changes faster than it can be written")
}

// handedOver returns who is to own the fields after the commit of a change.
func (o Ownership) handedOver(ctx context.Context, c Change, before, live *unstructured.Unstructured) (entries []metav1.ManagedFieldsEntry, changed bool, err error) {
	images := fieldmerge.Images{Before: before, Live: live, Ours: c.Names.sibling}
	to := fieldmerge.Hands{Own: DefaultManager, Passing: itemManager.MatchString, Left: o.FieldManager, Release: o.Release}
	if o.FieldManager != "" {
		if images.Type, err = c.typeOf(ctx); err != nil {
			return nil, false, err
		}
		if to.Content = []map[string]any{c.Content}; o.Sets != nil {
			to.Content, err = o.Sets()
		}
		if err != nil {
			return nil, false, err
		}
	}
	if o.Former != nil {
		if to.Owners, to.Release, err = o.Former(ctx); err != nil {
			return nil, false, err
		}
	}
	entries, changed, err = images.HandOver(to)
	if err != nil {
		return nil, false, c.fail(errclass.Terminal, errclass.Invalid, "hand over the fields of", "their owners cannot be read: %w", err)
	}
	return entries, changed, nil
}
