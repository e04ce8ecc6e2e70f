package fieldmerge

import (
	"flag"
	"fmt"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

// The properties are checked for the same cases in every run:
// -rapid.checks gives more, -rapid.seed others.
func init() {
	for name, value := range map[string]string{"rapid.seed": "26", "rapid.checks": "600", "rapid.nofailfile": "true"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			_ = f.Value.Set(value)
		}
	}
}

// thingSchema has every kind of part that a schema can declare.
const thingSchema = `
types:
- name: thing
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}}
    - {name: kind, type: {scalar: string}}
    - {name: metadata, type: {namedType: meta}}
    - {name: spec, type: {namedType: spec}}
    - {name: status, type: {namedType: any}}
- name: meta
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: labels, type: {namedType: words}}
    - {name: finalizers, type: {namedType: set}}
    elementType: {namedType: any}
- name: words
  map: {elementType: {scalar: string}}
- name: set
  list: {elementType: {scalar: string}, elementRelationship: associative}
- name: steps
  list: {elementType: {scalar: string}, elementRelationship: atomic}
- name: spec
  map:
    fields:
    - {name: size, type: {scalar: numeric}}
    - {name: limits, type: {namedType: words}}
    - {name: selector, type: {map: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: ports, type: {namedType: ports}}
    - {name: parts, type: {namedType: parts}}
    - {name: tags, type: {namedType: set}}
    - {name: steps, type: {namedType: steps}}
    - {name: options, type: {namedType: any}}
    - {name: template, type: {namedType: template}}
- name: template
  map:
    fields:
    - {name: size, type: {scalar: numeric}}
    - {name: labels, type: {namedType: words}}
    - {name: steps, type: {namedType: steps}}
- name: ports
  list: {elementType: {namedType: port}, elementRelationship: associative, keys: [port, protocol]}
- name: port
  map:
    fields:
    - {name: port, type: {scalar: numeric}}
    - {name: protocol, type: {scalar: string}, default: TCP}
    - {name: title, type: {scalar: string}}
- name: parts
  list: {elementType: {namedType: part}, elementRelationship: associative, keys: [name]}
- name: part
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: count, type: {scalar: numeric}}
    - {name: note, type: {scalar: string}}
    - {name: env, type: {namedType: env}}
    - {name: steps, type: {namedType: steps}}
- name: env
  list: {elementType: {namedType: variable}, elementRelationship: associative, keys: [name]}
- name: variable
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: value, type: {scalar: string}}
- name: any
  scalar: untyped
  list: {elementType: {namedType: any}, elementRelationship: atomic}
  map: {elementType: {namedType: any}, elementRelationship: separable}
`

var thingType = func() typed.ParseableType {
	parser, err := typed.NewParser(thingSchema)
	if err != nil {
		panic(err)
	}
	return parser.Type("thing")
}()

// drawing draws objects that are valid by thingSchema.
type drawing struct {
	*rapid.T
	// loose lets a key be left out that has a default, and a field of the part
	// without schema be of another type each time. The API server fills in
	// defaults before it stores anything.
	loose bool
}

func (d drawing) some(label string) bool { return rapid.IntRange(0, 2).Draw(d.T, label) > 0 }

func (d drawing) number(label string) int64 { return int64(rapid.IntRange(0, 2).Draw(d.T, label)) }

func (d drawing) word(label string) string { return fmt.Sprint("v", d.number(label)) }

// names draws up to three different names, in any order.
func (d drawing) names(label string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 3, rapid.ID[string]).Draw(d.T, label)
}

func (d drawing) words(label string) map[string]any {
	out := map[string]any{}
	for _, name := range d.names(label) {
		out[name] = d.word(label)
	}
	return out
}

func (d drawing) set(label string) []any {
	out := []any{}
	for _, name := range d.names(label) {
		out = append(out, name)
	}
	return out
}

