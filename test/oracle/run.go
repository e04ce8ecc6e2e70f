package oracle

import (
	"encoding/json"
	"sort"
	"strconv"
	"strings"
	"time"

	api "janus.io/janus/api/v1alpha1"
)

// Transactions is the resource of Transactions.
const transactions = "transactions.backup.janus.io"

// run is a Transaction with all that was stored of it.
type run struct {
	*Run
	ref  Ref
	uid8 string
	user string // who reads and writes its targets
	// states are what was stored of it, in order; it is gone since revision gone, 0 if
	// it is still there.
	states []*state
	gone   *version
	// contents are those of the changes, decoded once.
	contents []map[string]any
	// tampered is set when another client has written the status, which is the journal:
	// what it says is then not what Janus says.
	tampered bool
	turning
	// writes to its targets, in the order of the versions that they have made; those
	// that have made none come last.
	writes []*write
}

// state is a Transaction as it was stored.
type state struct {
	*version
	phase      string
	count      int64 // status.version
	recoveries int64
	// asked is for what a recovery was last asked for.
	asked     string
	revision  int64  // its number
	digest    string // of what is remembered of it; empty if nothing is
	items     []item
	images    []string // Kind/name
	deleting  bool
	finalizer bool
	completed bool
	suspended bool // that is on record
	approval  approval
	guarded   bool // that the guards were found to hold before the commit
}

// item is the record of a change.
type item struct {
	name, state, reason, message, lease, targetName string
	// kind is the type, where that does not follow from the spec alone.
	kind      string
	blockedBy string
	// content is the digest of the content, if that is in a source.
	content                                    string
	prepared, committed, rolledBack, unsettled bool
	unchanged, failed                          bool
	aside                                      bool
	ready                                      bool
	holdTime, readyTime                        time.Time
	// back is the wait after the compensation; nil if there is none.
	back      *backWait
	guardUID  string
	results   map[string]bool // of conditions, by their names
	before    *image
	conflicts []conflict
	warnings  []string
}

// backWait is the wait for a target that is restored.
type backWait struct {
	hold, ready time.Time
	message     string
}

type image struct{ key, digest, uid, version string }

type conflict struct {
	field    string
	managers int
	now      string
}

// enterRun collects what was stored of a Transaction.
func (c *trial) enterRun(given *Run) {
	copied := *given
	of := &copied
	n := min(len(of.Items), len(of.Spec.Changes))
	of.Items, of.Spec.Changes = of.Items[:n], of.Spec.Changes[:n]
	r := &run{
		Run: of, ref: Ref{Resource: transactions, Namespace: of.Namespace, Name: of.Name},
		user: "system:serviceaccount:" + of.Namespace + ":" + of.Spec.ServiceAccountName,
	}
	uid := string(of.UID)
	if o := c.objects[r.ref]; o != nil {
		for _, v := range o.versions {
			if uid == "" {
				uid = v.uid
			}
			switch {
			case v.uid != uid:
			case v.Deleted:
				r.gone = v
			default:
				r.tampered = r.tampered || v.by == nil && v.before != nil && !same(v.before.Object.Object["status"], v.Object.Object["status"])
				r.states = append(r.states, readState(v))
			}
		}
	}
	r.uid8 = uid[:min(8, len(uid))]
	r.contents = make([]map[string]any, len(of.Spec.Changes))
	for i := range of.Spec.Changes {
		if content := of.Spec.Changes[i].Content; content != nil {
			_ = json.Unmarshal(content.Raw, &r.contents[i])
		}
	}
	c.enterDerived(r)
	c.enterSources(r)
	r.enterDeletions()
	c.runs = append(c.runs, r)
	c.users[r.user] = true
	c.own[r.ref] = true
	for i, target := range of.Items {
		if r.awaits(i) {
			continue
		}
		if list := c.targets[target]; len(list) == 0 || list[len(list)-1] != r {
			c.targets[target] = append(list, r)
		}
	}
}

// readState reads all that a stored Transaction tells.
func readState(v *version) *state {
	s := &state{version: v, deleting: v.terminating()}
	status, _ := v.Object.Object["status"].(map[string]any)
	s.phase = str(status, "phase")
	s.count, s.recoveries = number(status["version"]), number(status["recoveries"])
	s.asked = str(status, "handledRecovery")
	s.revision, s.digest = number(status["revision"]), str(status, "revisionDigest")
	s.approval = readApproval(status)
	s.completed, s.suspended = str(status, "completionTime") != "", str(status, "suspendTime") != ""
	s.guarded = str(status, "guardTime") != ""
	for _, f := range list(v.Object.Object, "metadata", "finalizers") {
		s.finalizer = s.finalizer || f == api.Finalizer
	}
	for _, name := range list(status, "rollbackRef", "objects") {
		text, _ := name.(string)
		s.images = append(s.images, text)
	}
	items := list(status, "items")
	s.items = make([]item, len(items))
	for i := range items {
		entry, _ := items[i].(map[string]any)
		s.items[i] = readItem(entry)
	}
	return s
}

