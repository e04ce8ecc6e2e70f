package snapshot

import api "janus.io/janus/api/v1alpha1"

// Labels are those of every object that Janus makes for itself on behalf of a Transaction.
// What a change of the Transaction makes has no labelManagedBy, by which it is told apart.
func Labels(transaction string) map[string]string {
	return map[string]string{labelManagedBy: managedBy, api.TransactionKey: LabelValue(transaction)}
}

// AnyLabels are those that all of these objects have, of all Transactions.
func AnyLabels() map[string]string { return map[string]string{labelManagedBy: managedBy} }

// SharedLabels are those of an object of Janus that several Transactions have together.
func SharedLabels() map[string]string {
	return map[string]string{labelManagedBy: managedBy, api.TransactionKey: ""}
}

// LabelValue is the name of a Transaction as a label has it. The value of a label stops at
// 63 characters where a name may have 253, so a longer name is cut and hashed.
func LabelValue(transaction string) string { return shorten(transaction, maxLabel) }
