package mutate

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	"janus.io/janus/internal/target"
)

// Environment is how a change looks at the cluster around its target, and writes to it: as
// the Transaction's ServiceAccount. What is nil in it is not looked at, but for Cluster.
type Environment struct {
	// Account is the ServiceAccount.
	Account types.NamespacedName
	// Now is the time, by which a Job may have run for too long.
	Now func() time.Time
	// Cluster reads and writes the target, and what belongs to it, such as the volume of a
	// claim.
	Cluster dynamic.Interface
	// Type tells how the fields of the target's kind merge.
	Type func(ctx context.Context) (typed.ParseableType, error)
	// Elsewhere gives the target by a version of its kind that is served; false if the
	// kind is served no more. It is asked where the API server seems not to serve the
	// version of the change. Where it is nil, an object that is not served does not exist.
	Elsewhere func() (target.Ref, bool, error)
	// Versions gives the other versions of the target's kind that the cluster serves. With
	// anew, what is known of them is looked up again.
	Versions func(anew bool) ([]Served, error)
	// Redefined gives what earlier items of the Transaction make of the definition of the
	// target's kind.
	Redefined func(ctx context.Context) ([]Redefinition, error)
	// OwnerRefs tells of owners and of what else the Transaction deletes.
	OwnerRefs OwnerRefs
	// Deletes tells whether the Transaction is yet to delete another object, by its name.
	Deletes func(kind schema.GroupKind, name types.NamespacedName) bool
	// Creates tells whether an earlier change of the Transaction is yet to create another object, by
	// its name.
	Creates func(kind schema.GroupKind, name types.NamespacedName) bool
	// DeletedBefore reports whether an earlier change of the Transaction deletes an object.
	DeletedBefore func(target.Ref) bool
	// Dependants lists what the target owns; nil for a kind that owns nothing of its own.
	Dependants func(ctx context.Context, live *unstructured.Unstructured, wanted Wanted) (Dependants, error)
	// Contents names some of what would go with an object of a kind if it were deleted,
	// which is nothing for most kinds.
	Contents func(ctx context.Context, kind schema.GroupKind, live *unstructured.Unstructured) (Contents, error)
}

// Served is another version of the target's kind that the cluster serves.
type Served struct {
	Ref  target.Ref
	Type func(ctx context.Context) (typed.ParseableType, error)
}

// Contents names some of the objects in a Namespace, or of a kind.
type Contents struct {
	// Stay are those that nobody is about to delete, Leave those that are being deleted or
	// that the garbage collector takes along with their owners.
	Stay, Leave []string
}

// deletes tells whether the Transaction is yet to delete another object.
func (e Environment) deletes(kind schema.GroupKind, namespace, name string) bool {
	return e.Deletes != nil && e.Deletes(kind, types.NamespacedName{Namespace: namespace, Name: name})
}

func (e Environment) creates(kind schema.GroupKind, namespace, name string) bool {
	return e.Creates != nil && e.Creates(kind, types.NamespacedName{Namespace: namespace, Name: name})
}

// clientOf reads and writes objects of a resource; namespace is empty for those of the
// cluster.
func (e Environment) clientOf(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return e.Cluster.Resource(gvr)
	}
	return e.Cluster.Resource(gvr).Namespace(namespace)
}

// dependants looks for what the target owns, if its kind may own anything of the sort.
func (e Environment) dependants(ctx context.Context, live *unstructured.Unstructured, wanted Wanted) (Dependants, error) {
	if e.Dependants == nil {
		return Dependants{}, nil
	}
	return e.Dependants(ctx, live, wanted)
}
