package image

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"janus.io/janus/packages/version"
)

// Kind is that of a package.
type Kind string

// The kinds.
const (
	Provider      Kind = "Provider"
	Configuration Kind = "Configuration"
	Function      Kind = "Function"
)

// Kinds are all of them, in the order in which they are listed.
var Kinds = []Kind{Provider, Configuration, Function}

// Package is what an image holds.
type Package struct {
	Kind Kind
	// Name is what the package calls itself.
	Name         string
	Dependencies []Dependency
	// Crossplane is the range of versions of Crossplane that it works with; empty for all.
	Crossplane string
	// Capabilities are opaque but for those that Crossplane knows.
	Capabilities []string
	// Objects are those that Crossplane makes for the package.
	Objects []Object
	// Size is how many bytes its YAML has.
	Size int64
}

// Dependency is a package that another one needs.
type Dependency struct {
	Source string
	Kind   Kind
	Range  string
}

const (
	metaGroup       = "meta.pkg.crossplane.io"
	packageGroup    = "pkg.crossplane.io"
	crossplaneGroup = "apiextensions.crossplane.io"
	operationsGroup = "ops.crossplane.io"
	crdGroup        = "apiextensions.k8s.io"
	webhooksGroup   = "admissionregistration.k8s.io"
)

// metas are the versions of the packages themselves.
var metas = map[schema.GroupVersionKind]bool{
	{Group: metaGroup, Version: "v1", Kind: string(Provider)}:            true,
	{Group: metaGroup, Version: "v1", Kind: string(Configuration)}:       true,
	{Group: metaGroup, Version: "v1", Kind: string(Function)}:            true,
	{Group: metaGroup, Version: "v1beta1", Kind: string(Function)}:       true,
	{Group: metaGroup, Version: "v1alpha1", Kind: string(Provider)}:      true,
	{Group: metaGroup, Version: "v1alpha1", Kind: string(Configuration)}: true,
}

// payload are the kinds of the objects that a package may have, by its kind. A Function may
// have all of them.
var payload = map[Kind][]schema.GroupKind{
	Provider: {
		{Group: crdGroup, Kind: "CustomResourceDefinition"},
		{Group: crossplaneGroup, Kind: "ManagedResourceDefinition"},
		{Group: webhooksGroup, Kind: "ValidatingWebhookConfiguration"},
		{Group: webhooksGroup, Kind: "MutatingWebhookConfiguration"},
	},
	Configuration: {
		{Group: crossplaneGroup, Kind: "CompositeResourceDefinition"},
		{Group: crossplaneGroup, Kind: "ManagedResourceActivationPolicy"},
		{Group: crossplaneGroup, Kind: "Composition"},
		{Group: operationsGroup, Kind: "Operation"},
		{Group: operationsGroup, Kind: "CronOperation"},
		{Group: operationsGroup, Kind: "WatchOperation"},
	},
}

// Payload are the kinds of the objects that a package of a kind may have.
func (k Kind) Payload() []schema.GroupKind {
	if k == Function {
		return slices.Concat(payload[Provider], payload[Configuration])
	}
	return payload[k]
}

// meta is the part of a package that says what it is.
type meta struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Crossplane *struct {
			Version string `json:"version"`
		} `json:"crossplane"`
		Capabilities []string  `json:"capabilities"`
		DependsOn    []depends `json:"dependsOn"`
	} `json:"spec"`
}

type depends struct {
	APIVersion    string `json:"apiVersion"`
	Kind          string `json:"kind"`
	Package       string `json:"package"`
	Provider      string `json:"provider"`
	Configuration string `json:"configuration"`
	Function      string `json:"function"`
	Version       string `json:"version"`
}

var errNotOne = errors.New("it is not exactly one package: want one object of group " + metaGroup)

// Parse parses a package: a YAML stream with one object that says what it is, and others.
func Parse(data []byte) (*Package, error) {
	var out *Package
	var objects []Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("its document %d cannot be read: %w", n, err)
		}
		content, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("its document %d %w", n, err)
		}
		if len(content) == 0 {
			continue
		}
		u := &unstructured.Unstructured{Object: content}
		gvk := u.GroupVersionKind()
		if gvk.Group != metaGroup {
			objects = append(objects, Object{GroupVersionKind: gvk, Name: u.GetName(), text: text})
			continue
		}
		if out != nil {
			return nil, errNotOne
		}
		if !metas[gvk] {
			return nil, fmt.Errorf("it is of a kind that Crossplane does not know: %s", gvk)
		}
		if out, err = parseMeta(Kind(gvk.Kind), content); err != nil {
			return nil, err
		}
	}
	if out == nil {
		return nil, errNotOne
	}
	for _, o := range objects {
		gk := o.GroupKind()
		switch {
		case !slices.Contains(out.Kind.Payload(), gk):
			return nil, fmt.Errorf("it is a %s, and may not have %s %q", out.Kind, gk, o.Name)
		case o.Name == "":
			return nil, fmt.Errorf("it has a %s without a name", gk)
		}
	}
	out.Objects, out.Size = objects, int64(len(data))
	return out, nil
}

func parseMeta(kind Kind, content map[string]any) (*Package, error) {
	var m meta
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &m); err != nil {
		return nil, fmt.Errorf("its %s cannot be read: %w", kind, err)
	}
	out := &Package{Kind: kind, Name: m.Metadata.Name, Capabilities: m.Spec.Capabilities}
	if c := m.Spec.Crossplane; c != nil {
		r, err := version.ParseRange(c.Version)
		if err != nil || version.IsDigest(c.Version) {
			return nil, fmt.Errorf("its range of versions of Crossplane is none: %q", c.Version)
		}
		out.Crossplane = r.String()
	}
	for i, d := range m.Spec.DependsOn {
		one, err := d.parse()
		if err != nil {
			return nil, fmt.Errorf("its dependency %d %w", i+1, err)
		}
		out.Dependencies = append(out.Dependencies, one)
	}
	return out, nil
}

// parse reads both ways to write a dependency. The range is parsed when versions are compared with
// it: if it can't be, that rules out the version, with a reason of its own.
func (d depends) parse() (Dependency, error) {
	out := Dependency{Range: d.Version}
	switch {
	case d.APIVersion != "" && d.Kind != "" && d.Package != "":
		group, _, _ := strings.Cut(d.APIVersion, "/")
		out.Source, out.Kind = d.Package, Kind(d.Kind)
		if group != packageGroup || !slices.Contains(Kinds, out.Kind) {
			return out, fmt.Errorf("is of a kind that is no package: %s %s", d.APIVersion, d.Kind)
		}
	case d.Configuration != "":
		out.Source, out.Kind = d.Configuration, Configuration
	case d.Provider != "":
		out.Source, out.Kind = d.Provider, Provider
	case d.Function != "":
		out.Source, out.Kind = d.Function, Function
	default:
		return out, errors.New("names no package: want provider, configuration or function, or apiVersion, kind and package")
	}
	return out, nil
}
