package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// GroupVersion is the group and version of the API.
var GroupVersion = schema.GroupVersion{Group: "backup.janus.io", Version: "v1alpha1"}

// BetaVersion is the second group and version in which Transactions are served. Its schema is that of
// GroupVersion, and so the types of this package are those of both.
var BetaVersion = schema.GroupVersion{Group: GroupVersion.Group, Version: "v1beta1"}

// Versions are those in which Transactions are served.
var Versions = []schema.GroupVersion{GroupVersion, BetaVersion}

// OwnerReference refers to the Transaction that owns an object, in the version that the API server
// prefers. That is how the garbage collector knows Transactions: for each object that refers to its
// owner in another version, it reads the object and all of the owner.
func OwnerReference(name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: BetaVersion.String(), Kind: Kind.Kind, Name: name, UID: uid}
}

// UseGroup is the group of the verb use on serviceaccounts, which is the right to have Transactions
// act as a ServiceAccount. There is no kind in it, so that no role for kinds includes the right.
const UseGroup = "use.janus.io"

// ApproveGroup is the group of the verb approve on transactions, which is the right to approve their
// plans. There is no kind in it either.
const ApproveGroup = "approve.janus.io"

// Resource is the plural under which Transactions are served.
var Resource = GroupVersion.WithResource("transactions")

// Kind is the kind of a Transaction.
var Kind = GroupVersion.WithKind("Transaction")

// AddToScheme registers the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Transaction{}, &TransactionList{}, &LockTable{}, &LockTableList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