func (d drawing) steps(label string) []any {
	out := []any{}
	for range d.number(label) {
		out = append(out, d.word(label))
	}
	return out
}

func (d drawing) ports() []any {
	out := []any{}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"1 TCP", "1 UDP", "2 TCP"}), 0, 3, rapid.ID[string]).Draw(d.T, "ports") {
		port := map[string]any{"port": int64(key[0] - '0'), "protocol": key[2:]}
		if d.loose && key[2:] == "TCP" && d.some("default") {
			delete(port, "protocol")
		}
		if d.some("title") {
			port["title"] = d.word("title")
		}
		out = append(out, port)
	}
	return out
}

func (d drawing) parts() []any {
	out := []any{}
	for _, name := range d.names("parts") {
		part := map[string]any{"name": name}
		d.field(part, "count", func() any { return d.number("count") })
		d.field(part, "note", func() any { return d.word("note") })
		d.field(part, "env", func() any { return d.env() })
		d.field(part, "steps", func() any { return d.steps("steps") })
		out = append(out, part)
	}
	return out
}

func (d drawing) env() []any {
	out := []any{}
	for _, name := range d.names("env") {
		variable := map[string]any{"name": name}
		d.field(variable, "value", func() any { return d.word("value") })
		out = append(out, variable)
	}
	return out
}

func (d drawing) field(object map[string]any, name string, value func() any) {
	if d.some(name) {
		object[name] = value()
	}
}

// options draws what no schema describes.
func (d drawing) options() map[string]any {
	out := map[string]any{}
	kinds := map[string]func() any{
		"x": func() any { return []any{nil, int64(1), "a"}[d.number("option")] },
		"y": func() any {
			return map[string]any{"deep": d.words("option"), "list": d.steps("option")}
		},
		"z": func() any { return d.steps("option") },
	}
	for _, name := range d.names("options") {
		kind := name
		if d.loose {
			kind = rapid.SampledFrom([]string{"x", "y", "z"}).Draw(d.T, "kind")
		}
		out[name] = kinds[kind]()
	}
	return out
}

var sections = []string{"labels", "finalizers", "size", "limits", "selector", "ports", "parts", "tags", "steps", "options", "template"}

// section draws one part of an object into it.
func (d drawing) section(object map[string]any, name string) {
	into := "spec"
	var value any
	switch name {
	case "labels":
		into, value = "metadata", d.words(name)
	case "finalizers":
		into, value = "metadata", d.set(name)
	case "size":
		value = d.number(name)
	case "limits", "selector":
		value = d.words(name)
	case "ports":
		value = d.ports()
	case "parts":
		value = d.parts()
	case "tags":
		value = d.set(name)
	case "steps":
		value = d.steps(name)
	case "options":
		value = d.options()
	case "template":
		template := map[string]any{}
		d.field(template, "size", func() any { return d.number("size") })
		d.field(template, "labels", func() any { return d.words("labels") })
		d.field(template, "steps", func() any { return d.steps("steps") })
		value = template
	}
	inner, ok := object[into].(map[string]any)
	if !ok {
		inner = map[string]any{}
		object[into] = inner
	}
	inner[name] = value
}

// object draws a whole object, or what a client applies.
func (d drawing) object() map[string]any {
	out := map[string]any{"metadata": map[string]any{"name": "a"}}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(sections), 0, 6, rapid.ID[string]).Draw(d.T, "sections") {
		d.section(out, name)
	}
	return out
}

// edited draws an object with one or two parts of a given one drawn again.
func (d drawing) edited(object map[string]any) map[string]any {
	out := clone(object)
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(sections), 1, 2, rapid.ID[string]).Draw(d.T, "edited") {
		d.section(out, name)
	}
	return out
}

// failing makes what fails in the stand-in fail the case at hand.
type failing struct {
	testing.TB
	t *rapid.T
}

func (f failing) Helper()           {}
func (f failing) Fatal(args ...any) { f.t.Fatal(args...) }
