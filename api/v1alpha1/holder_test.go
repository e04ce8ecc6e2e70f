package v1alpha1

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheHolderOfALockIsFoundAgain(t *testing.T) {
	txn := &Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "release", UID: "7f3a"}}
	name, uid, ok := ParseHolder(HolderOf(txn))
	assert.True(t, ok)
	assert.Equal(t, types.NamespacedName{Namespace: "shop", Name: "release"}, name)
	assert.Equal(t, txn.UID, uid)

	for _, other := range []string{"", "alice", "shop/release", "a/b/c/d", "/release/7f3a", "shop//7f3a"} {
		_, _, ok := ParseHolder(other)
		assert.False(t, ok, other)
	}
}
