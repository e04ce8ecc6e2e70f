package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Preflight is what is known of a Transaction before anything is taken for it.
type Preflight struct {
	// Items has one for each change, all Pending.
	Items []api.Item
	// Account is the uid of the ServiceAccount that the changes were tried as.
	Account types.UID
	// Deferred are those whose changes could not be tried, in the order of the items.
	Deferred []Deferral
	// Problems are what is wrong, by item; at least one of them will not heal.
	Problems []Problem
	// GoesOn says that the others are made when a change fails.
	GoesOn bool
	// Unfinished says that it is to be resumed, and nothing else is known yet.
	Unfinished bool
	// Stopped says that there were so many problems that no more were looked for.
	Stopped bool
}

// Deferral is why the change of an item is tried later.
type Deferral struct {
	Item int
	Why  string
}

// Problem is what is wrong with an item.
type Problem struct {
	Item int
	Err  error
}

// reasonSeveral is the reason of a Transaction whose problems have different ones.
const reasonSeveral = "ValidationFailed"

// reportProblems tells each item what is wrong with it, as far as its share goes.
func reportProblems(items []api.Item, problems []Problem) {
	share := max(ReportShare(len(items)), 200)
	for i, own := range byItem(problems) {
		if items[i].Reason == "" {
			items[i].Reason = errclass.ReasonOf(own[0])
		}
		items[i].MissingVerbs = missingVerbs(own)
		items[i].Message = errclass.Cut(errclass.Printable(strings.Join(told(own), "; ")), share)
	}
}

// byItem sorts what is wrong by item.
func byItem(problems []Problem) map[int][]error {
	out := map[int][]error{}
	for _, p := range problems {
		out[p.Item] = append(out[p.Item], p.Err)
	}
	return out
}

// sumUp makes one cause of all problems: their reason if they have the same, and a
// message that counts and names them. What may heal counts only beside what will not. Rights
// that several items lack are told together.
func sumUp(items []api.Item, found Preflight) Cause {
	problems := found.Problems
	reason := ""
	var texts, names []string
	seen, wrong := map[int]bool{}, byItem(problems)
	lacking := lacks(problems)
	for _, p := range problems {
		switch own := errclass.ReasonOf(p.Err); {
		case !Definite(p.Err):
		case reason == "":
			reason = own
		case reason != own:
			reason = reasonSeveral
		}
		if seen[p.Item] {
			continue
		}
		seen[p.Item] = true
		names = append(names, items[p.Item].Name)
		own := wrong[p.Item]
		if len(lacking) > 1 {
			own = slices.DeleteFunc(slices.Clone(own), func(err error) bool { return errclass.LackOf(err) != nil })
		}
		for _, text := range told(own) {
			texts = append(texts, "item "+items[p.Item].Name+": "+text)
		}
	}
	if len(lacking) > 1 {
		texts = append(texts, lackedBy(items, lacking))
	}
	message := texts[0]
	if len(texts) > 1 {
		message = fmt.Sprintf("%d problems with %d of %d changes (%s): %s", len(texts), len(names), len(items), enumerate(names), strings.Join(texts, "; "))
	}
	if found.Stopped {
		message = fmt.Sprintf("%d of %d changes are refused, and the others were not tried: %s", len(names), len(items), message)
	}
	return Cause{Reason: reason, Message: errclass.Printable(message)}
}

// firstWrong names the first item with a problem that will not heal.
func firstWrong(items []api.Item, problems []Problem) string {
	for _, p := range problems {
		if Definite(p.Err) {
			return items[p.Item].Name
		}
	}
	return ""
}

// enumerate lists names, as many as a message has room for.
func enumerate(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Later tells, of each item, whether its change can be tried only when its turn comes: an
// earlier one changes the same object or may be the reason why it is refused now, or it is
// not known before whether it is wanted.
func Later(t *api.Transaction) []bool {
	out := make([]bool, len(t.Status.Items))
	for i := range out {
		out[i] = true
	}
	for _, i := range Preparable(t) {
		out[i] = false
	}
	return out
}

// Preparable lists the items whose before-image can be taken before anything is
// changed: all but those whose target an earlier item changes too, those that are refused
// as long as an earlier item is not in effect, and those of which it is not known yet
// whether they are wanted. The before-image of the first is what the earlier item leaves,
// and is taken then. An Await has none.
func Preparable(t *api.Transaction) []int {
	seen := map[api.Target]bool{}
	var out []int
	for i := range t.Status.Items {
		item := &t.Status.Items[i]
		if !item.Changes() {
			continue
		}
		key := item.Target.Identity()
		if !seen[key] && item.DeferredBy == "" && !AskedInTurn(t, i) {
			out = append(out, i)
		}
		seen[key] = true
	}
	return out
}

// tried says that what could be tried was accepted, and what could not.
func tried(found Preflight) string {
	message := triedOf(found)
	if found.GoesOn {
		message += "; if one fails, all that does not depend on it is made, and nothing is rolled back, because spec.onFailure is Continue"
	}
	return errclass.Printable(message)
}

func triedOf(found Preflight) string {
	if len(found.Deferred) == 0 {
		return "every change was tried without effect, and accepted"
	}
	var texts []string
	for _, d := range found.Deferred {
		texts = append(texts, fmt.Sprintf("item %s (%s)", found.Items[d.Item].Name, d.Why))
	}
	return fmt.Sprintf("%d of %d changes were tried without effect, and accepted; deferred: %s",
		len(found.Items)-len(texts), len(found.Items), strings.Join(texts, "; "))
}
