package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the API.
var GroupVersion = schema.GroupVersion{Group: "pkg.janus.io", Version: "v1alpha1"}

// Resource is the plural under which PackageTransactions are served.
var Resource = GroupVersion.WithResource("packagetransactions")

// Kind is the kind of a PackageTransaction.
var Kind = GroupVersion.WithKind("PackageTransaction")

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &PackageTransaction{}, &PackageTransactionList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
