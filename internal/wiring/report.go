package wiring

import (
	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
)

// maxTaken is how many fields an item lists that its change takes from one manager.
const maxTaken = 32

// takenBy lists what a change takes from others, as far as its share goes. Of a
// confidential object, a path that would quote a value is cut.
func takenBy(c mutate.Change, fields []fieldmerge.OwnedFields, share int) []api.OwnedFields {
	var owners []plan.Owned
	for _, f := range fields {
		owned := plan.Owned{Manager: errclass.Printable(f.Manager), Subresource: f.Subresource}
		for _, path := range f.Paths {
			if c.Sensitive {
				path = errclass.FieldOnly(path)
			}
			owned.Paths = append(owned.Paths, errclass.Printable(path))
		}
		owners = append(owners, owned)
	}
	return plan.OwnedBy(owners, maxTaken, share)
}

// report is what an item reports of its change before that is made.
type report struct {
	taken    []api.OwnedFields
	warnings []string
}

func (s session) report(o seen) report {
	share := plan.ReportShare(len(s.txn.Status.Items))
	return report{takenBy(o.change, o.forecast.Taken, share), plan.WithWarnings(nil, o.forecast.Warnings, share)}
}
