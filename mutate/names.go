package mutate

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/fieldmerge"
)

// Names are how a Transaction marks what an item of it writes.
type Names struct {
	// Manager is the field manager of this item and of no other. Two applies by
	// one manager to one object would drop each other's fields.
	Manager string
	// Family is what the field managers of all items of the Transaction begin with.
	Family string
	// Marker is what a created object carries in the annotation MarkerAnnotation.
	Marker string
	// Transaction is what a created object says by its label and annotation
	// api.TransactionKey.
	Transaction types.NamespacedName
}

// ours reports whether a manager is that of the item.
func (n Names) ours(manager string) bool { return manager == n.Manager }

// sibling reports whether a manager is that of an item of this Transaction.
func (n Names) sibling(manager string) bool {
	return n.Family != "" && strings.HasPrefix(manager, n.Family)
}

// family reports whether a manager is of this Transaction, or is what another has
// left: that of its marks, or one of an item of a Transaction that was let go half-way.
func family(manager string) bool {
	return manager == DefaultManager || itemManager.MatchString(manager)
}

// IsJanus reports whether a field manager is one of Janus.
func IsJanus(manager string) bool { return family(manager) }

// itemManager is what the managers of items look like.
var itemManager = regexp.MustCompile(`^janus-[0-9a-f]{8}-[0-9]+$`)

// owns reports whether the change has left its mark on an object.
func (n Names) owns(obj *unstructured.Unstructured) bool {
	return fieldmerge.Owned(obj, n.ours)
}
