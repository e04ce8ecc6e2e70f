package mutate

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/snapshot"
)

// Effect is what is known of a change that may be in effect: by that it is looked for, and
// rolled back.
type Effect struct {
	// Record is what was kept of the change when it was prepared.
	Record snapshot.Record
	// Created is the uid of the object that a Create has made, or the compensation of a
	// Delete; empty if it is not known.
	Created types.UID
	// Recreated is the uid of the object that rolling back a later change of the
	// Transaction, which had deleted the target, has made in its place.
	Recreated types.UID
	// Began is when the Transaction began, by the clock of janusd.
	Began time.Time
	// Seen is what the target was when it was last written, if that is known: to take an
	// Update or a Patch back, it need not be read then.
	Seen *unstructured.Unstructured
	// Undoing is set when the compensation of the change may have been begun. Observe then
	// finds the change in effect only if nothing of it has been rolled back.
	Undoing bool
	// Settled is set for a compensation when the other changes are rolled back, as far as
	// that is possible. Before that a controller may be at work which one of them began.
	Settled bool
	// Overwrite makes Undo restore the fields too that others have written since.
	Overwrite bool
}
