package ui

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
)

// Moment is something that happened to a Transaction.
type Moment struct {
	Time string `json:"time"`
	What string `json:"what"`
	Why  string `json:"why"`
}

// Condition is a condition as it is now. Its reason is that of now: a condition keeps the time at
// which it got its status, and not the reason that it had then.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Since   string `json:"since"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Span is a time in which something went on, or some time in which it happened.
type Span struct {
	What string `json:"what"`
	From string `json:"from"`
	// To is empty if it goes on.
	To string `json:"to"`
	// Within is set if it happened at a time between the two that is not on record.
	Within bool `json:"within"`
}

func conditionsOf(t *api.Transaction) []Condition {
	out := []Condition{}
	for _, c := range t.Status.Conditions {
		out = append(out, Condition{c.Type, string(c.Status), stamp(&c.LastTransitionTime), c.Reason, c.Message})
	}
	slices.SortStableFunc(out, func(a, b Condition) int { return cmp.Compare(a.Since, b.Since) })
	return out
}

// timeline says what happened when, as far as the status tells: of a condition it has the last
// change of its status alone.
func timeline(t *api.Transaction) []Moment {
	moments := []Moment{}
	add := func(time, what, why string) {
		if time != "" {
			moments = append(moments, Moment{Time: time, What: what, Why: why})
		}
	}
	add(stamp(&t.CreationTimestamp), "created", creatorOf(t))
	add(stamp(t.Status.StartTime), "started", "")
	for _, c := range t.Status.Conditions {
		add(stamp(&c.LastTransitionTime), c.Type+" became "+string(c.Status), "")
	}
	for i, item := range t.Status.Items {
		name := nameOf(t, i)
		add(stamp(item.WaitStartTime), "item "+name+" is in effect, and waited for", "")
		add(stamp(item.ReadyTime), "item "+name+" is ready", "")
		if wait := item.RollbackWait; wait != nil {
			add(stamp(wait.StartTime), "item "+name+" is restored, and waited for", "")
			add(stamp(wait.ReadyTime), "item "+name+" is ready again", "")
		}
	}
	add(stamp(t.Status.GuardTime), "all guards hold", "")
	add(stamp(t.Status.RollbackStartTime), "rollback began", "")
	add(stamp(t.Status.CompletionTime), "ended", string(t.Status.Phase))
	slices.SortStableFunc(moments, func(a, b Moment) int { return cmp.Compare(a.Time, b.Time) })
	return moments
}

// heldSince is since when a condition is True; empty if it is not.
func heldSince(t *api.Transaction, kind string) string {
	c := meta.FindStatusCondition(t.Status.Conditions, kind)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return stamp(&c.LastTransitionTime)
}

// phasesOf is what a Transaction went through. When the locks were complete is known only while it
// has them: after that they are in the time of the changes.
func phasesOf(t *api.Transaction) []Span {
	out := []Span{}
	created, started, ended := stamp(&t.CreationTimestamp), stamp(t.Status.StartTime), stamp(t.Status.CompletionTime)
	back := stamp(t.Status.RollbackStartTime)
	tried, locked := heldSince(t, api.ConditionValidated), heldSince(t, api.ConditionLocked)
	add := func(what, from, to string) {
		if from != "" {
			out = append(out, Span{What: what, From: from, To: to})
		}
	}
	add("queued", created, cmp.Or(started, ended))
	add("checked", started, cmp.Or(tried, back, ended))
	switch {
	case locked != "":
		add("took locks", tried, locked)
		add("changes", locked, cmp.Or(back, ended))
	case ended == "" && back == "":
		add("takes locks", tried, "")
	default:
		add("locks and changes", tried, cmp.Or(back, ended))
	}
	add("rollback", back, ended)
	add("suspended", stamp(t.Status.SuspendTime), ended)
	return out
}

// spansOf is what went on with each item. The status has no time of a change: it was made after
// what it depends on, and before it was waited for, and before what depends on it.
func spansOf(t *api.Transaction) [][]Span {
	n := len(t.Status.Items)
	first := cmp.Or(heldSince(t, api.ConditionLocked), heldSince(t, api.ConditionValidated), stamp(t.Status.StartTime))
	last := cmp.Or(stamp(t.Status.RollbackStartTime), stamp(t.Status.CompletionTime))
	before := dependencies(t)
	from, to := make([]string, n), make([]string, n)
	for i := range n {
		from[i], to[i] = first, cmp.Or(stamp(t.Status.Items[i].WaitStartTime), last)
	}
	for round, changed := 0, true; changed && round < n; round++ {
		changed = false
		for i := range n {
			for _, b := range before[i] {
				if done := cmp.Or(stamp(t.Status.Items[b].ReadyTime), stamp(t.Status.Items[b].WaitStartTime), from[b]); done > from[i] {
					from[i], changed = done, true
				}
				if inEffect(&t.Status.Items[i]) && to[i] != "" && (to[b] == "" || to[i] < to[b]) {
					to[b], changed = to[i], true
				}
			}
		}
	}
	out := make([][]Span, n)
	for i := range n {
		out[i] = itemSpans(t, i, from[i], to[i])
	}
	return out
}

func itemSpans(t *api.Transaction, i int, from, to string) []Span {
	item, out := &t.Status.Items[i], []Span{}
	awaits := i < len(t.Spec.Changes) && t.Spec.Changes[i].Type == api.Await || item.Type == api.Await
	if from != "" && inEffect(item) && !awaits {
		if to != "" {
			to = max(from, to) // Who writes times may have another clock than who wrote them before.
		}
		out = append(out, Span{What: "made", From: from, To: to, Within: true})
	}
	if item.WaitStartTime != nil {
		end := cmp.Or(stamp(item.ReadyTime), stamp(t.Status.RollbackStartTime), stamp(t.Status.CompletionTime))
		out = append(out, Span{What: "waited for", From: stamp(item.WaitStartTime), To: end})
	}
	if wait := item.RollbackWait; wait != nil {
		out = append(out, Span{What: "restored, waited for", From: stamp(wait.StartTime), To: cmp.Or(stamp(wait.ReadyTime), stamp(t.Status.CompletionTime))})
	}
	return out
}

// inEffect reports whether the change of an item was in effect at some time.
func inEffect(item *api.Item) bool {
	switch item.State {
	case api.ItemCommitted, api.ItemRollingBack, api.ItemRolledBack, api.ItemUnresolved:
		return true
	default:
		return item.WaitStartTime != nil
	}
}

// dependencies are, for each item, those that come before it: the one before it in a list, or those
// that it depends on.
func dependencies(t *api.Transaction) [][]int {
	out := make([][]int, len(t.Status.Items))
	at := map[string]int{}
	for i := range t.Status.Items {
		at[nameOf(t, i)] = i
	}
	chain := isChain(t)
	for i := range t.Status.Items {
		if chain {
			if i > 0 {
				out[i] = []int{i - 1}
			}
			continue
		}
		names := slices.Clone(t.Status.Items[i].DependsOn)
		if i < len(t.Spec.Changes) {
			names = append(names, t.Spec.Changes[i].DependsOn...)
		}
		for _, name := range names {
			if b, found := at[name]; found && b != i && !slices.Contains(out[i], b) {
				out[i] = append(out[i], b)
			}
		}
	}
	return out
}
