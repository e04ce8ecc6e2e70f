// Package progress decides what comes next for a PackageTransaction that has the lock, from
// its status, its Transaction and the time. It does no I/O and reads no clock.
//
// # Invariants
//
// An attempt has one Transaction: its name follows from the PackageTransaction and the number
// of the attempt alone, so anyone who repeats a step, after a crash or beside another process,
// makes no second. An attempt ends by one status write, which counts it; only then does the
// next begin. What has ended does not begin again.
package progress
