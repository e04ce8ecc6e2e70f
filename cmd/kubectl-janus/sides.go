package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// sides are what a program that compares files is given of one item: what is there, and
// what would be there, as YAML. Both have the name of the object and those fields that the
// plan lists; what has no field that differs is empty, as with kubectl diff.
type sides struct {
	item   *api.Item
	live   tree
	merged tree
	// vague are fields whose values are too long for a plan, and cannot be found otherwise.
	vague []string
	// whole is set if there are fields that the plan does not list, and which are as in the
	// content: nothing else is known of what is created.
	whole bool
}

// sidesOf makes the sides of an item. Values that are too long for a plan are looked up in
// the object as it is, and in what it is to become; either may be nil.
func sidesOf(item *api.Item, live, content any) sides {
	s := sides{item: item}
	if item.Plan.Effect != api.EffectCreate {
		s.live = named(item.Target)
	}
	if item.Plan.Effect != api.EffectDelete {
		s.merged = named(item.Target)
	}
	if object, ok := content.(map[string]any); ok && item.Plan.Effect == api.EffectCreate && item.Plan.More > 0 && !masked(item.Plan) {
		s.merged, s.whole = wholeOf(item.Target, object), true
	}
	for _, f := range item.Plan.Fields {
		path := elementsOf(f.Field, live, content)
		before, knowBefore := valueOf(f.Before, path, live)
		after, knowAfter := valueOf(f.After, path, content)
		if !knowBefore || !knowAfter {
			s.vague = append(s.vague, f.Field)
			if f.Before == f.After {
				// They differ, or the plan would not list them, and so must the files.
				before, after = f.Before+" (before)", f.After+" (after)"
			}
		}
		if f.Before != "" {
			s.live.set(path, before)
		}
		if f.After != "" {
			s.merged.set(path, after)
		}
	}
	return s
}

// wholeOf is what is created, as far as its content says.
func wholeOf(t api.Target, content map[string]any) tree {
	out, name := runtime.DeepCopyJSON(content), named(t)
	metadata, _ := out["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	identity, _ := name["metadata"].(map[string]any)
	maps.Copy(metadata, identity)
	maps.Copy(out, name)
	out["metadata"] = metadata
	return out
}

// masked reports whether a plan hides values: one that it shows is JSON, whole or cut.
func masked(p *api.Plan) bool {
	return slices.ContainsFunc(p.Fields, func(f api.FieldChange) bool {
		_, err := decode([]byte(f.After))
		return f.After != "" && err != nil && !strings.HasSuffix(f.After, "…")
	})
}

// file is the name of an object as kubectl diff calls its file.
func (s sides) file() string {
	group, version, found := strings.Cut(s.item.Target.APIVersion, "/")
	if !found {
		group, version = "", group
	} else {
		group += "."
	}
	return fmt.Sprintf("%s%s.%s.%s.%s", group, version, s.item.Target.Kind, s.item.Target.Namespace, s.item.Target.Name)
}

// valueOf reads a value of a plan. One that was cut to fit is taken from the object that
// had it, if it is there still; it reports whether the value is the whole one.
func valueOf(text string, path []element, in any) (any, bool) {
	if text == "" {
		return nil, true
	}
	if v, err := decode([]byte(text)); err == nil {
		return v, true
	}
	start, cut := strings.CutSuffix(text, "…")
	if !cut {
		return text, true // a mask
	}
	v, found := at(in, path)
	if !found {
		return text, false
	}
	whole, err := json.Marshal(v)
	if err != nil || !strings.HasPrefix(errclass.Printable(string(whole)), start) {
		return text, false
	}
	return v, true
}

// decode reads JSON and keeps numbers as they are written.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one value")
	}
	return v, nil
}

// tree is an object, as far as it is known.
type tree map[string]any

// named is an object of which nothing is known but its name.
func named(t api.Target) tree {
	metadata := map[string]any{"name": t.Name}
	if t.Namespace != "" {
		metadata["namespace"] = t.Namespace
	}
	return tree{"apiVersion": t.APIVersion, "kind": t.Kind, "metadata": metadata}
}

// set sets a field. A tree of nothing stays one.
func (t tree) set(path []element, v any) {
	if t != nil {
		put(map[string]any(t), path, v)
	}
}

// put returns a node with a value below it.
func put(node any, path []element, v any) any {
	if len(path) == 0 {
		return v
	}
	first, rest := path[0], path[1:]
	if first.item == "" {
		object, ok := node.(map[string]any)
		if !ok {
			object = map[string]any{}
		}
		object[first.field] = put(object[first.field], rest, v)
		return object
	}
	list, _ := node.([]any)
	for i, item := range list {
		if first.picks(item) {
			list[i] = put(item, rest, v)
			return list
		}
	}
	item := map[string]any{}
	for key, value := range first.keys() {
		item[key] = value
	}
	return append(list, put(item, rest, v))
}

// yaml is the text of a tree; empty for one of nothing.
func (t tree) yaml() ([]byte, error) {
	if t == nil {
		return nil, nil
	}
	return yaml.Marshal(map[string]any(t))
}
