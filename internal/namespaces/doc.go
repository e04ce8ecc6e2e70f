// Package namespaces follows which namespaces janusd is to run the Transactions of, while
// that changes: by the labels of the namespaces, or by a file.
//
// Its invariant: no Transaction is begun in a namespace before that is on record, in a
// ConfigMap in janusd's own namespace, and it stays on record until no Transaction that was
// begun there is left to be finished. So a janusd that was ended while a namespace
// left, or started with other namespaces, finds what it has to finish. The record is shared
// by the replicas, each of which adds what it runs, and removes nothing that another has
// added since.
//
// It runs no Transaction: the controller does, and knows nothing of labels and files.
package namespaces
