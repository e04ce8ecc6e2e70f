package wiring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/lockmgr"
)

// What is said of a lock names a Transaction as people do, and tells since when, until when, and
// what to do.
func TestWhatIsInTheWayIsNamedForPeople(t *testing.T) {
	const (
		first  = "shop/first/0b5c9e1e-0000-4000-8000-000000000000"
		second = "shop/second/0b5c9e1e-0000-4000-8000-000000000001"
	)
	since := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("CET", 3600))
	key := lockmgr.Key{ID: objectid.ID{Resource: "configmaps", Namespace: "shop", Name: "app"}, Kind: "ConfigMap"}
	for want, err := range map[string]error{
		"it is held by Transaction shop/first (since 2026-03-01T12:00:00Z); waiting until it is released or expires, 5m0s after its last renewal; cancel that Transaction if this one can't wait": &lockmgr.HeldError{
			Key: key, Lease: "shop/l", Holder: first, Since: since, Lasts: 5 * time.Minute,
		},
		"it is held by alice; waiting until it is released or expires; ask its holder if this can't wait": &lockmgr.HeldError{Key: key, Lease: "shop/l", Holder: "alice"},
		"it is held by nobody that it names; waiting until it is released or expires":                     &lockmgr.HeldError{Key: key, Lease: "shop/l"},
		"it is held by Transaction shop/first and 2 more; waiting until they have released it or it expires": &lockmgr.HeldError{
			Key: key, Lease: "shop/l", Holder: first, Others: 2, Shared: true,
		},
		"it is shared, and Transaction shop/second is waiting to have it alone; waiting until that has ended": &lockmgr.HeldError{
			Key: key, Lease: "shop/l", Holder: second, Shared: true, Waits: true,
		},
		"it has passed to Transaction shop/second; raise spec.lockTimeout if janusd is often away for longer": &lockmgr.LostError{
			Lock: lockmgr.Lock{Key: key, Namespace: "shop", Name: "l"}, Holder: second,
		},
	} {
		operation := "lock"
		if _, lost := err.(*lockmgr.LostError); lost { //nolint:errorlint // it is the case itself
			operation = "keep the lock of"
		}
		assert.Equal(t, operation+" configmaps shop/app: "+want, errclass.Message(explainLock(err)))
	}
}
