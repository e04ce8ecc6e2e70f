package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// sentence says in one line how a Transaction is.
func sentence(t *api.Transaction) string {
	return explained(t, strings.TrimSpace(string(phaseOf(t))+" "+t.Status.Progress))
}

// phrase is sentence without the progress.
func phrase(t *api.Transaction) string { return explained(t, string(phaseOf(t))) }

// explained gives the phase of a Transaction its reason and its message.
func explained(t *api.Transaction, text string) string {
	if unheard(t) {
		return text + ": " + lookedAt(t)
	}
	if ready := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReady); ready != nil && ready.Reason != text {
		if ready.Reason != string(phaseOf(t)) {
			text += " (" + ready.Reason + ")"
		}
		if ready.Message != "" {
			text += ": " + ready.Message
		}
	}
	return text
}

// itemSentence says in one line how an item is.
func itemSentence(t *api.Transaction, i int) string {
	item := t.Status.Items[i]
	text := fmt.Sprintf("%s %s %s", item.Name, typeOf(t, i), item.Target.String())
	text += ": " + stateText(t, i, time.Now())
	if item.Reason != "" {
		text += " (" + item.Reason + ")"
	}
	if item.Message != "" && !lacksRight(&item) {
		text += ": " + item.Message
	}
	return text
}

// typeOf is the type of the change of an item; that of an undo is in its status.
func typeOf(t *api.Transaction, i int) api.ChangeType {
	if item := t.Status.Items[i]; item.Type != "" || i >= len(t.Spec.Changes) {
		return item.Type
	}
	return t.Spec.Changes[i].Type
}

// unwritten is said of a change that has needed no write.
const unwritten = "nothing was written: it was so already"

// What is said of a Transaction that has no condition yet: the finalizer comes first.
const (
	unlooked = "no janusd has looked at it yet"
	tried    = "janusd checks its changes"
)

func lookedAt(t *api.Transaction) string {
	if slices.Contains(t.Finalizers, api.Finalizer) {
		return tried
	}
	return unlooked
}

// unheard reports whether no janusd has said anything of a Transaction.
func unheard(t *api.Transaction) bool {
	return t.Status.Phase == "" && meta.FindStatusCondition(t.Status.Conditions, api.ConditionReady) == nil
}

// reasonOf is the reason of the condition Ready, and what it says.
func reasonOf(t *api.Transaction) (status, reason, message string) {
	ready := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReady)
	if ready == nil {
		return "Unknown", "", lookedAt(t)
	}
	return string(ready.Status), ready.Reason, ready.Message
}

// inWords says a phase in a sentence.
func inWords(phase api.Phase) string {
	if phase == api.PhaseRolledBack {
		return "rolled back"
	}
	return strings.ToLower(string(phase))
}

// summary prints how a Transaction has ended, and what to look at if it has failed or is
// rolled back, unless the progress has said so of an item. from are the flags that name its manifests, where there are some.
func (s *session) summary(out io.Writer, t *api.Transaction, from string) {
	write(out, "transaction.backup.janus.io/%s %s\n", t.Name, inWords(phaseOf(t)))
	if t.Status.Phase == api.PhaseCommitted {
		s.say("%s", done(t))
	}
	if t.Status.Phase == api.PhaseCommitted || t.Status.Phase == api.PhasePlanned {
		return
	}
	if !onlyRights(t) {
		_, reason, message := reasonOf(t)
		s.say("%s: %s", reason, message)
	}
	for i, item := range t.Status.Items {
		text := itemSentence(t, i)
		if item.Reason != "" && !plan.NotWanted(&item) && !lacksRight(&item) && !s.told[text] {
			s.say("  %s", text)
		}
	}
	printMissing(s.ErrOut, t, from)
	if t.Status.Phase == api.PhaseFailed && unresolved(t) && !plan.EndedInPart(&t.Status) {
		s.say("What could not be rolled back, and what to do: kubectl janus recover %s -n %s", t.Name, t.Namespace)
	}
}

// done says what a Transaction has done that has committed, how long it took, and how to undo it.
func done(t *api.Transaction) string {
	counts := map[string]int{}
	for i := range t.Status.Items {
		item := &t.Status.Items[i]
		word := map[api.ChangeType]string{api.Create: "created", api.Update: "updated", api.Patch: "patched", api.Delete: "deleted"}[typeOf(t, i)]
		switch {
		case item.State == api.ItemSkipped:
			word = "skipped"
		case item.Unchanged && typeOf(t, i) != api.Await:
			word = "unchanged"
		}
		counts[word]++
	}
	var parts []string
	for _, word := range []string{"created", "updated", "patched", "deleted", "unchanged", "skipped"} {
		if n := counts[word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	if len(parts) == 0 {
		parts = []string{"nothing to change"}
	}
	text := "Done in " + cmp.Or(t.Status.Duration, "<1s") + ": " + strings.Join(parts, ", ") + "."
	if t.Status.Revision != 0 {
		text += fmt.Sprintf(" To undo it: kubectl janus undo %s -n %s", t.Name, t.Namespace)
	}
	return text
}

// unresolved reports whether something could not be rolled back.
func unresolved(t *api.Transaction) bool {
	for _, item := range t.Status.Items {
		if item.State == api.ItemUnresolved {
			return true
		}
	}
	return false
}
