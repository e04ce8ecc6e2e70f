package target

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/objectid"
)

// Ref is a target whose kind has been resolved.
type Ref struct {
	// GVK is the kind as the Transaction names it.
	GVK schema.GroupVersionKind `json:"gvk"`
	// GVR is the resource that serves it.
	GVR schema.GroupVersionResource `json:"gvr"`
	// Namespace is empty for a cluster-scoped kind.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Deferred is set when the target cannot be there before earlier changes of the
	// Transaction are in effect: they make its kind or its namespace.
	Deferred bool `json:"deferred,omitempty"`
}

// ID returns the identity of the target. Two Transactions that name it by different
// versions of its kind exclude each other by that.
func (r Ref) ID() objectid.ID {
	return objectid.ID{Group: r.GVR.Group, Resource: r.GVR.Resource, Namespace: r.Namespace, Name: r.Name}
}

// String is the target as a person would write it: "Deployment shop/web".
func (r Ref) String() string {
	return api.Target{Kind: r.GVK.Kind, Namespace: r.Namespace, Name: r.Name}.String()
}

// Well-known kinds that the engine room treats specially.
var (
	SecretKind    = schema.GroupKind{Kind: "Secret"}
	NamespaceKind = schema.GroupKind{Kind: "Namespace"}
	CRDKind       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)
