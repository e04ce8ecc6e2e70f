package shard

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkShares tells how many times as fast as one replica several can be at best: the last to be
// done is the one that has most Transactions. It is the mean of all that were divided.
func BenchmarkShares(b *testing.B) {
	for _, replicas := range []int{2, 3, 4, 5, 6} {
		for _, many := range []int{80, 200, 1000} {
			for _, shards := range []int{8, 16, 32} {
				b.Run(fmt.Sprintf("replicas=%d/transactions=%d/shards=%d", replicas, many, shards), func(b *testing.B) {
					sum := 0.0
					for division := range b.N {
						sum += float64(many) / float64(largest(division, replicas, many, shards))
					}
					b.ReportMetric(sum/float64(b.N), "times")
				})
			}
		}
	}
}

// largest is the largest share of replicas and Transactions whose names have a number in them.
func largest(number, replicas, many, shards int) int {
	var members []member
	for i := range replicas {
		members = append(members, member{name: fmt.Sprintf("janusd-replica-%d-%d", number, i)})
	}
	holders, shares := assign(members, shards), map[string]int{}
	for i := range many {
		shares[holders[Of(types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("t-%d-%d", number, i)}, shards)]]++
	}
	return slices.Max(slices.Collect(maps.Values(shares)))
}
