package mutate

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/fault"
	"janus.io/janus/snapshot"
)

// Heir is the field manager that keeps, after a commit, what no one owned before.
// It is the same for every Transaction, so that they leave no pile of managers.
const Heir = "janus"

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
		if !snapshot.Owned(live, c.sibling) {
			if looked {
				return nil
			}
			looked = true // One answer may be of before the change.
			continue
		}
		images := snapshot.Images{Live: live, Ours: c.sibling}
		if !before.Absent() {
			var err error
			if images.Before, err = before.Image(ctx); err != nil {
				return err
			}
		}
		entries, changed, err := images.HandOver(Heir, itemManager.MatchString)
		if err != nil {
			return c.fail(fault.Terminal, fault.Invalid, "hand over the fields of", "their owners cannot be read: %w", err)
		}
		if !changed {
			return nil
		}
		c.Manager = Heir // whoever reads the audit log can tell it from the change
		if _, err := c.setOwners(ctx, entries, live); !stale(err) {
			return c.wrap(err, "hand over the fields of")
		}
	}
	return c.fail(fault.Retryable, fault.StaleVersion, "hand over the fields of", "it changes faster than it can be written")
}
