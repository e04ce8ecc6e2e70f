// Package revision keeps the history of a namespace: one ControllerRevision for each
// committed Transaction that is remembered, with what is needed to invert it.
//
// # Invariants
//
// A number is given once in a namespace, and is higher than all that were given before: a
// counter is written with the condition that nobody has counted since it was read. The number
// of a revision is in its name too, so that no two have the same. A revision is written once and is immutable, and is owned by its Transaction:
// it goes when that goes. It says where the before-images are and what they must be,
// and has nothing of their content. What a change has set is there as a digest, but
// for kinds whose content is confidential: the digest of a short value tells it.
//
// # What it does not do
//
// Before-images are not its business, nor is which Transactions are remembered, and
// for how long. A revision can be made by anyone who may make ControllerRevisions:
// anyone who uses one compares its digest with what the status of its owner says.
package revision
