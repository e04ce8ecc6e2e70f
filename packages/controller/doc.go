// Package controller runs PackageTransactions: it checks a change of packages, has it made by one
// Transaction, and says in the status what came of it. What comes next is decided by the
// package progress; this one reads and writes.
//
// # Invariants
//
// One PackageTransaction at a time has the lock, a Lease that nobody else writes, from before
// it is checked until it has ended and nothing of it runs any more. The Lease never expires:
// it is released when its holder has ended or is gone.
//
// The cluster is read, and images are pulled, with the rights of the ServiceAccount that the
// PackageTransaction names, and with no other.
//
// Every write is conditional, or makes an object of a name that follows from what was recorded
// before. So two processes at once, or one that is killed and starts again, make one
// Transaction an attempt.
//
// Without the CustomResourceDefinition it asks for nothing but whether that has come.
package controller
