package lockmgr

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clocktesting "k8s.io/utils/clock/testing"

	"janus.io/janus/internal/objectid"

	"janus.io/janus/internal/sharedlease"
)

// FuzzLeaseNamesTellTargetsApart: two targets have two Leases, in one order.
func FuzzLeaseNamesTellTargetsApart(f *testing.F) {
	f.Add("apps", "deployments", "shop", "web", "apps", "deployments", "shop-web", "", "Deployment")
	f.Add("", "configmaps", "a", "b-c", "", "configmaps", "a-b", "c", "ConfigMap")
	f.Add("a", "b", "c", "d", "ab", "", "cd", "", "K")
	f.Add("", "x", "", strings.Repeat("ä", 126), "", "x", "", strings.Repeat("ä", 125)+"b", strings.Repeat("K", 300))
	f.Add("", "x", "", "A", "", "x", "", "a", "\u212a\u0130")
	f.Fuzz(func(t *testing.T, g1, r1, ns1, n1, g2, r2, ns2, n2, kind string) {
		a, b := keyOf(g1, r1, kind, ns1, n1), keyOf(g2, r2, kind, ns2, n2)
		if strings.Contains(g1+r1+ns1+n1+g2+r2+ns2+n2, "\x00") {
			return // No part of an identity may.
		}
		same := g1 == g2 && r1 == r2 && ns1 == ns2 && n1 == n2
		require.Equal(t, same, a.LeaseName() == b.LeaseName(), "%s and %s", a, b)
		require.Equal(t, !same, a.Less(b) || b.Less(a))
		require.False(t, a.Less(b) && b.Less(a))
		require.Empty(t, validation.IsValidLabelValue(standInLabel(ns1)), "namespace %q", ns1)
		if len(validation.IsDNS1123Label(ns1)) == 0 {
			lock := lockAt(a, types.NamespacedName{Namespace: ns1, Name: a.LeaseName()})
			back, err := ParseLock(a, lock.String())
			require.NoError(t, err)
			require.Equal(t, lock, back)
		}
	})
}

// FuzzParseLock: what a status says about a lock names a Lease or is an error.
func FuzzParseLock(f *testing.F) {
	for _, text := range []string{"", "/", "a/", "/b", "a/b", "a/b/c", "a//b", "../b", "a/..", "\n/\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lock, err := ParseLock(Key{ID: objectid.ID{Name: "x"}}, text)
		if err == nil {
			require.Equal(t, text, lock.String())
			require.NotEmpty(t, lock.Namespace)
			require.NotEmpty(t, lock.Name)
		}
	})
}

