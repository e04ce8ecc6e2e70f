package target

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// Key identifies a target. It leaves out the version: every version of a kind
// shows the same object, and two Transactions that name it by different versions
// must still exclude each other. The group stays: kinds of different groups are
// different objects even when their names agree.
type Key struct {
	Group, Resource, Namespace, Name string
}

// Key returns the identity of the target.
func (r Ref) Key() Key {
	return Key{Group: r.GVR.Group, Resource: r.GVR.Resource, Namespace: r.Namespace, Name: r.Name}
}

// String is the target as a person would write it: "Deployment shop/web".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.GVK.Kind + " " + r.Name
	}
	return r.GVK.Kind + " " + r.Namespace + "/" + r.Name
}

// Well-known kinds that the engine room treats specially.
var (
	SecretKind    = schema.GroupKind{Kind: "Secret"}
	NamespaceKind = schema.GroupKind{Kind: "Namespace"}
	CRDKind       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)
