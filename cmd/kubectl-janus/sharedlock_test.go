package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"janus.io/janus/internal/sharedlease"
)

// A lock names all who have it, and who is to have it next.
func TestALockNamesItsHolders(t *testing.T) {
	t.Parallel()
	one := sharedlease.Entry{Holder: "shop/a/1", Seconds: 30}
	two, next := sharedlease.Entry{Holder: "bob", Seconds: 30}, sharedlease.Entry{Holder: "shop/c/3", Seconds: 30}
	of := func(s sharedlease.Sharing) *coordinationv1.Lease { return s.In(&coordinationv1.Lease{}, time.Time{}) }
	shared := sharedlease.Sharing{}.With(one).With(two)
	for want, lease := range map[string]*coordinationv1.Lease{
		"nobody":                           {},
		"Transaction shop/a":               {Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("shop/a/1")}},
		"Transaction shop/a, bob (shared)": of(shared),
		"Transaction shop/a, bob (shared); next Transaction shop/c": of(sharedlease.Sharing{Readers: shared.Readers, Next: &next}),
		"nobody; next Transaction shop/c":                           of(sharedlease.Sharing{Next: &next}),
	} {
		assert.Equal(t, want, holderOf(lease))
	}
}
