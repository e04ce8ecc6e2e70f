package random

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// kind is one of the kinds that random Transactions change, with fields of it.
type kind struct {
	apiVersion, name string
	// base is what an object of the kind needs.
	base string
	// fields are of every sort that the kind has.
	fields []kindField
}

// kindField is a field that is written as one value.
type kindField struct {
	// path is the field as Janus names it: .spec.parts[name="x"].count.
	path string
	// of is what the value is: text, number, words, list, or a member of a set.
	of string
	// prefix keeps values of two fields apart that must differ.
	prefix string
	// scaled is set where the subresource scale writes it too.
	scaled bool
}

var kinds = []kind{
	{
		apiVersion: "v1", name: "ConfigMap", base: `{}`,
		fields: []kindField{
			{path: ".data.a", of: "text"}, {path: ".data.b", of: "text"}, {path: ".data.c", of: "text"},
			{path: ".metadata.labels.x", of: "text"}, {path: ".metadata.annotations.y", of: "text"},
		},
	},
	{
		// It is paused, so that no controller writes anything but its status.
		apiVersion: "apps/v1", name: "Deployment",
		base: `{"spec": {"paused": true, "selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}},
			"spec": {"containers": [{"name": "web", "image": "web"}]}}}}`,
		fields: []kindField{
			{path: ".spec.replicas", of: "number", scaled: true}, {path: ".spec.minReadySeconds", of: "number"},
			{path: ".metadata.labels.x", of: "text"}, {path: ".spec.template.metadata.labels.x", of: "text"},
			{path: `.spec.template.spec.containers[name="web"].image`, of: "text"},
			{path: `.spec.template.spec.containers[name="web"].command`, of: "list"},
			{path: `.spec.template.spec.containers[name="web"].env[name="A"].value`, of: "text"},
			{path: `.spec.template.spec.containers[name="web"].env[name="B"].value`, of: "text"},
			{path: `.spec.template.spec.containers[name="side"].image`, of: "text"},
		},
	},
	{
		apiVersion: "v1", name: "Service",
		base: `{"spec": {"ports": [{"name": "web", "port": 80, "protocol": "TCP"}]}}`,
		fields: []kindField{
			{path: ".spec.selector", of: "words"}, {path: ".metadata.labels.x", of: "text"}, {path: ".metadata.annotations.y", of: "text"},
			{path: `.spec.ports[port=80,protocol="TCP"].targetPort`, of: "number"},
			{path: `.spec.ports[port=81,protocol="TCP"].name`, of: "text", prefix: "a"},
			{path: `.spec.ports[port=80,protocol="UDP"].name`, of: "text", prefix: "b"},
		},
	},
	{
		apiVersion: "example.com/v1", name: "Widget", base: `{"spec": {}}`,
		fields: []kindField{
			{path: ".spec.size", of: "number"}, {path: ".spec.mode", of: "text"}, {path: ".spec.nickname", of: "text"},
			{path: ".spec.selector", of: "words"}, {path: ".spec.steps", of: "list"}, {path: ".spec.tags", of: "member"},
			{path: `.spec.parts[name="x"].count`, of: "number"}, {path: `.spec.parts[name="y"].count`, of: "number"},
			{path: `.spec.parts[name="z"].count`, of: "number"},
			{path: ".spec.options.o", of: "text"}, {path: ".spec.options.deep.p", of: "words"}, {path: ".metadata.labels.x", of: "text"},
		},
	},
}

func (k kind) ref(name string) string { return k.apiVersion + " " + k.name + "/" + name }

// values are fields, by index, and what they are to be.
type values map[int]any

// fill sets fields of an object.
func (k kind) fill(object map[string]any, v values) {
	for i := range k.fields {
		if value, ok := v[i]; ok {
			k.fields[i].set(object, value)
		}
	}
}

// value makes the value of a field: of few ones, or the nth of those that others
// write, which are all different.
func (f kindField) value(t *rapid.T, nth int) any {
	n := rapid.IntRange(0, 2).Draw(t, "value")
	text := fmt.Sprint("v", n)
	if nth > 0 {
		n, text = 100+nth, fmt.Sprint("f", nth)
	}
	switch f.of {
	case "number":
		return int64(n + 1)
	case "words":
		return map[string]any{"k": text}
	case "list":
		return []any{text, "last"}
	default:
		return f.prefix + text
	}
}

// steps are the field names of a path, each with the keys of a list item or none.
func (f kindField) steps() (names []string, keys []map[string]any) {
	for _, step := range strings.Split(f.path[1:], ".") {
		name, item, found := strings.Cut(step, "[")
		var key map[string]any
		if found {
			key = map[string]any{}
			for _, pair := range strings.Split(strings.TrimSuffix(item, "]"), ",") {
				k, v, _ := strings.Cut(pair, "=")
				key[k] = strings.Trim(v, `"`)
				if v[0] != '"' {
					var n int64
					_, _ = fmt.Sscan(v, &n)
					key[k] = n
				}
			}
		}
		names, keys = append(names, name), append(keys, key)
	}
	return names, keys
}

// removable reports whether another client may remove the field: it is in no list,
// and has no default.
func (f kindField) removable() bool {
	return !strings.Contains(f.path, "[") && f.path != ".spec.mode" && !f.scaled && f.of != "member"
}

// remove takes the field out of an object. It reports false if it is not there.
func (f kindField) remove(obj *unstructured.Unstructured) bool {
	there := f.get(obj) != nil
	unstructured.RemoveNestedField(obj.Object, strings.Split(f.path[1:], ".")...)
	return there
}

// set sets the field, with all that it is in.
func (f kindField) set(object map[string]any, value any) {
	names, keys := f.steps()
	last := len(names) - 1
	for i, name := range names[:last] {
		if keys[i] == nil {
			inner, ok := object[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				object[name] = inner
			}
			object = inner
			continue
		}
		list, _ := object[name].([]any)
		item := itemOf(list, keys[i])
		if item == nil {
			item = map[string]any{}
			for k, v := range keys[i] {
				item[k] = v
			}
			object[name] = append(list, item)
		}
		object = item
	}
	if f.of == "member" {
		list, _ := object[names[last]].([]any)
		for _, member := range list {
			if member == value {
				return
			}
		}
		value = append(list, value)
	}
	object[names[last]] = value
}

// get reads the field; nil where it is not there. A set has no one value.
func (f kindField) get(obj *unstructured.Unstructured) any {
	if obj == nil || f.of == "member" {
		return nil
	}
	names, keys := f.steps()
	var at any = obj.Object
	for i, name := range names {
		object, _ := at.(map[string]any)
		at = object[name]
		if keys[i] != nil {
			list, _ := at.([]any)
			if item := itemOf(list, keys[i]); item != nil {
				at = item
			} else {
				return nil
			}
		}
	}
	return at
}

func itemOf(list []any, keys map[string]any) map[string]any {
	for _, v := range list {
		item, _ := v.(map[string]any)
		same := item != nil
		for k, want := range keys {
			same = same && reflect.DeepEqual(item[k], want)
		}
		if same {
			return item
		}
	}
	return nil
}
