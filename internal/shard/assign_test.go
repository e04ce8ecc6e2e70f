package shard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

func TestTheShardOfATransactionIsTheSameInEveryVersion(t *testing.T) {
	for name, want := range map[types.NamespacedName]int{
		{Namespace: "shop", Name: "deploy-v2"}: 3,
		{Namespace: "shop", Name: "checkout"}:  4,
		{Namespace: "shop-c", Name: "heckout"}: 2,
		{Namespace: "default", Name: "a"}:      4,
	} {
		assert.Equal(t, want, Of(name, 8), "%s", name)
		assert.Equal(t, 0, Of(name, 1), "%s", name)
	}
}

func TestTransactionsAreSpreadOverTheShards(t *testing.T) {
	const shards, many = 8, 4000
	var counts [shards]int
	for n := range many {
		counts[Of(types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("deploy-%d", n)}, shards)]++
	}
	for number, n := range counts {
		assert.InDelta(t, many/shards, n, many/shards/4, "shard %d", number)
	}
}

func members(names ...string) []member {
	var out []member
	for _, name := range names {
		out = append(out, member{name: name, shards: 8})
	}
	return out
}

func TestEachShardFallsToOneReplicaAndNoneHasTwoMoreThanAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := rapid.IntRange(1, 64).Draw(t, "shards")
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-f0-9]{4}`), 1, 20, rapid.ID).Draw(t, "replicas")
		given := assign(members(names...), shards)
		load := map[string]int{}
		for _, name := range given {
			require.Contains(t, names, name)
			load[name]++
		}
		for _, name := range names {
			require.GreaterOrEqual(t, load[name], shards/len(names))
			require.LessOrEqual(t, load[name], (shards+len(names)-1)/len(names))
		}
		slices.Reverse(names)
		require.Equal(t, given, assign(members(names...), shards), "all compute the same, in whatever order they see each other")
	})
}

func TestMostShardsStayWhenAReplicaComes(t *testing.T) {
	const shards = 32
	moved, total := 0, 0
	for n := range 50 {
		before := []string{fmt.Sprintf("a%d", n), fmt.Sprintf("b%d", n), fmt.Sprintf("c%d", n)}
		was, is := assign(members(before...), shards), assign(members(append(before, fmt.Sprintf("d%d", n))...), shards)
		for i := range was {
			total++
			if was[i] != is[i] {
				moved++
			}
		}
	}
	assert.Less(t, moved, total/2, "a quarter has to move")
}

func TestWithoutReplicasNoShardFallsToAnybody(t *testing.T) {
	assert.Empty(t, assign(nil, 8))
	assert.Empty(t, inForce(nil))
}

func TestTheNumberOfShardsIsThatOfWhoWasThereFirst(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2030, 1, 1, 0, 0, second, 0, time.UTC) }
	old1, old2 := member{"old-1", 4, at(1)}, member{"old-2", 4, at(5)}
	new1, new2 := member{"new-1", 8, at(2)}, member{"new-2", 8, at(3)}
	assert.Equal(t, []member{old2, old1}, inForce([]member{old2, new1, old1, new2}))
	assert.Equal(t, []member{new1, new2}, inForce([]member{new1, old2, new2}), "the first one has gone")
	assert.Equal(t, []member{new1}, inForce([]member{{"z", 4, at(2)}, new1}), "of two in one second, the name says which")
}

func TestALeaseHasExpiredWhenThisProcessHasSeenItUnchangedForItsTime(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	lease := coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To[int32](10)}}
	lease.Name, lease.ResourceVersion = "a", "1"
	s := observedRecords{}
	s.look([]coordinationv1.Lease{lease}, now)
	assert.False(t, s.expired(&lease, now.Add(10*time.Second)))
	assert.True(t, s.expired(&lease, now.Add(11*time.Second)), "whatever times it says")
	s.look([]coordinationv1.Lease{lease}, now.Add(9*time.Second))
	assert.True(t, s.expired(&lease, now.Add(11*time.Second)), "it was seen again, unchanged")
	lease.ResourceVersion = "2"
	s.look([]coordinationv1.Lease{lease}, now.Add(10*time.Second))
	assert.False(t, s.expired(&lease, now.Add(11*time.Second)), "it was renewed")
	s.look(nil, now.Add(11*time.Second))
	assert.Empty(t, s, "what is gone is forgotten")
}

func TestWhatTheLeasesAreCalled(t *testing.T) {
	assert.Equal(t, "janusd-shard-7", (&Replica{}).leaseOf(7))
	group := &Replica{Options: Options{Group: "0a1b2c3d"}}
	assert.Equal(t, "janusd-0a1b2c3d-shard-7", group.leaseOf(7))
	assert.Equal(t, "replica-0a1b2c3d", group.labelsOf(componentReplica)[labelComponent])
	r := &Replica{Options: Options{Identity: "Some Host_1b4e28ba-2fa1-11d2-883f-0016d3cca427"}}
	assert.Regexp(t, `^janusd-replica-[0-9a-f]{16}$`, r.name())
}
