package lockmgr

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/sharedlease"
)

// A Holder is who takes locks, and what its Leases look like.
type Holder struct {
	// Identity goes into spec.holderIdentity and must be unique in the cluster
	// and over time: it carries the UID of the Transaction, since a new
	// Transaction of the same name is another holder.
	Identity string
	// Labels and Annotations are put on the Leases that the holder has alone, and SharedLabels on
	// those that it shares.
	Labels       map[string]string
	Annotations  map[string]string
	SharedLabels map[string]string
	// Owner is set on the Leases in OwnerNamespace, so that the garbage
	// collector takes them along with it. An owner in another namespace would
	// count as absent and the Lease as garbage. It may be nil.
	Owner          *metav1.OwnerReference
	OwnerNamespace string
	// TTL is how long a lock lasts without being renewed. A Lease counts whole
	// seconds: it is rounded up, and one second at least.
	TTL time.Duration
	// Waits is set if the caller waits for a lock that it is refused, and calls Acquire again
	// until it has it, or Release. Then readers that come later do not come before it.
	Waits bool
	// Confirm is asked before a Lease is made or written, if it is not nil. Its error ends
	// the attempt: anyone who may have hung since it decided to take the lock is not to take
	// it when it is wanted no more, for it would not be released; nor when another process
	// of the same holder has it by now, for it would be released under that one. If found
	// is set, the Lease is the holder's already, and this process has not made it so: then
	// it is asked before the Lease is released, too.
	Confirm func(ctx context.Context, found bool) error
	// Ended tells, if it is not nil, whether the holder that a Lease names has ended and has
	// released its locks. Then a Lease of its name was left behind, or was made by a request
	// that landed late, and is taken over before its time is over. It is asked after the Lease
	// was read: a holder that comes back writes the Lease first, and the take-over is refused.
	// For a shared Lease it is asked about each of the holders, with a Lease that names it alone.
	Ended func(ctx context.Context, lease *coordinationv1.Lease) bool
	// Lost is called, if it is not nil, when what became of the creation of a Lease, or of a write
	// of a shared one, is not known: it may land when nobody looks any more.
	Lost func()

	// stamp is the time that the Leases of one call say, zero for that of each request: in a table, Leases
	// that say the same take the room of one.
	stamp time.Time
}

// errNoIdentity is a mistake of the caller: an empty identity would take every
// free Lease for its own.
var errNoIdentity = errors.New("lockmgr: the holder has no identity")

// errReserved is one, too: the Lease would look like one that readers share.
var errReserved = errors.New("lockmgr: no holder may be called " + sharedlease.Holder)

func (h Holder) confirm(ctx context.Context, found bool) error {
	if h.Confirm == nil {
		return nil
	}
	return h.Confirm(ctx, found)
}

// says is the time that a Lease says which is written now.
func (h Holder) says(now time.Time) time.Time {
	if h.stamp.IsZero() {
		return now
	}
	return h.stamp
}

func (h Holder) ended(ctx context.Context, lease *coordinationv1.Lease) bool {
	return h.Ended != nil && h.Ended(ctx, lease)
}

func (h Holder) check() error {
	switch h.Identity {
	case "":
		return errNoIdentity
	case sharedlease.Holder:
		return errReserved
	default:
		return nil
	}
}

// seconds is the TTL as a Lease states it.
func (h Holder) seconds() int32 {
	whole := h.TTL / time.Second
	if h.TTL%time.Second > 0 {
		whole++
	}
	return int32(min(max(whole, 1), math.MaxInt32)) //nolint:gosec // bounded on this line
}

// A Lock is a target's lock and the Lease that embodies it.
type Lock struct {
	Key Key
	// Namespace and Name are those of the Lease.
	Namespace, Name string
}

// String names the Lease as "namespace/name".
func (l Lock) String() string { return l.place().String() }

func (l Lock) place() types.NamespacedName {
	return types.NamespacedName{Namespace: l.Namespace, Name: l.Name}
}

func lockAt(key Key, place types.NamespacedName) Lock {
	return Lock{Key: key, Namespace: place.Namespace, Name: place.Name}
}

// ParseLock is the inverse of Lock.String: it makes a Lock of a target and the
// recorded "namespace/name" of its Lease.
func ParseLock(key Key, lease string) (Lock, error) {
	namespace, name, ok := strings.Cut(lease, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Lock{}, fmt.Errorf("lockmgr: %q is not the namespace/name of the Lease of %s", lease, key)
	}
	return Lock{Key: key, Namespace: namespace, Name: name}, nil
}
