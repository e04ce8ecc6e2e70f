package wiring

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/snapshot"
)

// DefaultImagesLimit is how many bytes the before-images of one Transaction may take. They
// are in etcd, which keeps 2 GiB if it is not told otherwise, for the whole cluster.
const DefaultImagesLimit = 384 << 20

// recordOf is what is kept of an item, so that it can be rolled back.
func (s session) recordOf(i int, o seen) snapshot.Record {
	record := snapshot.Record{
		Item: i, Type: string(plan.ChangeOf(s.txn, i).Type), Target: o.change.Ref, Before: o.before, After: o.forecast.After,
		Took: o.forecast.Took, FieldManager: s.txn.Spec.FieldManager,
		Confidential: o.change.Sensitive,
	}
	if s.undo != nil || o.change.Release != nil {
		record.Content, record.Owners, record.Release = o.change.Content, o.owners, o.change.Release
	}
	return record
}

// weigh tells how many bytes the before-image of an item takes.
func (f *preflight) weigh(i int, s seen) (int64, error) {
	encoded, err := f.store.Encode(f.recordOf(i, s))
	return int64(encoded.Bytes()), err
}

// overweight reports that the before-images take too much together. It is said of the item
// that takes most.
func (f *preflight) overweight(sound []int, trials []trial) (found []plan.Problem) {
	var all int64
	most := 0
	for n, o := range trials {
		if all += o.bytes; o.bytes > trials[most].bytes {
			most = n
		}
	}
	if all <= f.planner.imagesLimit {
		return nil
	}
	i := sound[most]
	return []plan.Problem{{Item: i, Err: errclass.New(errclass.Terminal, errclass.TooLarge, "keep the before-image of", f.txn.Status.Items[i].Target.String(),
		"the before-images of all changes would take %s, this one the most, and %s are kept for one Transaction",
		quantity(all), quantity(f.planner.imagesLimit)).
		WithHint("split the Transaction, or raise janusd's --before-images-limit")}}
}

// quantity writes a number of bytes, rounded up to KiB where it has more than one.
func quantity(bytes int64) string {
	if bytes > 1<<10 {
		bytes = (bytes + 1<<10 - 1) &^ (1<<10 - 1)
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}
