package oracle

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// maxLabel is how long a label may be. How a longer name is shortened is not looked at.
const maxLabel = 63

// signed is what a change asks for, with what a Create says besides: which Transaction has
// made the object, whatever the content says there.
func signed(r *run, i int, asked map[string]any) map[string]any {
	if r.Spec.Changes[i].Type != api.Create {
		return asked
	}
	label := any(r.Name)
	if len(r.Name) > maxLabel {
		label = nil
	}
	asked = copied(asked)
	asked = with(asked, []string{"metadata", "labels", "janus.io/transaction"}, label)
	asked = with(asked, []string{"metadata", "annotations", "janus.io/transaction"}, r.Namespace+"/"+r.Name)
	return with(asked, markPath, nil)
}

// markPath is where an object says which item of which Transaction has made it.
var markPath = []string{"metadata", "annotations", "janus.io/transaction-uid"}

func isMark(path []string) bool { return slices.Equal(path, markPath) }
