// Package outcome has what is learned from a change and from its compensation: what a
// look at the target found, and what a rollback left as it is. The engine and the strategies
// share it, so that neither needs the other.
package outcome

import (
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/errclass"
)

// Finding is what a look at the target of a change found.
type Finding int

const (
	// NotApplied means that the change is not in effect: the target is as it was when it
	// was prepared.
	NotApplied Finding = iota
	// Applied means that the change is in effect.
	Applied
	// Applying means that the change has been accepted and takes effect by itself, such as
	// the deletion of an object that waits for its finalizers.
	Applying
	// Diverged means neither: another client has written the target, and it cannot be told.
	Diverged
)

func (f Finding) String() string {
	return [...]string{"not applied", "applied", "applying", "diverged"}[f]
}

// Undone is what a strategy reports of a change that it has rolled back.
type Undone struct {
	// Reclaimed are fields that were left alone because anyone who owned them before
	// the change owns them again.
	Reclaimed []errclass.Field
	// Overwritten are fields that others had written since.
	Overwritten []errclass.Field
	// Notes say what else is not just as it was, and need not be.
	Notes []string
	// Recreated is the uid of the object that was made in place of a deleted one.
	Recreated types.UID
}
