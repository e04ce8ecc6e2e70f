package apisim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Definition is a compiled CustomResourceDefinition. It does not change, and may be
// shared by Servers.
type Definition struct {
	object content
	kind   *kind
}

// definition is what is read of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Kind       string   `json:"kind"`
			Plural     string   `json:"plural"`
			Singular   string   `json:"singular"`
			ListKind   string   `json:"listKind"`
			ShortNames []string `json:"shortNames"`
			Categories []string `json:"categories"`
		} `json:"names"`
		Versions []struct {
			Name         string         `json:"name"`
			Subresources map[string]any `json:"subresources"`
			Selectable   []struct {
				Path string `json:"jsonPath"`
			} `json:"selectableFields"`
			Schema struct {
				OpenAPI json.RawMessage `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// Define compiles a CustomResourceDefinition given as YAML or JSON. It must have one
// version, and a schema.
func Define(text []byte) (*Definition, error) {
	var obj content
	data, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = unmarshal(data, &obj)
	}
	if err != nil {
		return nil, fmt.Errorf("read a CustomResourceDefinition: %w", err)
	}
	if obj, err = (crdShape{}).normalize(obj); err != nil {
		return nil, fmt.Errorf("read a CustomResourceDefinition: %w", err)
	}
	obj["status"] = established(obj)
	return define(obj)
}

// compiled are the kinds of CustomResourceDefinitions by their text. Compiling one
// takes milliseconds, and the result does not change.
var compiled sync.Map // string → *kind

func define(obj content) (*Definition, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode a CustomResourceDefinition: %w", err)
	}
	var d definition
	if err := unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("decode a CustomResourceDefinition: %w", err)
	}
	if len(d.Spec.Versions) != 1 || len(d.Spec.Versions[0].Schema.OpenAPI) == 0 {
		return nil, fmt.Errorf("apisim models no CustomResourceDefinition but one of one version, with a schema: %s", nameOf(obj))
	}
	text := string(encode(obj["spec"]))
	if k, ok := compiled.Load(text); ok {
		return &Definition{obj, k.(*kind)}, nil
	}
	k, err := d.compile()
	if err != nil {
		return nil, fmt.Errorf("compile the CustomResourceDefinition %s: %w", nameOf(obj), err)
	}
	compiled.Store(text, k)
	return &Definition{obj, k}, nil
}

func (d definition) compile() (*kind, error) {
	version, names := d.Spec.Versions[0], d.Spec.Names
	gvk := schema.GroupVersionKind{Group: d.Spec.Group, Version: version.Name, Kind: names.Kind}
	var s structural
	if err := unmarshal(version.Schema.OpenAPI, &s); err != nil {
		return nil, err
	}
	s.findKeyed()
	var full spec.Schema
	if err := json.Unmarshal(version.Schema.OpenAPI, &full); err != nil {
		return nil, err
	}
	_, status := version.Subresources["status"]
	k := &kind{
		gvk: gvk, resource: names.Plural, singular: names.Singular, listKind: names.ListKind,
		shortNames: names.ShortNames, categories: names.Categories,
		namespaced: d.Spec.Scope == "Namespaced", status: status,
		shape: newCustomShape(gvk, &s), strategy: prepareCustom(status),
	}
	if k.singular == "" {
		k.singular = strings.ToLower(names.Kind)
	}
	if k.listKind == "" {
		k.listKind = names.Kind + "List"
	}
	for _, f := range version.Selectable {
		k.selectable = append(k.selectable, strings.TrimPrefix(f.Path, "."))
	}
	var err error
	if k.schemas, err = publish(gvk, version.Schema.OpenAPI); err != nil {
		return nil, err
	}
	if k.types, err = managedfields.NewTypeConverter(k.schemas.components(), false); err != nil {
		return nil, err
	}
	if status {
		k.strategy.reset = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		k.strategy.resetStatus = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	}
	v := newValidators(&full)
	v.rules = bytes.Contains(version.Schema.OpenAPI, []byte(`"x-kubernetes-validations"`))
	k.strategy = withSchema(k, &s, v)
	return k, nil
}

// validators check the whole of an object, and its status alone.
type validators struct {
	whole, status *checker
	// rules says that there are some in CEL.
	rules bool
}

// addKind serves a kind.
func (s *Server) addKind(k *kind) {
	s.kinds[k.groupVersion().WithResource(k.resource)] = k
	s.documents[k.groupVersion()] = k.schemas
	s.discovered = [2][]byte{}
}

// serve begins or ceases to serve the kind of a CustomResourceDefinition that was
// written.
func (s *Server) serve(c Change) {
	d, err := define(c.New.Object)
	if err != nil {
		return // Validation has refused it; what an administrator puts in is his own.
	}
	if c.Type != watch.Deleted {
		if c.Old == nil || !equalExcept(c.Old.Object, c.New.Object, "metadata", "status") {
			s.addKind(d.kind)
		}
		return
	}
	for _, o := range s.table(d.kind).sorted() {
		s.remove(o, c.User)
	}
	delete(s.kinds, d.kind.groupVersion().WithResource(d.kind.resource))
	delete(s.documents, d.kind.groupVersion())
	s.discovered = [2][]byte{}
}

// crdShape is the shape of CustomResourceDefinitions. Unknown fields are kept.
type crdShape struct{}

var blankCRD = content{"apiVersion": crdKind.GroupVersion().String(), "kind": crdKind.Kind}

func (crdShape) empty() content { return blankCRD }

func (crdShape) reread(obj content, _ bool) content { return obj }

func (crdShape) adopt(content) (content, bool) { return nil, false }

func (s crdShape) decode(body []byte, strict bool) (content, []error, error) {
	obj, strictErrors, err := (&customShape{gvk: crdKind, schema: &structural{Preserve: true}}).decode(body, strict)
	if err != nil {
		return nil, nil, err
	}
	obj, err = s.normalize(obj)
	return obj, strictErrors, err
}

func (crdShape) normalize(obj content) (content, error) {
	obj = runtime.DeepCopyJSON(obj)
	m, _, err := coerceMetadata(obj, false)
	if err != nil {
		return nil, err
	}
	if m != nil {
		obj["metadata"] = m
	}
	spec, _ := obj["spec"].(content)
	if spec == nil {
		return obj, nil
	}
	if _, ok := spec["conversion"]; !ok {
		spec["conversion"] = content{"strategy": "None"}
	}
	names, _ := spec["names"].(content)
	if kind := text(names, "kind"); kind != "" {
		if text(names, "singular") == "" {
			names["singular"] = strings.ToLower(kind)
		}
		if text(names, "listKind") == "" {
			names["listKind"] = kind + "List"
		}
	}
	return obj, nil
}
