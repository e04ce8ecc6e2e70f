package main

import (
	"io"
	"os"
	"path/filepath"
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
		assert.Equal(t, c.want, o.watch.names, "%q", c.args)
		assert.False(t, o.watch.changes(), "%q", c.args)
	}
}

// A selector has commas of its own.
func TestNamespacesMayBeSelectedByTheirLabelsOrNamedInAFile(t *testing.T) {
	for given, want := range map[string]string{
		"label:team=shop":                        "team=shop",
		"label:team=shop,stage!=test":            "stage!=test,team=shop",
		"label:team in (shop,orders),!forbidden": "!forbidden,team in (orders,shop)",
	} {
		o, err := parse([]string{"--watch-namespaces=" + given}, io.Discard)
		require.NoError(t, err, given)
		assert.Equal(t, want, o.watch.selector.String(), given)
		assert.True(t, o.watch.changes(), given)
	}
	file := filepath.Join(t.TempDir(), "namespaces")
	require.NoError(t, os.WriteFile(file, []byte("shop # ours\n\norders, shop\n"), 0o600))
	o, err := parse([]string{"--watch-namespaces=file:" + file}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, file, o.watch.file)
	assert.True(t, o.watch.changes())
}

func TestTheReplicasOfOneSelectorAreAGroup(t *testing.T) {
	group := func(args ...string) string {
		t.Helper()
		o, err := parse(args, io.Discard)
		require.NoError(t, err)
		return o.inGroup("janusd-leader")
	}
	assert.Equal(t, "janusd-leader", group())
	assert.Equal(t, group("--selector=a=b,c=d"), group("--selector= c = d , a=b"))
	assert.NotEqual(t, group("--selector=a=b"), group("--selector=a=c"))
	assert.Regexp(t, "^janusd-leader-[0-9a-f]{8}$", group("--selector=a=b"))
}

// Anyone who acts as other ServiceAccounts goes at the same pace: it is one for all clients.
func TestThePaceIsOfAllRequestsTogether(t *testing.T) {
	for _, tt := range []struct {
		args []string
		qps  float32
	}{{nil, 0}, {[]string{"--kube-api-qps=5"}, 5}, {[]string{"--kube-api-qps=0.5", "--kube-api-burst=3"}, 0.5}} {
		o, err := parse(tt.args, io.Discard)
		require.NoError(t, err)
		pace := o.pace()
		if tt.qps == 0 {
			assert.Nil(t, pace)
			continue
		}
		assert.InDelta(t, tt.qps, pace.QPS(), 0)
		burst := 0
		for pace.TryAccept() {
			burst++
		}
		assert.Equal(t, map[float32]int{5: 10, 0.5: 3}[tt.qps], burst)
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
