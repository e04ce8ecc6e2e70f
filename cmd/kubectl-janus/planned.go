package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/target"
)

// What a plan says of an item that has no effect to show.
const (
	effectRefused = "Refused"
	effectUnknown = "Unknown"
)

// shownPlan is a plan as it is printed.
type shownPlan struct {
	out io.Writer
	t   *api.Transaction
	// contents are those of the changes, by their number, as far as they are known: of an object that
	// would be created, they tell what is asked for of what the API server adds.
	contents map[int]map[string]any
	// defaults is set to show what it adds, too.
	defaults bool
}

// printPlanOf prints the plan of a draft.
func (s *session) printPlanOf(ctx context.Context, out io.Writer, d draft, t *api.Transaction, defaults bool) {
	p := shownPlan{out: painted(out), t: t, contents: map[int]map[string]any{}, defaults: defaults}
	drafted := d.changes()
	for i := range t.Status.Items {
		item := &t.Status.Items[i]
		if item.Plan == nil || item.Plan.Effect != api.EffectCreate {
			continue
		}
		content := s.namesOf(ctx, drafted, t, i)
		if content != nil && kindOf(item.Target).GroupKind() == target.SecretKind {
			storeText(content)
		}
		if content != nil {
			p.contents[i] = content
		}
	}
	p.print()
}

// namesOf is the content of a change, for the names of its fields alone: that of a Secret, too, if it
// is the draft's own.
func (s *session) namesOf(ctx context.Context, drafted []api.Change, t *api.Transaction, i int) map[string]any {
	if i < len(drafted) && drafted[i].Content != nil {
		object, _ := decode(drafted[i].Content.Raw)
		content, _ := object.(map[string]any)
		return content
	}
	content, _ := s.contentOf(ctx, drafted, t, i).(map[string]any)
	return content
}

// print prints what would become of each target: how many of what, a row for each, and the
// fields.
func (p shownPlan) print() {
	if p.t.Status.Undoing != nil {
		write(p.out, "It undoes, the newest first:\n")
		for _, one := range p.t.Status.Undoing.All() {
			write(p.out, "  revision %d, Transaction %s\n", one.Revision, one.Name)
		}
	}
	write(p.out, "%s\n", planned(p.t))
	w := tabwriter.NewWriter(p.out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "ITEM\tEFFECT\tTARGET\tFIELDS")
	for i := range p.t.Status.Items {
		item := &p.t.Status.Items[i]
		n := ""
		if item.Plan != nil && item.Type != api.Await {
			said, _ := p.fields(i)
			n = fmt.Sprint(int64(len(said)) + item.Plan.More)
		}
		write(w, "%s\t%s\t%s\t%s\n", item.Name, effectOf(item), item.Target.String(), n)
	}
	_ = w.Flush()
	for i := range p.t.Status.Items {
		p.differences(i)
	}
}

// fields are those of an item that are shown, and how many the API server adds besides.
func (p shownPlan) fields(i int) (said []api.FieldChange, added int) {
	item := &p.t.Status.Items[i]
	content := p.contents[i]
	if item.Plan == nil || content == nil || p.defaults {
		return fieldsOf(item), 0
	}
	for _, f := range item.Plan.Fields {
		if sets(content, f.Field) {
			said = append(said, f)
		}
	}
	return said, len(item.Plan.Fields) - len(said)
}

func fieldsOf(item *api.Item) []api.FieldChange {
	if item.Plan == nil {
		return nil
	}
	return item.Plan.Fields
}

// differences prints what is known of an item besides its row.
func (p shownPlan) differences(i int) {
	item := &p.t.Status.Items[i]
	if item.Reason != "" && !lacksRight(item) {
		write(p.out, "\n%s %s: %s: %s\n", item.Name, item.Target.String(), item.Reason, item.Message)
	}
	said, added := p.fields(i)
	if item.Plan == nil || len(said)+added == 0 && item.Plan.Deferred == "" && len(item.Taken)+len(item.Warnings)+len(item.DeletedWith) == 0 {
		return
	}
	write(p.out, "\n%s %s\n", item.Name, item.Target.String())
	if item.Plan.Deferred != "" {
		write(p.out, "    cannot be told yet: %s\n", item.Plan.Deferred)
	}
	printFields(p.out, "  ", said)
	if added > 0 {
		write(p.out, "    and %s that the API server adds: --defaults shows them\n", number(added, "field"))
	}
	printRemarks(p.out, item, releasedTo(p.t, i))
}

// number counts something in words.
func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
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
	return &painter{out: out}
}

// painter colours whole lines by how they begin. All that is printed of a plan ends with the end of a
// line, but a row of a table is written in pieces.
type painter struct {
	out  io.Writer
	line []byte // what has come of the line so far
}

// effectRow is a row of the table of a plan.
var effectRow = regexp.MustCompile(`^\S+ +(Create|Change|Delete|Refused) +[A-Z]`)

func (p *painter) Write(text []byte) (int, error) {
	var b strings.Builder
	for line := range bytes.Lines(text) {
		if p.line = append(p.line, line...); line[len(line)-1] != '\n' {
			break
		}
		whole := string(p.line)
		if colour := colourOf(whole); colour != "" {
			whole = colour + strings.TrimSuffix(whole, "\n") + "\x1b[0m\n"
		}
		b.WriteString(whole)
		p.line = p.line[:0]
	}
	if _, err := io.WriteString(p.out, b.String()); err != nil {
		return 0, fmt.Errorf("print the plan: %w", err)
	}
	return len(text), nil
}

// colourOf is the colour of a line of a plan.
func colourOf(line string) string {
	sign := strings.TrimLeft(line, " ")
	if row := effectRow.FindStringSubmatch(line); row != nil {
		return map[string]string{"Create": green, "Change": yellow, "Delete": red, "Refused": red}[row[1]]
	}
	switch {
	case sign == line:
		return ""
	case strings.HasPrefix(sign, "- "):
		return red
	case strings.HasPrefix(sign, "+ "):
		return green
	case strings.HasPrefix(sign, "~ "), strings.HasPrefix(sign, "warning: "), strings.HasPrefix(sign, "taken from "):
		return yellow
	}
	return ""
}
