package openapi

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v4/schema"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	"janus.io/janus/fieldmerge"
)

// documents are the schemas of documents that a cluster, or what passes for one, may
// publish.
var documents = []string{
	`{"a": {"type": "object", "properties": {"self": {"$ref": "#/components/schemas/a"}, "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
		"items": {"type": "object", "properties": {"n": {"type": "string", "default": "x"}, "in": {"$ref": "#/components/schemas/a"}}}}, "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}, ` + isX + `}}`,
	`{"a": {"$ref": "#/components/schemas/a", ` + isX + `}}`,
	`{"a": {"type": "object", "properties": {"b": {"$ref": "#/components/schemas/b"}}, ` + isX + `}, "b": {"$ref": "#/components/schemas/c"}, "c": {"$ref": "#/components/schemas/b"}}`,
	`{"a": {"allOf": [{"$ref": "#/components/schemas/b"}], ` + isX + `}, "b": {"allOf": [{"$ref": "#/components/schemas/a"}]}}`,
	`{"a": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/a"}, "x-kubernetes-map-type": "atomic", ` + isX + `}}`,
	`{"a": {"type": "array", "items": {"$ref": "#/components/schemas/a"}, ` + isX + `}}`,
	`{"a": {"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/a"}], "x-kubernetes-map-type": "atomic"}, "x-kubernetes-list-type": "set", ` + isX + `}}`,
	`{"a": {"type": ["object", "null"], "properties": null, "items": [], "x-kubernetes-list-type": 7, "x-kubernetes-list-map-keys": "n", ` + isX + `}}`,
	`{"a": {"properties": {"x": {"default": {"a": [null]}, "type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true, "x-kubernetes-int-or-string": true}}, ` + isX + `}}`,
	`{"a": {"x-kubernetes-group-version-kind": [null, {}, {"group": 7}, {"group": "x.io", "version": "v1", "kind": "X"}, {"group": "x.io", "version": "v1", "kind": "X"}]}}`,
	`{"": {"$ref": "#/components/schemas/", ` + isX + `}, "__untyped_atomic_": {"type": "string"}}`,
	`{"a": {"$ref": "http://[::1"}, "b": {"$ref": "../../etc/passwd"}, "c": {"$ref": 7}}`,
	`{"a": {"x-kubernetes-unions": [{"discriminator": "a", "fields-to-discriminateBy": {"b": "c"}}], "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "integer"}], "nullable": true}}, ` + isX + `}}`,
}

// objects are values that may or may not fit.
var objects = []string{
	`{"self":{"self":{"l":[{"n":"a","in":{"s":["x"]}},{}],"s":["x","y"]}}}`, `{"l":[null,{"n":1},{"n":{}}],"s":[1,[],null]}`,
	`{"b":{"b":{}},"x":{"a":1}}`, `{"l":{},"s":"x","self":[]}`,
}

// FuzzDocuments: whatever a cluster publishes, there is a type, or a reason why there
// is none; and objects are merged by it without end of us.
func FuzzDocuments(f *testing.F) {
	for i, schemas := range documents {
		data := []byte(`{"components": {"schemas": ` + schemas + `}}`)
		f.Add(data, []byte(objects[i%len(objects)]), []byte(objects[(i+1)%len(objects)]))
		f.Add(data, []byte(objects[0]), []byte(objects[1]))
	}
	f.Add([]byte(`{"components": {"schemas": {"a": {"type": "object", "properties": {"p": `+strings.Repeat(`{"type":"array","items":`, 100)+`{}`+strings.Repeat(`}`, 100)+`}, `+isX+`}}}}`), []byte(`{"p":[[[]]]}`), []byte(`{}`))
	for _, data := range []string{``, `null`, `[]`, `{"components":null}`, `{"components":{"schemas":{"a":null}}}`} {
		f.Add([]byte(data), []byte(`{}`), []byte(`{}`))
	}
	f.Fuzz(func(t *testing.T, data, one, other []byte) {
		d, err := parse(data)
		if err != nil {
			if d != nil || errors.Is(err, errNoSchema) {
				t.Fatalf("%v, %v", d, err)
			}
			return
		}
		for gvk, k := range d.kinds {
			kind, err := d.of(gvk)
			if (err != nil) != (k.err != nil) || err != nil && !errors.Is(err, errNoSchema) {
				t.Fatalf("%s: %v", gvk, err)
			}
			if err != nil {
				continue
			}
			checkResolved(t, kind)
			checkUse(t, kind, one, other)
		}
	})
}

// checkResolved: every type that a kind mentions is there.
func checkResolved(t *testing.T, kind typed.ParseableType) {
	t.Helper()
	if _, ok := kind.Schema.Resolve(kind.TypeRef); !ok {
		t.Fatalf("%s cannot be resolved", *kind.TypeRef.NamedType)
	}
	var look func(schema.Atom)
	ref := func(r schema.TypeRef) {
		if _, ok := kind.Schema.Resolve(r); !ok {
			t.Fatalf("%v cannot be resolved", r)
		}
		look(r.Inlined)
	}
	look = func(a schema.Atom) {
		if a.List != nil {
			ref(a.List.ElementType)
		}
		if a.Map != nil {
			ref(a.Map.ElementType)
			for _, field := range a.Fields {
				ref(field.Type)
			}
		}
	}
	for _, def := range kind.Schema.Types {
		look(def.Atom)
	}
}

// checkUse merges objects by a type as a rollback does.
func checkUse(t *testing.T, kind typed.ParseableType, one, other []byte) {
	t.Helper()
	var a, b map[string]any
	if utiljson.Unmarshal(one, &a) != nil || utiljson.Unmarshal(other, &b) != nil || a == nil || b == nil {
		return
	}
	_, _ = kind.FromUnstructured(a, typed.AllowDuplicates)
	for _, object := range []map[string]any{a, b} {
		if _, ok := object["metadata"].(map[string]any); !ok {
			object["metadata"] = map[string]any{}
		}
	}
	images := fieldmerge.Images{
		Type: kind, Ours: func(string) bool { return false },
		Before: &unstructured.Unstructured{Object: a}, After: &unstructured.Unstructured{Object: b}, Live: &unstructured.Unstructured{Object: b},
	}
	if r := images.Restore(); len(r.Conflicts) > 0 {
		t.Fatalf("conflicts with nobody: %v", r.Conflicts)
	}
	images.Drift()
	if images.Stand() != fieldmerge.AtAfter {
		t.Fatal("what the change made does not stand at after")
	}
}
