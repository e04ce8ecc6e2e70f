package ordering

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/test/harness"
)

// TestTheCookbookIsAsItIs runs docs/cookbook.md, where there are Nodes.
func TestTheCookbookIsAsItIs(t *testing.T) {
	e := harness.New(t)
	e.Start()
	shell := e.Shell()
	t.Cleanup(func() { // These are in no namespace.
		printed, err := shell.Run(context.Background(), `kubectl delete --ignore-not-found --wait=false \
			namespace/tenant-red crd/coupons.shop.example.com clusterrole/tenant-sa clusterrole/coupon-sa \
			clusterrolebinding/tenant-sa clusterrolebinding/coupon-sa`)
		assert.NoError(t, err, printed)
	})
	e.TypePage(shell, "cookbook.md")
	for _, name := range []string{"rotate-password", "coupons", "to-green", "tenant-red"} {
		e.NothingLeft(name)
	}
}
