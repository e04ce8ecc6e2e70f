package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// HolderOf is the identity under which a Transaction holds its locks: namespace/name/uid, so
// that a new Transaction of the same name is another holder.
func HolderOf(t *Transaction) string {
	return t.Namespace + "/" + t.Name + "/" + string(t.UID)
}

// DescribeHolder names who has an identity: a Transaction without its uid, and anyone else by it.
func DescribeHolder(identity string) string {
	if name, _, ok := ParseHolder(identity); ok {
		return "Transaction " + name.String()
	}
	return identity
}

// ParseHolder returns the Transaction that an identity is of. It is not ok if the holder is no
// Transaction: people and other tools may hold locks too, under names of theirs.
func ParseHolder(identity string) (t types.NamespacedName, uid types.UID, ok bool) {
	parts := strings.Split(identity, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return types.NamespacedName{}, "", false
	}
	return types.NamespacedName{Namespace: parts[0], Name: parts[1]}, types.UID(parts[2]), true
}
