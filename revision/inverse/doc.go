// Package inverse finds the changes that undo others which have been made one after the other, by
// one Transaction or by several: one change for each target, and in which order.
//
// # Invariant
//
// It is pure, and the same for the same changes: an undo that goes on after a crash undoes what it
// has on record. A target that was changed several times is changed once, from what the newest of
// the changes has left to what it was before the oldest.
//
// # What it does not do
//
// With what content a change is made follows from the before-images, and from the target as it is:
// that is found when the target is read. Whether another client came in between is found then, too.
package inverse
