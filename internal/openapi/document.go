package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v4/schema"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

// kindExtension is where a definition names the kinds that it is of.
const kindExtension = "x-kubernetes-group-version-kind"

// document is what is kept of the schemas of one GroupVersion.
type document struct {
	schema *schema.Schema
	kinds  map[runtimeschema.GroupVersionKind]kind
}

// kind is the definition of a kind, or why there can be none.
type kind struct {
	definition string
	err        error
}

// definition is one type of a document on its way to the schema.
type definition struct {
	kinds     []runtimeschema.GroupVersionKind
	atom      schema.Atom
	mentioned []string
	overrides []schema.TypeRef
	err       error
}

// parse reads an OpenAPI v3 document. It decodes the definitions alone: the
// paths are the larger part and say nothing about types.
func parse(data []byte) (*document, error) {
	var read struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return nil, fmt.Errorf("decode the document: %w", err)
	}
	definitions := make(map[string]definition, len(read.Components.Schemas))
	for name, raw := range read.Components.Schemas {
		definitions[name] = define(name, raw)
	}
	// The types of what has no type; the others mention them.
	for _, t := range typed.DeducedParseableType.Schema.Types {
		definitions[t.Name] = definition{atom: t.Atom}
	}
	return assemble(definitions), nil
}

// define decodes and converts one definition alone, so that one that cannot be
// converted spoils no others.
func define(name string, raw json.RawMessage) definition {
	var model spec.Schema
	if err := json.Unmarshal(raw, &model); err != nil {
		return definition{err: fmt.Errorf("decode definition %s: %w", name, err)}
	}
	d := definition{}
	if err := model.Extensions.GetObject(kindExtension, &d.kinds); err != nil {
		d.kinds = nil // Whatever it is, it names no kind.
	}
	converted, err := schemaconv.ToSchemaFromOpenAPI(map[string]*spec.Schema{name: &model}, false)
	if err != nil {
		d.err = fmt.Errorf("convert definition %w", err) // Its text begins with the name.
		return d
	}
	for _, t := range converted.Types {
		if t.Name == name {
			var c converter
			d.atom = c.atom(t.Atom)
			d.mentioned, d.overrides = c.mentioned, c.overrides
			return d
		}
	}
	d.err = fmt.Errorf("definition %s is a mere reference", name)
	return d
}

// assemble finds the kinds and keeps the definitions that they are made of.
func assemble(definitions map[string]definition) *document {
	d := &document{schema: &schema.Schema{}, kinds: map[runtimeschema.GroupVersionKind]kind{}}
	kept := map[string]bool{}
	for _, t := range typed.DeducedParseableType.Schema.Types {
		kept[t.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		for _, gvk := range definitions[name].kinds {
			if _, ok := d.kinds[gvk]; ok {
				continue
			}
			parts, err := closure(name, definitions)
			d.kinds[gvk] = kind{name, err}
			if err == nil {
				maps.Copy(kept, parts)
			}
		}
	}
	var overrides []schema.TypeRef
	for name := range kept {
		d.schema.Types = append(d.schema.Types, schema.TypeDef{Name: name, Atom: definitions[name].atom})
		overrides = append(overrides, definitions[name].overrides...)
	}
	// structured-merge-diff v4 resolves an override when it is first met, and in
	// doing so reads a cache that another goroutine may be filling. So all of them
	// are resolved now.
	for _, ref := range overrides {
		d.schema.Resolve(ref)
	}
	return d
}

// closure returns the definitions that one is made of, itself included. It is an
// error if one of them is missing or could not be converted.
func closure(name string, definitions map[string]definition) (map[string]bool, error) {
	found := map[string]bool{name: true}
	for todo := []string{name}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		d, ok := definitions[at]
		if !ok {
			d.err = fmt.Errorf("definition %s is missing", at)
		}
		if d.err != nil {
			return nil, d.err
		}
		for _, next := range d.mentioned {
			if !found[next] {
				found[next] = true
				todo = append(todo, next)
			}
		}
	}
	return found, nil
}

// of returns the type of a kind, or why there is none.
func (d *document) of(gvk runtimeschema.GroupVersionKind) (typed.ParseableType, error) {
	k, ok := d.kinds[gvk]
	if !ok {
		return typed.ParseableType{}, fmt.Errorf("%w: no definition in %s is of this kind", errNoSchema, gvk.GroupVersion())
	}
	if k.err != nil {
		return typed.ParseableType{}, fmt.Errorf("%w: %w", errUnusable, k.err)
	}
	return typed.ParseableType{Schema: d.schema, TypeRef: schema.TypeRef{NamedType: &k.definition}}, nil
}