func readItem(entry map[string]any) item {
	out := item{
		name: str(entry, "name"), kind: str(entry, "type"), state: str(entry, "state"), reason: str(entry, "reason"), message: str(entry, "message"),
		blockedBy: str(entry, "blockedBy"), lease: str(entry, "lockLease"), targetName: str(entry, "target", "name"), content: str(entry, "contentDigest"),
		prepared: entry["prepared"] == true, committed: entry["committed"] == true, rolledBack: entry["rolledBack"] == true,
		unchanged: entry["unchanged"] == true, unsettled: entry["unsettled"] == true, aside: entry["setAside"] == true, failed: entry["failed"] == true, ready: str(entry, "readyTime") != "",
	}
	out.holdTime, _ = time.Parse(time.RFC3339, str(entry, "holdStartTime"))
	out.readyTime, _ = time.Parse(time.RFC3339, str(entry, "readyTime"))
	out.guardUID = str(entry, "guardUID")
	out.results = map[string]bool{}
	for _, e := range list(entry, "results") {
		result, _ := e.(map[string]any)
		out.results[str(result, "condition")] = result["holds"] == true
	}
	if wait, ok := entry["rollbackWait"].(map[string]any); ok {
		out.back = &backWait{message: str(wait, "message")}
		out.back.hold, _ = time.Parse(time.RFC3339, str(wait, "holdStartTime"))
		out.back.ready, _ = time.Parse(time.RFC3339, str(wait, "readyTime"))
	}
	if before, ok := entry["before"].(map[string]any); ok {
		out.before = &image{str(before, "key"), str(before, "digest"), str(before, "uid"), str(before, "resourceVersion")}
	}
	for _, w := range list(entry, "warnings") {
		text, _ := w.(string)
		out.warnings = append(out.warnings, text)
	}
	for _, e := range list(entry, "conflicts") {
		found, _ := e.(map[string]any)
		out.conflicts = append(out.conflicts, conflict{str(found, "field"), len(list(found, "managers")), str(found, "now")})
	}
	return out
}

func list(object map[string]any, path ...string) []any {
	if object == nil {
		return nil
	}
	out, _ := at(object, path...).([]any)
	return out
}

// before returns what was stored last before a revision. Of a Transaction that is gone
// it is the last that was there: a request that was under way may land after it.
func (r *run) before(revision int64) *state {
	n := sort.Search(len(r.states), func(i int) bool { return r.states[i].Revision >= revision })
	if n == 0 {
		return nil
	}
	return r.states[n-1]
}

// end is the last that was stored; nil if nothing was seen.
func (r *run) end() *state {
	if len(r.states) == 0 {
		return nil
	}
	return r.states[len(r.states)-1]
}

// begun reports whether an intent was ever recorded.
func (r *run) begun() bool {
	for _, s := range r.states {
		if s.phase == string(api.PhaseCommitting) {
			return true
		}
	}
	return false
}

func (r *run) String() string { return "Transaction " + r.Namespace + "/" + r.Name }

// change is the name of a change.
func (r *run) change(i int) string {
	if name := r.Spec.Changes[i].Name; name != "" {
		return name
	}
	return strconv.Itoa(i)
}

// awaits reports whether an item only waits for its target.
func (r *run) awaits(i int) bool { return r.Spec.Changes[i].Type == api.Await }

// named is how messages call an item.
func (r *run) named(i int) string {
	return r.String() + " item " + strconv.Itoa(i) + " (" + string(r.Spec.Changes[i].Type) + " " + r.Items[i].String() + ")"
}

// family is what the field managers of its items begin with.
func (r *run) family() string { return "janus-" + r.uid8 + "-" }

// isItem reports whether a name is that of an item's manager, and returns its index.
func (r *run) isItem(manager string) (int, bool) {
	digits, ok := strings.CutPrefix(manager, r.family())
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(digits)
	return i, err == nil && i >= 0 && i < len(r.Items) && i < len(r.Spec.Changes)
}

// allIn reports whether every item is in one of some states.
func (s *state) allIn(states ...api.ItemState) bool {
	for i := range s.items {
		if !s.items[i].in(states...) {
			return false
		}
	}
	return len(s.items) > 0
}

func (i *item) in(states ...api.ItemState) bool {
	for _, state := range states {
		if i.state == string(state) {
			return true
		}
	}
	return false
}
