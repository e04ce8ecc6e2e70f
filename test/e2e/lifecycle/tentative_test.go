package lifecycle

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// greedy lets a Transaction take the lock of b for nothing: its requests for that of a, which another
// one holds, are sent after it has that of b, which it then releases no sooner than it may.
type greedy struct {
	http.RoundTripper
	took, release chan struct{}
	once          *sync.Once
}

func (g greedy) RoundTrip(req *http.Request) (*http.Response, error) {
	path := req.URL.Path
	switch {
	case req.Method == http.MethodDelete && strings.Contains(path, "configmap-b"):
		await(req, g.release)
	case req.Method == http.MethodPost && strings.HasSuffix(path, "/leases"):
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte("/greedy/")) {
			break
		}
		if bytes.Contains(body, []byte("configmap-b")) {
			defer g.once.Do(func() { close(g.took) })
		} else {
			await(req, g.took)
		}
	}
	return g.RoundTripper.RoundTrip(req)
}

func await(req *http.Request, event <-chan struct{}) {
	select {
	case <-event:
	case <-req.Context().Done():
	}
}

// A Transaction that is refused a lock releases those that come after it. No event tells one that waits for
// such a lock, so it has to look.
func TestALockThatWasTakenForNothingIsFoundFree(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
`)
	g := greedy{took: make(chan struct{}), release: make(chan struct{}), once: &sync.Once{}}
	e.Start(harness.WithTransport(func(next http.RoundTripper) http.RoundTripper {
		g := g
		g.RoundTripper = next
		return g
	}))
	e.Submit("holder", `
timeout: 10m
changes:
- {name: gate, type: Await, target: {apiVersion: v1, kind: ConfigMap, name: gate}, readyWhen: {expression: object.data.open == "yes"}}
- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: a}, content: {data: {by: holder}}}
`)
	waiting(e, "holder", "NotReady")
	const patch = "- {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: "
	e.Submit("greedy", "timeout: 10m\nchanges:\n"+patch+"a}, content: {data: {by: greedy}}}\n"+patch+"b}, content: {data: {by: greedy}}}\n")
	<-g.took
	// It looks at its lock again after a quarter of an hour, or after five minutes: later than the test waits.
	e.Submit("waiter", "timeout: 10m\nlockTimeout: 1h\nchanges:\n"+patch+"b}, content: {data: {by: waiter}}}\n")
	e.Await("waiter", "waiting for greedy", func(txn *api.Transaction) bool {
		_, reason, message := harness.Condition(txn, api.ConditionReconciling)
		return reason == errclass.LockHeld && strings.Contains(message, "greedy")
	})
	close(g.release)

	txn := e.Ended("waiter")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "waiter", e.Value("ConfigMap/b", "data", "by"))
	waiting(e, "greedy", errclass.LockHeld)
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: gate}, data: {open: "yes"}}`)
	for _, name := range []string{"holder", "greedy"} {
		txn := e.Ended(name)
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	}
	assert.Equal(t, "greedy", e.Value("ConfigMap/b", "data", "by"))
}
