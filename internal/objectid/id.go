package objectid

import "cmp"

// An ID is the identity of an object.
type ID struct {
	// Group is empty for the core group.
	Group    string
	Resource string
	// Namespace is empty for an object without a namespace.
	Namespace string
	Name      string
}

// Compare is a total order on IDs.
func (i ID) Compare(other ID) int {
	return cmp.Or(
		cmp.Compare(i.Group, other.Group),
		cmp.Compare(i.Resource, other.Resource),
		cmp.Compare(i.Namespace, other.Namespace),
		cmp.Compare(i.Name, other.Name),
	)
}

// String names the object for people, as "deployments.apps shop/web".
func (i ID) String() string {
	resource, name := i.Resource, i.Name
	if i.Group != "" {
		resource += "." + i.Group
	}
	if i.Namespace != "" {
		name = i.Namespace + "/" + name
	}
	return resource + " " + name
}
