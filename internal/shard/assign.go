package shard

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Of returns the shard of a Transaction, from 0 to shards-1. It is the same in every process
// and version.
func Of(transaction types.NamespacedName, shards int) int {
	if shards <= 1 {
		return 0
	}
	return int(hash(transaction.Namespace, transaction.Name) % uint64(shards)) //nolint:gosec // below shards
}

// hash mixes once more what FNV leaves in the low bits.
func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	sum := h.Sum64()
	sum ^= sum >> 33
	sum *= 0xff51afd7ed558ccd
	sum ^= sum >> 33
	return sum
}

// member is a replica that is alive.
type member struct {
	name   string
	shards int       // into how many it divides the Transactions
	since  time.Time // by the clock of the API server
}

// inForce returns the members that divide the Transactions into as many shards as the one
// that was there first does. Of two numbers only one can hold at a time, and the one that
// is in use stays until the last who uses it is gone.
func inForce(members []member) []member {
	if len(members) == 0 {
		return nil
	}
	first := slices.MinFunc(members, func(a, b member) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name))
	})
	var out []member
	for _, m := range members {
		if m.shards == first.shards {
			out = append(out, m)
		}
	}
	return out
}

// assign gives each shard to a member, by name. No member has two more than another. It
// follows from the members alone, whatever their order, and when one comes or goes most
// shards stay where they are: each goes to the member that ranks it highest among those
// that have room.
func assign(members []member, shards int) []string {
	if len(members) == 0 {
		return nil
	}
	least, more := shards/len(members), shards%len(members)
	load := map[string]int{}
	out := make([]string, shards)
	for i := range out {
		best, rank := "", uint64(0)
		for _, m := range members {
			if load[m.name] > least || load[m.name] == least && more == 0 {
				continue
			}
			if r := hash(m.name, strconv.Itoa(i)); best == "" || r > rank || r == rank && m.name > best {
				best, rank = m.name, r
			}
		}
		if load[best] == least {
			more--
		}
		load[best]++
		out[i] = best
	}
	return out
}
