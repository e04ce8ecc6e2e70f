package deploy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"janus.io/janus/test/testcluster"
)

// BenchmarkWriteWhereLocksAreEnforced writes the same object by turns in a namespace where
// locks are enforced, with tables of several sizes, and in one without the label.
func BenchmarkWriteWhereLocksAreEnforced(b *testing.B) {
	in := installed(b, withComponent(b, ".", "enforced"))
	with, without := testcluster.Namespace(b), testcluster.Namespace(b)
	enforceIn(b, in, with)
	config := rest.CopyConfig(in.config)
	config.QPS = -1
	admin, err := dynamic.NewForConfig(config)
	require.NoError(b, err)
	for _, n := range []int{0, 10, 1000} {
		locks := map[string]string{}
		for i := range n {
			locks[fmt.Sprint("configmaps/locked-", i)] = "shop/release/2f0c8bd2-0000-4000-8000-000000000000"
		}
		enterLocks(b, in, with, locks)
		b.Run(fmt.Sprintf("%d locks", n), func(b *testing.B) {
			alternate(b, with, without, repeated(b, admin, bare(fmt.Sprint("plain-", n))))
		})
	}
}
