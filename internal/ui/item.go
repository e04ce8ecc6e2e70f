package ui

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// Item is one change and what has become of it.
type Item struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Target string `json:"target"`
	// Kind is that of the target.
	Kind string `json:"kind"`
	// State is that of the item, or Waiting while its target is waited for.
	State     string   `json:"state"`
	Wait      *Wait    `json:"wait"`
	Spans     []Span   `json:"spans"`
	Reason    string   `json:"reason"`
	Message   string   `json:"message"`
	DependsOn []string `json:"dependsOn"`
	// Fields are the names of those that the change has content for, and no value.
	Fields    []string     `json:"fields"`
	Notes     []string     `json:"notes"`
	Conflicts []Difference `json:"conflicts"`
	Effect    string       `json:"effect"`
	Plan      []Difference `json:"plan"`
	// Show is the command that shows the target.
	Show string `json:"show"`
}

// Difference is a field with two values, as janusd has written them into the status.
type Difference struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
	Who    string `json:"who"`
}

// masked stands for a value of a Secret, which is shown under no circumstances.
const masked = "***"

// itemsOf returns the items in the order of the list. Before janusd has looked at the
// Transaction there are changes alone.
func itemsOf(t *api.Transaction) []Item {
	out, spans := []Item{}, spansOf(t)
	for i := range max(len(t.Spec.Changes), len(t.Status.Items)) {
		item := Item{
			Name: strconv.Itoa(i), State: string(api.ItemPending), Spans: []Span{},
			DependsOn: []string{}, Fields: []string{}, Notes: []string{}, Conflicts: []Difference{}, Plan: []Difference{},
		}
		if i < len(t.Spec.Changes) {
			ask(&item, t.Spec.Changes[i])
		}
		if i < len(t.Status.Items) {
			tell(&item, t.Status.Items[i])
			if item.Spans = spans[i]; item.Spans == nil {
				item.Spans = []Span{}
			}
			if item.Wait = waitOf(t, i); item.Wait != nil {
				item.State = stateWaiting
			}
		}
		out = append(out, item)
	}
	return out
}

// ask fills in what is asked for.
func ask(item *Item, c api.Change) {
	if c.Name != "" {
		item.Name = c.Name
	}
	item.Type, item.Target, item.Kind, item.Show = string(c.Type), c.Target.String(), c.Target.Kind, showing(c.Target, "")
	item.DependsOn = append(item.DependsOn, c.DependsOn...)
	if c.Content != nil {
		item.Fields = fieldNames(c.Content.Raw)
	}
	if c.Guard {
		item.Notes = append(item.Notes, "guard: judged again before the first change and before the commit")
	}
	if c.WhenFalse == api.WhenFalseDelete {
		item.Notes = append(item.Notes, "deleted if its when is false")
	}
	if c.Release != nil {
		item.Notes = append(item.Notes, "releases fields that "+strings.Join(c.Release.Managers, ", ")+" owns")
	}
	if c.ContentFrom != nil {
		item.Notes = append(item.Notes, "content from "+c.ContentFrom.String())
	}
}

// tell fills in what has become of it.
func tell(item *Item, i api.Item) {
	item.Name, item.Target, item.Kind, item.State = i.Name, i.Target.String(), i.Target.Kind, string(i.State)
	item.Show = showing(i.Target, i.Resource)
	item.Reason, item.Message = i.Reason, i.Message
	if i.Type != "" {
		item.Type = string(i.Type)
	}
	item.Notes = append(item.Notes, deletion(i)...)
	if i.Failed {
		item.Notes = append(item.Notes, "failed; what depends on it is not made")
	}
	if wait := i.RollbackWait; wait != nil && wait.ReadyTime == nil && i.State == api.ItemUnresolved {
		item.Notes = append(item.Notes, "restored, and not ready since "+stamp(wait.StartTime))
	}
	for _, r := range i.Results {
		note := fmt.Sprintf("%s was %t at %s", r.Condition, r.Holds, stamp(&r.Time))
		if r.Message != "" {
			note += ": " + r.Message
		}
		item.Notes = append(item.Notes, note)
	}
	var refers []string
	for _, name := range i.DependsOn {
		if !slices.Contains(item.DependsOn, name) {
			refers = append(refers, name)
		}
	}
	if len(refers) > 0 {
		item.Notes = append(item.Notes, "depends on "+strings.Join(refers, ", "))
	}
	if i.Unchanged {
		item.Notes = append(item.Notes, "nothing was written: it was so already")
	}
	for _, f := range i.Taken {
		item.Notes = append(item.Notes, "taken from "+f.Manager+": "+some(f.Fields, f.More))
	}
	for _, f := range i.Reclaimed {
		item.Notes = append(item.Notes, "taken again by "+f.Manager+": "+some(f.Fields, f.More))
	}
	for _, warning := range i.Warnings {
		item.Notes = append(item.Notes, "warning: "+warning)
	}
	secret := isSecret(&i)
	for _, c := range i.Conflicts {
		item.Conflicts = append(item.Conflicts, difference(secret, c.Field, c.Before, c.Now, strings.Join(c.Managers, ", ")))
	}
	if i.Plan == nil {
		return
	}
	item.Effect = string(i.Plan.Effect)
	if i.Plan.Deferred != "" {
		item.Notes = append(item.Notes, "not known yet: "+i.Plan.Deferred)
	}
	for _, f := range i.Plan.Fields {
		item.Plan = append(item.Plan, difference(secret, f.Field, f.Before, f.After, ""))
	}
	if i.Plan.More > 0 {
		item.Notes = append(item.Notes, fmt.Sprintf("%d more fields would change", i.Plan.More))
	}
}

// isSecret reports whether no value of the target of an item may be shown, as far as the status tells.
func isSecret(i *api.Item) bool { return i.Confidential || i.Target.Kind == "Secret" }

// deletion says whether the target of an item is deleted in place of its change, or may be.
func deletion(i api.Item) []string {
	switch {
	case i.DeletesInstead():
		return []string{"deletes its target, because a when is false"}
	case len(i.DeletedWith) > 0 && i.State != api.ItemSkipped:
		return []string{"deleted if the when of " + strings.Join(i.DeletedWith, " or ") + " is false"}
	}
	return nil
}

func difference(secret bool, field, before, after, who string) Difference {
	if secret {
		before, after = mask(before), mask(after)
	}
	return Difference{Field: field, Before: before, After: after, Who: who}
}

// mask keeps whether there is a value.
func mask(value string) string {
	if value == "" {
		return ""
	}
	return masked
}

func some(fields []string, more int64) string {
	text := strings.Join(fields, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// manyFields are as many names as a reader takes in.
const manyFields = 40

// fieldNames lists the fields that a content has a value for, such as .spec.replicas. A list is
// one field. Content that is no object has none: the API server refuses it.
func fieldNames(raw []byte) []string {
	var content map[string]any
	if err := json.Unmarshal(raw, &content); err != nil {
		return []string{}
	}
	names := leaves([]string{}, "", content)
	if more := len(names) - manyFields; more > 0 {
		names = append(names[:manyFields:manyFields], fmt.Sprintf("and %d more", more))
	}
	return names
}

func leaves(names []string, path string, content map[string]any) []string {
	for _, key := range slices.Sorted(maps.Keys(content)) {
		if child, ok := content[key].(map[string]any); ok && len(child) > 0 {
			names = leaves(names, path+"."+key, child)
			continue
		}
		names = append(names, path+"."+key)
	}
	return names
}
