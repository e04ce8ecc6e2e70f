package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// lacksRight reports whether all that is wrong with an item is that the ServiceAccount may not do
// something to its target.
func lacksRight(item *api.Item) bool {
	return len(item.MissingVerbs) > 0 && item.Reason == errclass.AccessDenied
}

// onlyRights reports whether nothing else than missing rights is wrong with a Transaction.
func onlyRights(t *api.Transaction) bool {
	some := false
	for i := range t.Status.Items {
		lacks := lacksRight(&t.Status.Items[i])
		if t.Status.Items[i].Reason != "" && !lacks {
			return false
		}
		some = some || lacks
	}
	return some
}

// missingRight is a row of the table of them: the objects of a resource on which the same verbs are
// lacking.
type missingRight struct {
	verbs, resource, namespace string
	names                      []string
}

// missingRights are the rows for a Transaction, in the order of its items. An object may be that of
// several items.
func missingRights(t *api.Transaction) []missingRight {
	verbs := map[api.Target][]string{}
	for _, item := range t.Status.Items {
		if !lacksRight(&item) {
			continue
		}
		of := item.Target.Identity()
		for _, verb := range item.MissingVerbs {
			if !slices.Contains(verbs[of], verb) {
				verbs[of] = append(verbs[of], verb)
			}
		}
	}
	var out []missingRight
	for _, item := range t.Status.Items {
		if !lacksRight(&item) {
			continue
		}
		gv, _ := schema.ParseGroupVersion(item.Target.APIVersion)
		row := missingRight{
			verbs:     strings.Join(verbs[item.Target.Identity()], ","),
			resource:  gv.WithResource(item.Resource).GroupResource().String(),
			namespace: item.Target.Namespace,
		}
		at := slices.IndexFunc(out, func(r missingRight) bool {
			return r.verbs == row.verbs && r.resource == row.resource && r.namespace == row.namespace
		})
		if at < 0 {
			at, out = len(out), append(out, row)
		}
		if !slices.Contains(out[at].names, item.Target.Name) {
			out[at].names = append(out[at].names, item.Target.Name)
		}
	}
	return out
}

// shown is how many names are listed at most.
const shown = 20

// printMissing prints which rights the ServiceAccount of a Transaction lacks, and how to grant them.
// It prints nothing if there are none.
func printMissing(out io.Writer, t *api.Transaction, from string) {
	rows := missingRights(t)
	if len(rows) == 0 {
		return
	}
	so := ""
	if !slices.ContainsFunc(t.Status.Items, func(i api.Item) bool { return i.State != api.ItemPending }) {
		so = ", and nothing was changed"
	}
	write(out, "ServiceAccount %s/%s lacks these rights%s:\n", t.Namespace, t.Spec.ServiceAccountName, so)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "  VERBS\tRESOURCE\tNAMESPACE\tNAMES")
	for _, row := range rows {
		names := row.names
		if len(names) > shown {
			names = append(slices.Clone(names[:shown]), fmt.Sprintf("and %d more", len(names)-shown))
		}
		write(w, "  %s\t%s\t%s\t%s\n", row.verbs, row.resource, row.namespace, strings.Join(names, ", "))
	}
	_ = w.Flush()
	write(out, "%s\n", wayToGrant(t, from))
}

// wayToGrant says how to grant the rights that a Transaction lacks. What an undo needs is what the
// Transaction needed that it undoes.
func wayToGrant(t *api.Transaction, from string) string {
	switch {
	case from != "":
		from += " --service-account " + t.Spec.ServiceAccountName
	case t.Spec.UndoOf != nil:
		from = t.Spec.UndoOf.Name
	default:
		from = t.Name
	}
	if from == "" {
		return "Grant them to it, by a Role such as kubectl janus rbac prints."
	}
	return fmt.Sprintf("To grant what the changes need: kubectl janus rbac %s -n %s | kubectl apply -f -", from, t.Namespace)
}

// inputFlags are those that name the manifests again, for another command.
func (w *wishes) inputFlags() string {
	var out []string
	add := func(flag, value string) {
		if strings.ContainsAny(value, " \t\n'\"$&|;<>()*?[]#~`\\") {
			value = "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		}
		out = append(out, flag+" "+value)
	}
	for _, file := range w.Filenames {
		add("-f", file)
	}
	if w.Recursive {
		out = append(out, "-R")
	}
	if w.Kustomize != "" {
		add("-k", w.Kustomize)
	}
	for _, object := range w.remove {
		add("--delete", object)
	}
	if w.set != "" {
		add("--set", w.set)
	}
	if w.prune {
		out = append(out, "--prune")
	}
	return strings.Join(out, " ")
}
