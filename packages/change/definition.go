package change

import (
	"cmp"
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"janus.io/janus/packages/installed"
	"janus.io/janus/packages/schema"
)

// CompositionKind says how composite resources are composed.
const CompositionKind = "Composition"

// The kinds that define kinds.
const (
	DefinitionKind = "CustomResourceDefinition"
	ManagedKind    = "ManagedResourceDefinition"
	CompositeKind  = "CompositeResourceDefinition"

	definitionGroup = "apiextensions.k8s.io"
	crossplaneGroup = "apiextensions.crossplane.io"
)

// DefinitionObject names the CustomResourceDefinition of a kind.
func DefinitionObject(name string) installed.Object {
	return installed.Object{Group: definitionGroup, Kind: DefinitionKind, Name: name}
}

// ManagedObject names the ManagedResourceDefinition of a kind.
func ManagedObject(name string) installed.Object {
	return installed.Object{Group: crossplaneGroup, Kind: ManagedKind, Name: name}
}

// Defines reports whether an object defines a kind of custom resources.
func Defines(o installed.Object) bool {
	switch o.Kind {
	case DefinitionKind:
		return o.Group == definitionGroup
	case ManagedKind, CompositeKind:
		return o.Group == crossplaneGroup
	default:
		return false
	}
}

// Definition returns an object that defines a kind as a CustomResourceDefinition. That of a
// CompositeResourceDefinition has only the schema that it says itself.
func Definition(u *unstructured.Unstructured) (*v1.CustomResourceDefinition, error) {
	content := u.DeepCopy().Object
	if u.GetKind() == CompositeKind {
		asVersions(content)
	}
	out := &v1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, out); err != nil {
		return nil, fmt.Errorf("read %s: %w", Object(u), err)
	}
	if u.GetKind() == CompositeKind && out.Spec.Scope == "" {
		out.Spec.Scope = defaultScope(u.GroupVersionKind().Version)
	}
	return out, nil
}

// defaultScope is that of a CompositeResourceDefinition that has none, in a version of its API.
func defaultScope(version string) v1.ResourceScope {
	if version == "v1" {
		return "LegacyCluster"
	}
	return v1.NamespaceScoped
}

// Claims names the definition of the claims of a CompositeResourceDefinition; empty if it has none.
func Claims(u *unstructured.Unstructured) string {
	plural, _, _ := unstructured.NestedString(u.Object, "spec", "claimNames", "plural")
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	if u.GetKind() != CompositeKind || plural == "" {
		return ""
	}
	return plural + "." + group
}

// ClaimsDiffer is the difference between the claims of what defines a kind and of what comes in its
// place. Claims that come are none.
func ClaimsDiffer(before, after *unstructured.Unstructured) []schema.Difference {
	was, is := Claims(before), Claims(after)
	if was == "" || was == is {
		return nil
	}
	return []schema.Difference{{Breaking: true, Kind: true, Text: fmt.Sprintf("the claims are %s, and were %s", cmp.Or(is, "gone"), was)}}
}

// asVersions turns what a CompositeResourceDefinition says of its versions into what a
// CustomResourceDefinition does: the one that is referenceable is the one that is stored.
func asVersions(content map[string]any) {
	versions, _, _ := unstructured.NestedSlice(content, "spec", "versions")
	for _, v := range versions {
		if of, ok := v.(map[string]any); ok {
			of["storage"] = of["referenceable"]
			delete(of, "referenceable")
		}
	}
	_ = unstructured.SetNestedSlice(content, versions, "spec", "versions")
	// Its conditions are of another type.
	delete(content, "status")
}
