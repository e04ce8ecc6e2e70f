package mutate

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Options are how a Transaction wants a change made. A rollback asks for none of them.
type Options struct {
	// Unforced makes a Patch fail where it would take a field from another manager.
	Unforced bool
	// Propagation says what a Delete does with the objects that the target owns.
	Propagation metav1.DeletionPropagation
	// Inverts is set for a change of an undo: a Delete rolls back a Create which has committed, and
	// a Create a Delete.
	Inverts bool
	// AcceptLoss allows what cannot be rolled back completely.
	AcceptLoss bool
	// Last tells whether no other change comes after this one, Tail whether none but
	// Deletes do; nil means that some do. To find out takes a look at all of them.
	Last, Tail func() bool
}

func (o Options) propagation() metav1.DeletionPropagation {
	if o.Propagation == "" {
		return metav1.DeletePropagationBackground
	}
	return o.Propagation
}

// known is the answer to what a Change may not be able to tell.
func known(so func() bool) bool { return so != nil && so() }
