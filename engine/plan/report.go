package plan

import (
	"fmt"
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

// ReportBeside records what was reported of an item, whether it was rolled back or
// not.
func ReportBeside(item *api.Item, undone outcome.Undone, share int) {
	item.Reclaimed = OwnedBy(byOwner(undone.Reclaimed), maxListed, share)
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
		for n := range item.Results {
			lighter = lighter || item.Results[n].Message != ""
			item.Results[n].Message = ""
		}
		if w := item.RollbackWait; w != nil {
			w.Message = errclass.Cut(w.Message, 128)
		}
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
