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

// HandOver leaves the fields of a committed change to those who are to own them.
// It does so for every item of the Transaction at once; before is the target as it
// was before the first of them, absent if the Transaction made it. A target that is
// gone, is another object by now, or bears no manager of the Transaction has nothing
// to hand over, and its before-image is not asked for. As it was seen last, if it was,
// the target need not be read: the write meets that, or the target is read all the same.
func HandOver(ctx context.Context, c Change, before Baseline, seen *unstructured.Unstructured) error {
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
		if !fieldmerge.Owned(live, c.sibling) {
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
		entries, changed, err := c.handedOver(ctx, image, live)
		if err != nil || !changed {
			return err
		}
		c.Manager = DefaultManager // whoever reads the audit log can tell it from the change
		if _, err := c.setOwners(ctx, entries, live); !stale(err) {
			return c.wrap(err, "hand over the fields of")
		}
	}
	return c.fail(errclass.Retryable, errclass.StaleVersion, "hand over the fields of", "it changes faster than it can be written")
}

// handedOver returns who is to own the fields after the commit.
func (c Change) handedOver(ctx context.Context, before, live *unstructured.Unstructured) (entries []metav1.ManagedFieldsEntry, changed bool, err error) {
	images := fieldmerge.Images{Before: before, Live: live, Ours: c.sibling}
	to := fieldmerge.Hands{Own: DefaultManager, Passing: itemManager.MatchString, Left: c.FieldManager}
	if c.FieldManager != "" {
		if images.Type, err = c.typeOf(ctx); err != nil {
			return nil, false, err
		}
		if to.Content = []map[string]any{c.Content}; c.Sets != nil {
			to.Content, err = c.Sets()
		}
		if err != nil {
			return nil, false, err
		}
	}
	if c.Owners != nil {
		if to.Owners, err = c.Owners(ctx); err != nil {
			return nil, false, err
		}
	}
	entries, changed, err = images.HandOver(to)
	if err != nil {
		return nil, false, c.fail(errclass.Terminal, errclass.Invalid, "hand over the fields of", "their owners cannot be read: %w", err)
	}
	return entries, changed, nil
}
