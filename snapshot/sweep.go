package snapshot

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Sweep deletes every before-image of a Transaction whose status names none: a
// Transaction that ends before a checkpoint recorded what was saved, or whose
// controller died at that point. Where the status names some, SweepUnlisted is to
// be called instead.
//
// A request that was given up on may have left an object although those before it
// are gone. So numbers up to saves, which is how often before-images may have been
// saved, are looked at in any case, and so are those that this process has sent
// requests for, or found.
func (s *Store) Sweep(ctx context.Context, o Owner, saves int) error {
	return s.sweep(ctx, o, nil, search{saves: saves})
}

// SweepUnlisted deletes what earlier attempts have saved and ref does not name.
// It must be called only with the ref of the status as it was written last, and
// when nothing further will be saved: what is not named by then never will be.
//
// Objects are found by their names, which are numbered without a gap, so that it
// takes no right to list Secrets. Where there is nothing to do, it costs one
// request for ConfigMaps and one for Secrets, and twice that for a Transaction that
// goes for good. It may be called before or after Drop or Keep. As Sweep, it looks at all
// numbers that this process has sent requests for.
func (s *Store) SweepUnlisted(ctx context.Context, o Owner, ref *v1alpha1.RollbackRef, goes bool) error {
	return s.sweep(ctx, o, ref, search{saves: 1, last: goes})
}

// search is how to look for objects that no status names.
type search struct {
	// saves is how many numbers are looked at in any case.
	saves int
	// last means that nobody will look again, so that one answer is not enough.
	last bool
}

func (s *Store) sweep(ctx context.Context, o Owner, ref *v1alpha1.RollbackRef, as search) error {
	known := listed(o.Name, ref)
	as.last = as.last || len(known) == 0 // What no status names nobody looks for again.
	var group errgroup.Group
	for _, k := range kinds {
		group.Go(func() error {
			as := as
			as.saves = max(as.saves, s.reach.last(o, k)+1)
			found, err := s.unlisted(ctx, o, k, known, as)
			if err != nil {
				return err
			}
			// Backwards, so that after a crash the next sweep still finds the way.
			for _, p := range slices.Backward(found) {
				if err := s.drop(ctx, o, p, s.letGo); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// unlisted walks over the numbers, from batch to batch. What is known is taken to
// exist: it may have been dropped already.
func (s *Store) unlisted(ctx context.Context, o Owner, k kind, known []place, as search) ([]place, error) {
	var found []place
	for n := 1; n <= maxObjects; n++ {
		p := place{k, n}
		if slices.Contains(known, p) {
			continue
		}
		name := objectName(o.Name, n)
		look := func() (metav1.ObjectMeta, error) { return s.objects.metadata(ctx, o.Namespace, k, name) }
		meta, err := look()
		if errclass.Is(err, errclass.NotFound) && as.last {
			meta, err = look()
		}
		switch {
		case errclass.Is(err, errclass.NotFound) && n < as.saves:
			continue
		case errclass.Is(err, errclass.NotFound):
			return found, nil
		case err != nil:
			return nil, wrap(err, "get", o.Namespace, k, name, false)
		}
		end := n
		if _, ours := transactionOf(meta); ours || orphaned(meta, o) {
			end = lastOf(meta.Annotations[annotationBatch], n)
		}
		if ownedBy(meta, o) || orphaned(meta, o) {
			// The others of a batch may be missing, if its writer died.
			for ; n <= end; n++ {
				if p := (place{k, n}); !slices.Contains(known, p) {
					found = append(found, p)
					s.reach.note(o, p)
				}
			}
		}
		n = end
	}
	return found, nil
}
