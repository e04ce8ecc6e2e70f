package random

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	api "janus.io/janus/api/v1alpha1"
)

// randomCase is a random Transaction over random objects, with what others write
// before it, between its changes, and before each of them is rolled back.
type randomCase struct {
	objects []randomObject
	before  []foreignWrite
	items   []randomItem
	// during and after are what others write just before item i is done, or rolled back.
	during, after map[int][]foreignWrite
	// refused is set where the last change is refused, but not in a dry run.
	refused bool
	// source is the name of the objects that hold contents. They are late where they are made
	// after the Transaction.
	source string
	late   bool
}

type randomObject struct {
	kind
	name string
	// made is set where the Transaction is to make the object.
	made bool
}

func (o randomObject) ref() string { return o.kind.ref(o.name) }

type randomItem struct {
	kind   api.ChangeType
	object int
	values values
	// from is where its content is; nil for in the Transaction.
	from *randomSource
}

// foreignWrite is a write of another client, which sets fields.
type foreignWrite struct {
	manager string
	// how is create, apply, edit, scale, or remove: then the values say what.
	how    string
	object int
	values values
}

// drawCase draws a case. All names in it are new; n counts cases.
func drawCase(t *rapid.T, n int) *randomCase {
	c := &randomCase{source: fmt.Sprint("source-", n), during: map[int][]foreignWrite{}, after: map[int][]foreignWrite{}}
	for i := range rapid.IntRange(1, 3).Draw(t, "objects") {
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		made := i > 0 && rapid.IntRange(0, 4).Draw(t, "made") == 0
		c.objects = append(c.objects, randomObject{kind: k, name: fmt.Sprintf("o%d-%d", i, n), made: made})
	}
	c.drawHistory(t)
	for range rapid.IntRange(1, 4).Draw(t, "items") {
		c.drawItem(t)
	}
	if len(c.items) == 0 {
		c.items = append(c.items, randomItem{kind: api.Patch, object: 0, values: c.drawValues(t, 0, 0)})
	}
	c.refused = rapid.Bool().Draw(t, "refused")
	fresh := 0
	for i := range c.items {
		if rapid.IntRange(0, 9).Draw(t, "during") == 0 {
			c.during[i] = c.drawForeign(t, &fresh)
		}
		if c.refused && rapid.Bool().Draw(t, "after") {
			c.after[i] = c.drawForeign(t, &fresh)
		}
	}
	c.drawSources(t)
	return c
}

// drawHistory has up to three managers write the objects that are there before.
func (c *randomCase) drawHistory(t *rapid.T) {
	for i, o := range c.objects {
		if o.made {
			continue
		}
		c.before = append(c.before, foreignWrite{"m0", rapid.SampledFrom([]string{"create", "apply"}).Draw(t, "how"), i, c.drawValues(t, i, 0)})
		for m := range rapid.IntRange(0, 2).Draw(t, "managers") {
			how := rapid.SampledFrom([]string{"apply", "edit", "scale"}).Draw(t, "how")
			nth := 0
			if how == "scale" {
				// A write to /scale that changes nothing makes two entries of one, of which the
				// API server drops one with the next write of anyone.
				nth = 50 + m
			}
			c.before = append(c.before, c.possible(foreignWrite{fmt.Sprint("m", m+1), how, i, c.drawValues(t, i, nth)}))
		}
	}
}

// possible makes a write to /scale one of replicas alone, and a removal one of a
// field that can be removed, or either another write.
func (c *randomCase) possible(w foreignWrite) foreignWrite {
	if w.how != "scale" && w.how != "remove" {
		return w
	}
	for f, field := range c.objects[w.object].fields {
		if value, ok := w.values[f]; ok && (w.how == "scale" && field.scaled || w.how == "remove" && field.removable()) {
			w.values = values{f: value}
			return w
		}
	}
	w.how = "edit"
	return w
}

// drawValues draws some fields of an object, at least one; nth as in value.
func (c *randomCase) drawValues(t *rapid.T, object, nth int) values {
	fields := c.objects[object].fields
	indexes := make([]int, len(fields))
	for i := range indexes {
		indexes[i] = i
	}
	out := values{}
	for _, i := range rapid.SliceOfNDistinct(rapid.SampledFrom(indexes), 1, 4, rapid.ID[int]).Draw(t, "fields") {
		out[i] = fields[i].value(t, nth)
	}
	return out
}

