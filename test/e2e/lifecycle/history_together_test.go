package lifecycle

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// crowd holds the requests that make revisions until so many Transactions have come that
// far, so that all of them prune the history at the same time.
type crowd struct {
	size int
	mu   sync.Mutex
	here map[string]bool // what has come, by what it sends
	full chan struct{}
}

// await begins again: nobody makes a revision until size have come.
func (c *crowd) await(size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size, c.here, c.full = size, map[string]bool{}, make(chan struct{})
}

func (c *crowd) hold(next http.RoundTripper) http.RoundTripper {
	return harness.RoundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/controllerrevisions") {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(body)
			if err != nil {
				return nil, err
			}
			if bytes.Contains(content, []byte("janus-revisions")) {
				return next.RoundTrip(r) // It counts the numbers, and is no revision.
			}
			select {
			case <-c.come(string(content)):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return next.RoundTrip(r)
	})
}

func (c *crowd) come(who string) (full <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.here[who] {
		c.here[who] = true
		if len(c.here) == c.size {
			close(c.full)
		}
	}
	return c.full
}

// Transactions that commit at the same time forget the oldest together: nobody tries to
// forget what another is about to forget.
func TestTransactionsThatCommitTogetherPruneTheHistoryOnce(t *testing.T) {
	t.Parallel()
	const many, limit = 12, 3
	e := harness.New(t)
	e.Apply(fixture.AB)
	for i := range many {
		e.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}, data: {version: \"0\"}}", i))
	}
	policy := harness.FastPolicy
	policy.Lateness = time.Hour // A slow machine makes no difference.
	crowd := &crowd{}
	e.Start(harness.WithPolicy(policy), harness.WithWorkers(many), harness.WithTransport(crowd.hold))
	var committed []*api.Transaction
	commit := func(round, size int) {
		crowd.await(size)
		for i := range size {
			e.Submit(fmt.Sprintf("txn-%d-%d", round, i), fmt.Sprintf(
				`{revisionHistoryLimit: %d, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: c-%d}, type: Patch, content: {data: {version: "%d"}}}]}`, limit, i, round))
		}
		for i := range size {
			txn := e.Ended(fmt.Sprintf("txn-%d-%d", round, i))
			require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			require.NotZero(t, txn.Status.Revision, harness.Describe(txn))
			committed = append(committed, txn)
		}
	}
	commit(1, many)
	commit(2, many) // The first ones have ended, and all of these are about to forget them.
	assert.GreaterOrEqual(t, ownRequests(e)["delete controllerrevisions: 200"], many-limit)
	commit(3, 1) // What had not ended then is forgotten by the next.

	slices.SortFunc(committed, func(a, b *api.Transaction) int { return int(b.Status.Revision - a.Status.Revision) })
	for i, txn := range committed {
		kept := i < limit
		assert.Equal(t, kept, e.Object("ConfigMap/"+txn.Status.RollbackRef.Name) != nil, "before-images of %s, revision %d", txn.Name, txn.Status.Revision)
	}
	assert.Len(t, revisionsOf(t, e), limit)

	const all, forgotten = 2*many + 1, 2*many + 1 - limit
	counts := ownRequests(e)
	// Each has listed them once to get its number, and of those that came together at least
	// two, one after the other, have pruned for all.
	assert.Less(t, counts["list controllerrevisions: 200"], all+all/2)
	for what := range counts {
		if !strings.HasPrefix(what, "delete ") && !strings.HasPrefix(what, "patch ") {
			delete(counts, what)
		}
	}
	assert.Equal(t, requests{
		"delete controllerrevisions: 200": forgotten,
		"delete configmaps: 200":          forgotten,
		"patch configmaps: 200":           all, // The finalizer of the before-images, at the end.
	}, counts)
}

// ownRequests counts what Janus has asked with its own rights about its own objects in the
// namespace, and how that was answered.
func ownRequests(e *harness.Env) requests {
	counts := requests{}
	for _, r := range e.Audit() {
		if r.Namespace == e.Namespace && r.ImpersonatedUser == "" && (r.Resource == "controllerrevisions" || r.Resource == "configmaps") {
			counts[fmt.Sprintf("%s %s: %d", r.Verb, r.Resource, r.Code)]++
		}
	}
	return counts
}
