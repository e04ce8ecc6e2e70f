package wiring

import (
	"errors"
	"fmt"

	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// An undo goes through the changes in reverse order. What was made stricter before an object
// was corrected is undone after it, and refuses the object as it was: no order of all of
// them is right in every case, so it is said what stands in the way.

// explainOrder adds to the problems of an undo which later item of it may be their reason.
func (f *preflight) explainOrder() {
	if f.undo == nil {
		return
	}
	items := f.txn.Status.Items
	for n, p := range f.problems {
		var found *errclass.Error
		if !errors.As(p.Err, &found) {
			continue
		}
		for j := p.Item + 1; j < len(items); j++ {
			if !plan.Decides(&items[j], &items[p.Item], found.Reason) {
				continue
			}
			own := *found
			own.Lack = nil // It has more to say than that.
			own.Hint = fmt.Sprintf("item %s (%s), which is undone after it, may stand in its way: undo that one first, by hand or by a Transaction of its own",
				items[j].Name, items[j].Target.String())
			f.problems[n].Err = &own
			break
		}
	}
}

const admissionGroup = "admissionregistration.k8s.io"
