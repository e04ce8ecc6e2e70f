package leasetable

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/test/testcluster"
)

// gate has the next request wait, and returns what tells that it has come, and what lets it go.
func gate(tap *wire) (came chan struct{}, let func()) {
	came, goOn := make(chan struct{}), make(chan struct{})
	tap.on(func(send func() (*http.Response, error)) (*http.Response, error) {
		close(came)
		<-goOn
		return send()
	})
	return came, sync.OnceFunc(func() { close(goOn) })
}

// One of two that ask together is answered early, because another did not wait, and asks elsewhere. The
// other is answered all the same.
func TestNobodyIsForgottenOfThoseWhoAskTogether(t *testing.T) {
	t.Parallel()
	here, there := testcluster.Namespace(t), testcluster.Namespace(t)
	c, tap := process(t)
	create := func(ctx context.Context, namespace, name string) {
		_, err := c.Leases(namespace).Create(ctx, lease(name, "a"), metav1.CreateOptions{})
		assert.NoError(t, err)
	}
	waiting := func(n int) {
		require.Eventually(t, func() bool {
			c.tables.mu.Lock()
			defer c.tables.mu.Unlock()
			return len(c.tables.of[here].waiting) == n
		}, waits, tick)
	}
	ctx, left := c.Together(t.Context(), 2)
	var all sync.WaitGroup
	create(t.Context(), here, "before")
	all.Go(func() {
		defer left()
		create(ctx, here, "x")
		create(ctx, there, "x")
	})
	waiting(1)
	came, let := gate(tap)
	all.Go(func() { create(t.Context(), here, "alone") })
	<-came // With x.
	all.Go(func() {
		defer left()
		create(ctx, here, "y")
	})
	waiting(1)
	let()
	all.Wait()
	require.Len(t, names(t, c.Leases(here)), 4)
}
