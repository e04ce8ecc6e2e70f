package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// TransactionKey is the key of the label by which all objects that a Transaction has made are
// found, those that it changes and those that Janus keeps for it, and of the annotation that
// has the whole name where a label is too short for it.
const TransactionKey = "janus.io/transaction"

// ContentLabel is the key of the label of what kubectl janus run stores beside a Transaction
// because it does not fit into it. Its value is the uid of that Transaction, which owns the
// object too.
const ContentLabel = "janus.io/content-of"

// ContentObject is the name of the nth object, counted from 0, that holds content of a
// Transaction.
func ContentObject(transaction string, n int) string {
	return fmt.Sprintf("%s%d", contentPrefix(transaction), n)
}

// IsContentObject reports whether an object is named as one that holds content of a
// Transaction.
func IsContentObject(name, transaction string) bool {
	digits, found := strings.CutPrefix(name, contentPrefix(transaction))
	n, err := strconv.Atoi(digits)
	return found && err == nil && ContentObject(transaction, n) == name
}

// contentPrefix leaves room for a number below the 253 bytes of a name.
func contentPrefix(transaction string) string {
	return transaction[:min(len(transaction), 230)] + "-content-"
}
