// Package target knows how to find and reach the objects that a Transaction
// changes: it resolves a kind through the discovery-backed RESTMapper, names
// what it found by an identity without version, and hands out dynamic clients
// that act as the Transaction's ServiceAccount.
//
// Invariant: nothing in this package reads or writes a target with the
// controller's own identity. The controller's own client is used to read
// ServiceAccounts and to ask what kinds the cluster serves, nothing else.
package target
