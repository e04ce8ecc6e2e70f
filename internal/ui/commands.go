package ui

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Command is a command that a person may run next, fit for a shell.
type Command struct {
	What string `json:"what"`
	Text string `json:"text"`
}

// commandsOf are those for a Transaction as it is: first what leads on from here.
func commandsOf(t *api.Transaction) []Command {
	out := []Command{}
	add := func(what, verb string) {
		out = append(out, Command{what, command("kubectl", "janus", verb, t.Name, "-n", t.Namespace)})
	}
	unresolved := slices.ContainsFunc(t.Status.Items, func(i api.Item) bool { return i.State == api.ItemUnresolved })
	switch phase := t.Status.Phase; {
	case !phase.Terminal():
		if a := t.Status.Approval; a != nil && a.ApprovalTime == nil && a.Digest != "" {
			add("Show the plan, and how to approve it", "approve")
		}
		if t.Spec.Suspend {
			add("Resume it", "resume")
		}
		add("Follow it", "wait")
		add("Cancel it, and roll back what was made", "cancel")
	case phase == api.PhaseFailed && unresolved:
		add("Show what was left, and what to do", "recover")
	case phase == api.PhaseFailed, phase == api.PhaseRolledBack:
		add("Run its changes once more", "retry")
	}
	if t.Status.RevisionDigest != "" {
		add("Undo it; shows the plan and asks", "undo")
		add("Show what it has changed", "history")
	}
	add("Describe it", "describe")
	return out
}

// showing is the command that shows the target of an item.
func showing(target api.Target, resource string) string {
	kind := resource
	if group := target.Identity().APIVersion; kind != "" && group != "" {
		kind += "." + group
	}
	if kind == "" {
		kind = strings.ToLower(target.Kind)
	}
	words := []string{"kubectl", "get", kind + "/" + target.Name}
	if strings.HasPrefix(kind, "-") || strings.HasPrefix(target.Namespace, "-") {
		return "" // kubectl would take it for a flag.
	}
	if target.Namespace != "" {
		words = append(words, "-n", target.Namespace)
	}
	return command(append(words, "-o", "yaml")...)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+-]+$`)

// command quotes words for a shell. A spec may name anything.
func command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = errclass.OneLine(word); !plainWord.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(errclass.OneLine(word), "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// backTo is the command that undoes all that was committed after a revision.
func backTo(namespace string, number int64) string {
	return command("kubectl", "janus", "undo", "--to-revision", fmt.Sprint(number), "-n", namespace)
}
