package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	api "janus.io/janus/api/v1alpha1"
)

// What a plan says of an item that has no effect to show.
const (
	effectRefused = "Refused"
	effectUnknown = "Unknown"
)

// printPlan prints what would become of each target: how many of what, a row for each, and the
// fields.
func printPlan(out io.Writer, t *api.Transaction) {
	out = painted(out)
	write(out, "%s\n", planned(t))
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "ITEM\tEFFECT\tTARGET\tFIELDS")
	for i := range t.Status.Items {
		item := &t.Status.Items[i]
		n := ""
		if item.Plan != nil && item.Type != api.Await {
			n = fmt.Sprint(int64(len(item.Plan.Fields)) + item.Plan.More)
		}
		write(w, "%s\t%s\t%s\t%s\n", item.Name, effectOf(item), item.Target.String(), n)
	}
	_ = w.Flush()
	for i := range t.Status.Items {
		printDifferences(out, &t.Status.Items[i])
	}
}

// effectOf says in one word what would become of a target.
func effectOf(item *api.Item) string {
	switch {
	case item.Plan == nil && item.Reason != "":
		return effectRefused
	case item.Plan == nil:
		return effectUnknown
	case item.Type == api.Await:
		return string(api.Await)
	default:
		return string(item.Plan.Effect)
	}
}

// planned says in one line how many objects would be made, changed and deleted, and by which ServiceAccount.
func planned(t *api.Transaction) string {
	counts := map[string]int{}
	for i := range t.Status.Items {
		counts[effectOf(&t.Status.Items[i])]++
	}
	var parts []string
	for _, one := range []struct{ effect, text string }{
		{string(api.EffectCreate), "to create"}, {string(api.EffectChange), "to change"}, {string(api.EffectDelete), "to delete"},
		{string(api.EffectNone), "unchanged"}, {string(api.EffectDeferred), "not known yet"}, {string(api.Await), "to wait for"},
		{effectRefused, "refused"}, {effectUnknown, "not tried"},
	} {
		if n := counts[one.effect]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, one.text))
		}
	}
	if len(parts) == 0 {
		parts = []string{"no changes"}
	}
	return fmt.Sprintf("Plan: %s (as %s/%s)", strings.Join(parts, ", "), t.Namespace, t.Spec.ServiceAccountName)
}

// painted is a writer that shows what goes in red and what comes in green, if that is a terminal and
// NO_COLOR does not forbid it.
func painted(out io.Writer) io.Writer {
	if _, _, ok := terminal(out); !ok || !colourful() {
		return out
	}
	return &painter{out}
}

// painter colours whole lines by how they begin. All that is printed of a plan comes in lines.
type painter struct{ out io.Writer }

func (p *painter) Write(text []byte) (int, error) {
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		colour := ""
		switch {
		case strings.HasPrefix(line, "  - "):
			colour = red
		case strings.HasPrefix(line, "  + "):
			colour = green
		case strings.HasPrefix(line, "    warning: "), strings.HasPrefix(line, "    taken from "):
			colour = yellow
		}
		if colour != "" {
			line = colour + strings.TrimSuffix(line, "\n") + "\x1b[0m\n"
		}
		b.WriteString(line)
	}
	if _, err := io.WriteString(p.out, b.String()); err != nil {
		return 0, fmt.Errorf("print the plan: %w", err)
	}
	return len(text), nil
}
