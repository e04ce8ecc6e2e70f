package plan

import (
	"fmt"
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// Reasons of items whose change came to a good end, with something to be said.
const (
	reasonOverwritten = "Overwritten"
	reasonReclaimed   = "Reclaimed"
	reasonRestored    = "Restored"
	// ReasonManagerStays is that of an item whose change is in effect, and whose
	// field manager is still on the target.
	ReasonManagerStays = "ManagerStays"
	// ReasonHistory is that of the last item of a Transaction that could not be
	// remembered, or in whose place the oldest could not be forgotten.
	ReasonHistory = "HistoryIncomplete"
)

// reportBytes bounds what the items of one Transaction say together about fields:
// the status of a large Transaction must be storable to the end.
const reportBytes = 200_000

// ReportShare is how many bytes of that one of n items may use.
func ReportShare(n int) int { return min(2000, reportBytes/max(n, 1)) }

// planBytes bounds what the plans of one Transaction say together. Nothing else is added
// to the status of one that is planned.
const planBytes = 400_000

// FieldsShare is how many bytes of that the plan of one of n items may use.
func FieldsShare(n int) int { return min(8000, planBytes/max(n, 1)) }

// maxListed is how many fields or managers are listed at one place.
const maxListed = 16

// ConflictsOf lists fields as an item does, as far as its share goes; one is always
// listed.
func ConflictsOf(fields []errclass.Field, share int) []api.FieldConflict {
	var out []api.FieldConflict
	for i, f := range fields {
		c := api.FieldConflict{Field: errclass.Cut(f.Path, 512), Now: f.Now, Before: f.Before}
		for _, manager := range f.Managers[:min(len(f.Managers), maxListed)] {
			c.Managers = append(c.Managers, errclass.Cut(manager, 128))
			share -= len(manager)
		}
		share -= len(c.Field) + len(c.Now) + len(c.Before) + 60
		if i == maxListed || i > 0 && share < 0 {
			break
		}
		out = append(out, c)
	}
	return out
}

// ownedOf lists fields by who owns them.
func ownedOf(fields []errclass.Field, share int) []api.OwnedFields {
	var out []api.OwnedFields
	for _, f := range fields {
		for _, manager := range f.Managers {
			owner := api.OwnedFields{Manager: errclass.Cut(manager, 128), Subresource: f.Subresource}
			i := slices.IndexFunc(out, func(o api.OwnedFields) bool { return o.Manager == owner.Manager && o.Subresource == owner.Subresource })
			if i < 0 {
				if len(out) == maxListed {
					continue
				}
				i = len(out)
				out = append(out, owner)
			}
			path := errclass.Cut(f.Path, 256)
			if share -= len(path) + 8; share < 0 && len(out[i].Fields) > 0 || len(out[i].Fields) == maxListed {
				out[i].More++
				continue
			}
			out[i].Fields = append(out[i].Fields, path)
		}
	}
	return out
}

// maxWarnings is how many warnings an item lists, and maxWarning how long one may be.
const (
	maxWarnings = 8
	maxWarning  = 400
)

// AddWarnings adds to those that were given before the change was made, as far as there is
// room. One is always given.
func AddWarnings(item *api.Item, warnings []string, share int) {
	for i, text := range warnings {
		text = errclass.Cut(errclass.Printable(text), maxWarning)
		if share -= len(text); len(item.Warnings) >= maxWarnings || i > 0 && share < 0 {
			return
		}
		item.Warnings = append(slices.Clone(item.Warnings), text)
	}
}

// ReportBeside records what was reported of an item, whether it was rolled back or
// not.
func ReportBeside(item *api.Item, undone outcome.Undone, share int) {
	item.Reclaimed = ownedOf(undone.Reclaimed, share)
	if undone.Recreated != "" {
		item.RecreatedUID = undone.Recreated
	}
}

// Report records what was reported of an item that was rolled back.
func Report(item *api.Item, undone outcome.Undone, share int) {
	ReportBeside(item, undone, share)
	if len(undone.Overwritten) > 0 {
		item.Conflicts = ConflictsOf(undone.Overwritten, share)
	}
	var said []string
	say := func(reason, text string) { item.Reason, said = reason, append(said, text) }
	for _, note := range undone.Notes {
		say(reasonRestored, note)
	}
	if len(item.Reclaimed) > 0 {
		say(reasonReclaimed, "left as they are, because their former owners have taken them again: "+described(undone.Reclaimed))
	}
	if len(item.Conflicts) > 0 {
		say(reasonOverwritten, "restored over what others had written since, because conflictPolicy is Force (see conflicts)")
	}
	if len(said) > 0 {
		item.Message = errclass.Cut(errclass.Printable("rolled back; "+strings.Join(said, "; ")), max(share, 200))
	}
}

// Lighten takes off the status what is there for readers alone, because otherwise
// it cannot be stored. It reports whether there was any of it.
func Lighten(status *api.TransactionStatus) bool {
	lighter := false
	for i := range status.Items {
		item := &status.Items[i]
		message := errclass.Cut(item.Message, 128)
		lighter = lighter || message != item.Message || len(item.Taken)+len(item.Reclaimed)+len(item.Conflicts)+len(item.Warnings) > 0
		item.Message, item.Taken, item.Reclaimed, item.Warnings = message, nil, nil, nil
		if plan := item.Plan; plan != nil && len(plan.Fields) > 0 {
			plan.More += int64(len(plan.Fields))
			plan.Fields, lighter = nil, true
		}
		if len(item.Conflicts) > 0 {
			item.Conflicts = []api.FieldConflict{{Field: errclass.Cut(item.Conflicts[0].Field, 64)}}
		}
	}
	return lighter
}

func described(fields []errclass.Field) string {
	var out []string
	for _, f := range fields[:min(len(fields), 5)] {
		text := f.Path + " of " + strings.Join(f.Managers, ", ")
		if f.Now != "" {
			text += ", now " + f.Now
		}
		out = append(out, text)
	}
	if more := len(fields) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, "; ")
}
