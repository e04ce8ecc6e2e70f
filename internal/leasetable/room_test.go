package leasetable

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/internal/sharedlease"
)

// A sheet is a table without an API server.
type sheet struct {
	*testing.T
	table *table
}

func newSheet(t *testing.T) sheet {
	s := sheet{t, &table{namespace: "shop"}}
	s.table.known = s.table.none()
	s.table.known.UID, s.table.known.ResourceVersion = "uid", "1000000"
	return s
}

// ask is one flush.
func (s sheet) ask(asks ...*ask) {
	s.Helper()
	now, err := s.table.apply(asks)
	require.NoError(s, err)
	version, err := strconv.Atoi(s.table.known.ResourceVersion)
	require.NoError(s, err)
	s.table.known = now.next.DeepCopy()
	s.table.known.ResourceVersion = strconv.Itoa(version + 1)
	require.LessOrEqual(s, s.bytes(), limit)
}

func (s sheet) bytes() int { return len(s.table.known.Annotations[Annotation]) }

func (s sheet) has() entries {
	s.Helper()
	all, err := decode(s.table.known)
	require.NoError(s, err)
	return all
}

func creates(lease *coordinationv1.Lease) *ask {
	return &ask{name: lease.Name, change: creation(lease), creates: true, lease: lease}
}

func updates(lease *coordinationv1.Lease) *ask {
	return &ask{name: lease.Name, change: update(lease), lease: lease}
}

func deletes(name string) *ask { return &ask{name: name, change: deletion(name, nil)} }

// locks are the creations of n Leases of one holder, which are asked for together.
func locks(holder string, n int) (asks []*ask) {
	group := &together{}
	for i := range n {
		a := creates(stamped(lease(fmt.Sprintf("janus-lock-shop-deployment-%s-%03d-6o6ejxsivw", holder, i), holder), 0))
		a.together = group
		asks = append(asks, a)
	}
	return asks
}

// renewals are those of all Leases of a holder, at one time.
func (s sheet) renewals(holder string, after time.Duration) (asks []*ask) {
	for _, l := range s.has() {
		if *l.Spec.HolderIdentity == holder {
			asks = append(asks, updates(stamped(l, after)))
		}
	}
	return asks
}

func stamped(l *coordinationv1.Lease, after time.Duration) *coordinationv1.Lease {
	l = l.DeepCopy()
	l.Spec.RenewTime = &metav1.MicroTime{Time: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC).Add(after)}
	return l
}

func full(a *ask) bool { return apierrors.IsTooManyRequests(a.err) }

// filled is a sheet with all Transactions of a size that find room, and how many these are.
func filled(t *testing.T, size int) (s sheet, n int) {
	t.Helper()
	for s = newSheet(t); ; n++ {
		asks := locks(fmt.Sprint("h-", n), size)
		s.ask(asks...)
		for _, a := range asks {
			require.Equal(t, full(asks[0]), full(a), "all are held or none")
		}
		if full(asks[0]) {
			require.Len(t, s.has(), n*size)
			return s, n
		}
		require.NoError(t, asks[0].err)
	}
}

// The number that is documented.
func TestATableHasRoomFor2500Locks(t *testing.T) {
	t.Parallel()
	_, n := filled(t, 100)
	require.GreaterOrEqual(t, n, 25)
}

// However full a table is, the locks of all Transactions can be renewed again and again.
func TestWhatIsHeldIsRenewedInAFullTable(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 500} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			s, n := filled(t, size)
			for round := range 2 {
				for i := range n {
					asks := s.renewals(fmt.Sprint("h-", i), time.Duration(round*n+i+1)*time.Second)
					require.Len(t, asks, size)
					s.ask(asks...)
					for _, a := range asks {
						require.NoError(t, a.err)
					}
				}
			}
		})
	}
}

// One that finds no room takes nothing from those that ask at the same time: not from one who asks for less,
// nor from one who renews or releases.
func TestWhoFindsNoRoomIsRefusedAlone(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 100)
	small, large := locks("small", 2), locks("large", 100)
	renewals, released := s.renewals("h-1", time.Second), s.renewals("h-0", 0)[:5]
	asks := append(append(large, small...), renewals...)
	for _, a := range released {
		asks = append(asks, deletes(a.name))
	}
	there := creates(renewals[0].lease)
	there.together = large[0].together
	s.ask(append(asks, there)...)
	for _, a := range asks {
		require.Equal(t, strings.Contains(a.name, "large"), full(a), a.name)
	}
	require.True(t, apierrors.IsAlreadyExists(there.err), "who has it is to be looked at: %v", there.err)
}

// A reader that joins waits for room like one that creates. Readers renew, and leave.
func TestAReaderThatJoinsAFullTableWaits(t *testing.T) {
	t.Parallel()
	s := newSheet(t)
	readers := func(l *coordinationv1.Lease, holders ...string) *coordinationv1.Lease {
		var said sharedlease.Sharing
		for _, h := range holders {
			said = said.With(sharedlease.Entry{Holder: h + strings.Repeat("-", 1000), Over: l.ResourceVersion})
		}
		return said.In(l, time.Time{})
	}
	s.ask(creates(readers(lease("shared", ""), "x", "y")))
	for _, size := range []int{5000, 500} {
		for i := 0; ; i++ {
			a := creates(lease(fmt.Sprintf("%s-%d", strings.Repeat("a", size), i), "a"))
			if s.ask(a); full(a) {
				break
			}
		}
	}
	joins := updates(readers(s.has()["shared"], "x", "y", "z"))
	s.ask(joins)
	require.True(t, full(joins), "%v", joins.err)
	renews := updates(readers(s.has()["shared"], "y", "x"))
	s.ask(renews)
	require.NoError(t, renews.err)
	leaves := updates(readers(s.has()["shared"], "y"))
	s.ask(leaves)
	require.NoError(t, leaves.err)
}

// Where not even renewals have room, one that has none is refused alone.
func TestRenewalsThatPartTheirGroups(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, 500)
	var renewed, refused, released int
	for i := range 4 {
		var asks []*ask
		for n, a := range s.renewals(fmt.Sprint("h-", i), 0) {
			if n%10 == 0 {
				asks = append(asks, deletes(a.name))
				continue
			}
			asks = append(asks, updates(stamped(a.lease, time.Duration(n+1)*time.Minute)))
		}
		s.ask(asks...)
		for _, a := range asks {
			switch {
			case a.err == nil && a.lease == nil:
				released++
			case a.err == nil:
				renewed++
			default:
				require.True(t, full(a) && a.lease != nil, "%v", a.err)
				refused++
			}
		}
	}
	require.Equal(t, 200, released)
	require.Positive(t, renewed)
	require.Positive(t, refused)
}
