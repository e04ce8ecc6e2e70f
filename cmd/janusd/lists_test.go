package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

func TestSensitiveKindsAreKindsWithTheirGroups(t *testing.T) {
	o, err := parse([]string{"--sensitive-kinds=Key.example.com, Token,Api2Key.a-b.example.com"}, io.Discard)
	require.NoError(t, err)
	kinds, err := o.sensitiveKinds()
	require.NoError(t, err)
	assert.Equal(t, []schema.GroupKind{
		{Group: "example.com", Kind: "Key"}, {Kind: "Token"}, {Group: "a-b.example.com", Kind: "Api2Key"},
	}, kinds)
}