// drawItem draws a change that can be made. Nothing is changed once it is deleted.
func (c *randomCase) drawItem(t *rapid.T) {
	i := rapid.IntRange(0, len(c.objects)-1).Draw(t, "object")
	there := !c.objects[i].made
	for _, item := range c.items {
		if item.object == i {
			there = item.kind != api.Delete
			if !there {
				return
			}
		}
	}
	item := randomItem{kind: api.Create, object: i}
	if there {
		item.kind = rapid.SampledFrom([]api.ChangeType{api.Patch, api.Patch, api.Update, api.Delete}).Draw(t, "change")
	}
	if item.kind != api.Delete {
		item.values = c.drawValues(t, i, 0)
	}
	c.items = append(c.items, item)
}

// drawForeign draws a write to an object that was there before, of values that
// nobody else writes, by a new manager or, not by an apply, by one of those before.
func (c *randomCase) drawForeign(t *rapid.T, fresh *int) []foreignWrite {
	*fresh++
	i := rapid.IntRange(0, len(c.objects)-1).Draw(t, "object")
	if c.objects[i].made {
		i = 0
	}
	w := foreignWrite{object: i, values: c.drawValues(t, i, *fresh), manager: fmt.Sprint("f", *fresh)}
	w.how = rapid.SampledFrom([]string{"apply", "edit", "scale", "remove"}).Draw(t, "how")
	if w.how == "remove" && c.changes(i) > 1 {
		// Nobody owns what is not there: if one change had removed the field and the next
		// set it, the removal by another client cannot be told from the first.
		w.how = "edit"
	}
	if w.how != "apply" && rapid.Bool().Draw(t, "known") {
		w.manager = rapid.SampledFrom([]string{"m0", "m1", "m2"}).Draw(t, "manager")
	}
	return []foreignWrite{c.possible(w)}
}

// changes counts the changes of an object.
func (c *randomCase) changes(object int) int {
	n := 0
	for _, item := range c.items {
		if item.object == object {
			n++
		}
	}
	return n
}

// content is an object, or what an apply sets of it.
func (o randomObject) content(v values, whole bool) map[string]any {
	out := map[string]any{}
	if whole {
		if err := json.Unmarshal([]byte(o.base), &out); err != nil {
			panic(err)
		}
		toIntegers(out)
	}
	o.fill(out, v)
	return out
}

// toIntegers makes integers of the numbers that JSON gave as floats.
func toIntegers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = toIntegers(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = toIntegers(inner)
		}
	case float64:
		return int64(v)
	}
	return v
}

func (o randomObject) object(content map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: content}
	out.SetAPIVersion(o.apiVersion)
	out.SetKind(o.kind.name)
	out.SetName(o.name)
	return out
}

// spec is the spec of the Transaction, as JSON. last is the object whose creation
// is refused.
func (c *randomCase) spec(last string) string {
	var changes []any
	for i, item := range c.items {
		o := c.objects[item.object]
		change := map[string]any{"type": item.kind, "target": map[string]any{"apiVersion": o.apiVersion, "kind": o.kind.name, "name": o.name}}
		switch {
		case item.from != nil:
			change["contentFrom"] = c.contentFrom(i)
		case item.kind != api.Delete:
			change["content"] = o.content(item.values, item.kind != api.Patch)
		}
		changes = append(changes, change)
	}
	if c.refused {
		changes = append(changes, map[string]any{
			"type": api.Create, "content": map[string]any{}, "target": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": last},
		})
	}
	out, err := json.Marshal(map[string]any{"changes": changes})
	if err != nil {
		panic(err)
	}
	return string(out)
}

func (w foreignWrite) describe(c *randomCase) string {
	o := c.objects[w.object]
	content, _ := json.Marshal(o.content(w.values, false))
	return fmt.Sprintf("%s %ss %s: %s", w.manager, w.how, o.ref(), content)
}

func (c *randomCase) describe() string {
	var out strings.Builder
	for _, w := range c.before {
		fmt.Fprintln(&out, "before:", w.describe(c))
	}
	fmt.Fprintln(&out, "spec:", c.spec("refused"))
	for i, item := range c.items {
		if item.from != nil {
			fmt.Fprintf(&out, "content of item %d, %s in a %s, late %t, then %q: %s\n", i, item.from.form, item.from.kind, c.late, item.from.lost,
				encoded(c.objects[item.object].content(item.values, item.kind != api.Patch)))
		}
	}
	for i := range c.items {
		for _, w := range c.during[i] {
			fmt.Fprintf(&out, "before item %d is done: %s\n", i, w.describe(c))
		}
		for _, w := range c.after[i] {
			fmt.Fprintf(&out, "before item %d is rolled back: %s\n", i, w.describe(c))
		}
	}
	return out.String()
}
