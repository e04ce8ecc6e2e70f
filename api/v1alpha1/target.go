package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// Identity is a target without the version of its kind: its apiVersion is the group alone.
// Every version of a kind shows the same object, so two targets are one object if their
// identities are equal.
func (t Target) Identity() Target {
	if gv, err := schema.ParseGroupVersion(t.APIVersion); err == nil {
		t.APIVersion = gv.Group
	}
	return t
}

// String names a target as a person would: "Deployment shop/web".
func (t Target) String() string {
	if t.Namespace == "" {
		return t.Kind + " " + t.Name
	}
	return t.Kind + " " + t.Namespace + "/" + t.Name
}
