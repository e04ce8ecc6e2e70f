// Package compile makes of a change of packages one Transaction, which unmodified Crossplane
// carries out.
//
// # The flows
//
// Every Transaction first locks one ConfigMap, so that no two change packages at once, and then
// waits until the Lock of Crossplane is the one that was planned with: if it is another, it
// fails before the first change.
//
// Install and upgrade: dependencies first, each package is created or patched by tag, and must
// have the revision whose name follows from the digest that was planned with: a tag that has
// moved gives one of another name. The revision must become healthy, and then the package must
// say so of this revision and of this generation.
//
// Delete: those that need others first, each package is paused, its revision is made to let go
// of its objects, and the package is deleted without its revisions. Up to here all can be
// rolled back, data included. Only then are the revisions deleted, and what they own with them.
//
// Replace: the old package activates no revision any more; the new one is made beside it,
// inactive, and reads its image; the old revision lets go, and the new one takes over the
// objects, which stay; then the new package activates its revisions by itself. The old package
// stays, inactive, and is deleted by a Transaction of its own: so this one can be undone.
//
// # Invariant
//
// The same change of the same state gives the same Transaction, with the same name.
package compile
