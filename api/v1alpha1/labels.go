package v1alpha1

// TransactionKey is the key of the label by which all objects that a Transaction has made are
// found, those that it changes and those that Janus keeps for it, and of the annotation that
// has the whole name where a label is too short for it.
const TransactionKey = "janus.io/transaction"