// leases are ones that people and other tools may write.
var leases = []string{
	`{}`, `{"spec":{}}`, `{"spec":{"holderIdentity":""}}`, `{"spec":{"holderIdentity":"us"}}`, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`,
	`{"metadata":{"name":"l","namespace":"n","uid":"u","resourceVersion":"7","finalizers":["a/b"],"labels":{"x":"y"},"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"holderIdentity":"us"}}`,
	`{"metadata":{"uid":"u","resourceVersion":"7"},"spec":{"holderIdentity":"they","leaseDurationSeconds":30,"leaseTransitions":2147483647}}`,
	`{"spec":{"holderIdentity":"they","leaseDurationSeconds":0}}`, `{"spec":{"holderIdentity":"they","leaseDurationSeconds":-5,"leaseTransitions":-2147483648}}`,
	`{"spec":{"holderIdentity":"\u0000\u001b[31m ´/../us","leaseDurationSeconds":2147483647,"renewTime":"9999-12-31T23:59:59.999999Z","acquireTime":"0001-01-01T00:00:00.000000Z"}}`,
	`{"spec":{"holderIdentity":"us/","renewTime":null,"preferredHolder":"x","strategy":"OldestEmulationVersion"}}`,
	`{"metadata":{"annotations":{"janus.io/shared-by":"[{\"holder\":\"a\",\"seconds\":30,\"over\":\"7\"},{\"holder\":\"us\",\"seconds\":9}]"}},"spec":{"holderIdentity":"janus.io/shared"}}`,
	`{"metadata":{"annotations":{"janus.io/shared-by":"[{\"holder\":\"a\",\"seconds\":-1},{\"holder\":\"a\",\"seconds\":5},{}]","janus.io/wanted-by":"{\"holder\":\"b\",\"seconds\":5}"}},"spec":{"holderIdentity":"janus.io/shared"}}`,
	`{"metadata":{"annotations":{"janus.io/shared-by":"[]","janus.io/wanted-by":"{\"holder\":\"us\",\"seconds\":5}"}},"spec":{"holderIdentity":"janus.io/shared"}}`,
	`{"metadata":{"annotations":{"janus.io/shared-by":"nonsense"}},"spec":{"holderIdentity":"janus.io/shared","leaseDurationSeconds":5}}`,
}

// FuzzLeasesOfOthers: whatever a Lease says, it is ours, free or expired, and then
// completely ours once it is written, or else it is in the way for a time that ends.
func FuzzLeasesOfOthers(f *testing.F) {
	for _, text := range leases {
		f.Add([]byte(text), "us", int64(30))
	}
	f.Add([]byte(leases[6]), "they", int64(-1))
	f.Fuzz(func(t *testing.T, data []byte, identity string, seconds int64) {
		lease := &coordinationv1.Lease{}
		if identity == "" || json.Unmarshal(data, lease) != nil {
			return
		}
		lease.UID, lease.ResourceVersion = lease.UID+"u", lease.ResourceVersion+"1" // What was read has both.
		clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
		m := New(nil, Options{Namespace: "own", Clock: clock})
		h := Holder{Identity: identity, TTL: time.Duration(seconds), Labels: map[string]string{"l": "ours"}}
		key, untouched := deployment(lease.Namespace, "web"), lease.DeepCopy()
		next, err := m.claim(t.Context(), h, key, lease)
		require.Equal(t, untouched, lease, "what was read is changed")
		if err != nil {
			waitAndClaim(t, m, clock, h, key, lease, err)
			return
		}
		require.Nil(t, lease.DeletionTimestamp)
		checkFree(t, h, lease)
		checkOurs(t, h, lease, next)
	})
}

// checkFree: nobody had the Lease who still has time.
func checkFree(t *testing.T, h Holder, lease *coordinationv1.Lease) {
	t.Helper()
	if s, shared := sharedlease.Of(lease); shared {
		for _, r := range s.Readers {
			require.True(t, r.Holder == h.Identity || r.Seconds <= 0, "taken from %q", r.Holder)
		}
		return
	}
	holder := holderOf(lease)
	require.True(t, holder == h.Identity || holder == "" || duration(lease, h.seconds()) <= 0, "taken from %q", holder)
}

// FuzzSharedLeasesOfOthers: whatever a Lease says, a reader joins those that share it, or has it
// completely, or is kept out for a time that ends. No reader that is there goes.
func FuzzSharedLeasesOfOthers(f *testing.F) {
	for _, text := range leases {
		f.Add([]byte(text), "us")
	}
	f.Fuzz(func(t *testing.T, data []byte, identity string) {
		lease := &coordinationv1.Lease{}
		if identity == "" || json.Unmarshal(data, lease) != nil || lease.DeletionTimestamp != nil {
			return
		}
		lease.UID, lease.ResourceVersion = lease.UID+"u", lease.ResourceVersion+"1"
		clock := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
		m := New(nil, Options{Namespace: "own", Clock: clock})
		h, key, untouched := holder(identity), shared(deployment(lease.Namespace, "web")), lease.DeepCopy()
		next, err := m.claim(t.Context(), h, key, lease)
		if held := (*HeldError)(nil); errors.As(err, &held) {
			require.Positive(t, held.Until)
			clock.SetTime(clock.Now().Add(held.Until))
			next, err = m.claim(t.Context(), h, key, lease)
		}
		require.NoError(t, err)
		require.Equal(t, untouched, lease, "what was read is changed")
		require.True(t, isOurs(next, identity))
		require.Equal(t, placeOf(lease), placeOf(next))
		require.Equal(t, lease.ResourceVersion, next.ResourceVersion)
		if _, was := sharedlease.Of(lease); was {
			require.Subset(t, sharedlease.By(next), sharedlease.By(lease))
		}
		after, is := sharedlease.Of(next)
		if is {
			own, _ := after.Reader(identity)
			require.Equal(t, h.seconds(), own.Seconds)
			require.Empty(t, after.Without(identity).Without(sharedlease.NextOf(next)).In(next, clock.Now()).Annotations[sharedlease.AnnotationNext])
		}
	})
}

// waitAndClaim: a record in the way stays so until its time is over, and no longer.
func waitAndClaim(t *testing.T, m *Manager, clock *clocktesting.FakePassiveClock, h Holder, key Key, lease *coordinationv1.Lease, err error) {
	t.Helper()
	var held *HeldError
	require.ErrorAs(t, err, &held)
	require.Positive(t, held.Until)
	require.NotEmpty(t, held.Error())
	if lease.DeletionTimestamp != nil {
		return
	}
	clock.SetTime(clock.Now().Add(held.Until - 1))
	_, err = m.claim(t.Context(), h, key, lease)
	require.ErrorAs(t, err, &held)
	clock.SetTime(clock.Now().Add(1))
	next, err := m.claim(t.Context(), h, key, lease)
	require.NoError(t, err)
	checkOurs(t, h, lease, next)
	if _, shared := sharedlease.Of(lease); shared {
		return
	}
	lease.ResourceVersion += "2" // Another client has written it: its time begins again.
	_, err = m.claim(t.Context(), h, key, lease)
	require.ErrorAs(t, err, &held)
}

func checkOurs(t *testing.T, h Holder, lease, next *coordinationv1.Lease) {
	t.Helper()
	require.Equal(t, h.Identity, holderOf(next))
	require.Equal(t, lease.UID, next.UID)
	require.Equal(t, lease.ResourceVersion, next.ResourceVersion)
	require.Equal(t, placeOf(lease), placeOf(next))
	require.Positive(t, *next.Spec.LeaseDurationSeconds)
	require.Equal(t, "ours", next.Labels["l"])
	if holderOf(lease) != h.Identity {
		require.Empty(t, next.OwnerReferences)
	}
	_, err := json.Marshal(next)
	require.NoError(t, err)
}
