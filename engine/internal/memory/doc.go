// Package memory is what this process knows of Transactions beyond their status: which
// requests may still land, what was taken for a Transaction, what is in flight.
//
// It saves requests and waits. A process that starts with nothing comes to the same end.
//
// A run of a Transaction has the Memory of that Transaction and no other. Only the Engine has
// All of them.
package memory
