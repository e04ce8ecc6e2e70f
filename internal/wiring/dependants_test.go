package wiring

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/mutate"
)

func dependant(uid types.UID, owners ...types.UID) mutate.Dependant {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}}
	for _, owner := range owners {
		obj.OwnerReferences = append(obj.OwnerReferences, metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Provider", Name: string(owner), UID: owner})
	}
	return mutate.Dependant{PartialObjectMetadata: obj}
}

// What was listed and has no owner itself is found as another owner, and is neither read nor taken
// for gone. What nobody names is not.
func TestAnotherOwnerThatHasNoOwnerIsFoundInTheLists(t *testing.T) {
	look := &search{
		known:     map[types.UID]bool{"target": true, "revision": true},
		ownerless: map[types.UID]mutate.Dependant{"other": dependant("other"), "stranger": dependant("stranger")},
	}
	look.found.All = []mutate.Dependant{dependant("revision", "target", "other")}
	require.NoError(t, look.walkUp(t.Context(), nil))
	var found []string
	for _, d := range look.found.All {
		found = append(found, d.Name)
	}
	assert.Equal(t, []string{"revision", "other"}, found)
}
