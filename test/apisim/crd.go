package apisim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

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
	// kinds are those of the versions that are served.
	kinds []*kind
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
		Conversion struct {
			Strategy string `json:"strategy"`
		} `json:"conversion"`
		Versions []definedVersion `json:"versions"`
	} `json:"spec"`
}

// definedVersion is a version of the kind.
type definedVersion struct {
	Name         string         `json:"name"`
	Served       bool           `json:"served"`
	Storage      bool           `json:"storage"`
	Subresources map[string]any `json:"subresources"`
	Selectable   []struct {
		Path string `json:"jsonPath"`
	} `json:"selectableFields"`
	Schema struct {
		OpenAPI json.RawMessage `json:"openAPIV3Schema"`
	} `json:"schema"`
}

// Define compiles a CustomResourceDefinition given as YAML or JSON. Each of its
// versions must have a schema; they are converted by the strategy None.
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
var compiled sync.Map // string → []*kind

func define(obj content) (*Definition, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode a CustomResourceDefinition: %w", err)
	}
	var d definition
	if err := unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("decode a CustomResourceDefinition: %w", err)
	}
	if err := d.modelled(); err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: %w", nameOf(obj), err)
	}
	text := string(encode(obj["spec"]))
	if k, ok := compiled.Load(text); ok {
		return &Definition{obj, k.([]*kind)}, nil
	}
	kinds, err := d.compile()
	if err != nil {
		return nil, fmt.Errorf("compile the CustomResourceDefinition %s: %w", nameOf(obj), err)
	}
	compiled.Store(text, kinds)
	return &Definition{obj, kinds}, nil
}

// modelled says what there is in it that the model does not know.
func (d definition) modelled() error {
	if s := d.Spec.Conversion.Strategy; s != "" && s != "None" {
		return fmt.Errorf("apisim does not model the conversion by a %s", s)
	}
	storage, served := 0, 0
	for _, v := range d.Spec.Versions {
		if len(v.Schema.OpenAPI) == 0 {
			return fmt.Errorf("apisim does not model version %s: it has no schema", v.Name)
		}
		if v.Storage {
			storage++
		}
		if v.Served {
			served++
		}
	}
	if storage != 1 || served == 0 {
		return fmt.Errorf("apisim does not model a kind of which %d versions are stored and %d served", storage, served)
	}
	return nil
}

// compile returns the kinds that are served.
func (d definition) compile() ([]*kind, error) {
	if len(d.Spec.Versions) == 1 {
		k, err := d.compileVersion(d.Spec.Versions[0])
		return []*kind{k}, err
	}
	vs := &versions{all: map[schema.GroupVersion]bool{}}
	schemas := map[string]*spec.Schema{}
	var all []*kind
	for _, version := range d.Spec.Versions {
		k, err := d.compileVersion(version)
		if err != nil {
			return nil, err
		}
		k.versions = vs
		vs.all[k.groupVersion()] = true
		if version.Storage {
			vs.storage = k
		}
		if version.Served {
			vs.served = append(vs.served, k)
		}
		maps.Copy(schemas, k.schemas.components())
		all = append(all, k)
	}
	types, err := managedfields.NewTypeConverter(schemas, false)
	for _, k := range all {
		k.types = types
	}
	return vs.served, err
}

func (d definition) compileVersion(version definedVersion) (*kind, error) {
	names := d.Spec.Names
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

// addKinds serves the versions of a kind.
func (s *Server) addKinds(d *Definition) {
	for _, k := range d.kinds {
		s.kinds[k.groupVersion().WithResource(k.resource)] = k
		s.documents[k.groupVersion()] = k.schemas
	}
	s.discovered = [2][]byte{}
}

// serve begins or ceases to serve the kind of a CustomResourceDefinition that was
// written.
func (s *Server) serve(c Change) {
	d, err := define(c.New.Object)
	if err != nil {
		return // Validation has refused it; what an administrator puts in is his own.
	}
	if c.Type == watch.Deleted {
		for _, o := range s.table(d.kinds[0]).sorted() {
			s.remove(o, c.User)
		}
		s.dropKinds(d)
		return
	}
	if c.Old != nil {
		if equalExcept(c.Old.Object, c.New.Object, "metadata", "status") {
			return
		}
		if was, err := define(c.Old.Object); err == nil {
			s.dropKinds(was)
		}
	}
	s.addKinds(d)
}

// dropKinds ceases to serve the versions of a kind.
func (s *Server) dropKinds(d *Definition) {
	for _, k := range d.kinds {
		delete(s.kinds, k.groupVersion().WithResource(k.resource))
		delete(s.documents, k.groupVersion())
	}
	s.discovered = [2][]byte{}
}
