package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A namespace that is watched twice would have its Transactions counted twice.
func TestEachNamespaceIsWatchedOnce(t *testing.T) {
	for _, c := range []struct {
		args, want []string
	}{
		{nil, nil},
		{[]string{"--watch-namespaces=shop"}, []string{"shop"}},
		{[]string{"--watch-namespaces=shop, orders,shop "}, []string{"orders", "shop"}},
		{[]string{"--watch-namespaces=shop", "--watch-namespaces=orders,shop"}, []string{"orders", "shop"}},
	} {
		o, err := parse(c.args, io.Discard)
		require.NoError(t, err, "%q", c.args)
		assert.Equal(t, c.want, o.watch, "%q", c.args)
	}
}
