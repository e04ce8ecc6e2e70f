package concurrency

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/lockmgr"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// patchA changes what fixture.PatchAB does, too. A lock lasts for longer than a test waits.
const patchA = `
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: a}
    type: Patch
    content: {data: {other: "3"}}
`

// delayed keeps the first request for the lock of the ConfigMap a from the API server until it is
// let go. Its sender is told that the connection broke.
type delayed struct {
	once sync.Once
	send func() (*http.Response, error)
}

func (d *delayed) wrap(next http.RoundTripper) http.RoundTripper {
	return harness.RoundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/leases") {
			return next.RoundTrip(r)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		kept := false
		if bytes.Contains(body, []byte("-configmap-a-")) {
			d.once.Do(func() { kept = true })
		}
		if !kept {
			return next.RoundTrip(r)
		}
		later := r.Clone(context.WithoutCancel(r.Context()))
		d.send = func() (*http.Response, error) {
			later.Body = io.NopCloser(bytes.NewReader(body))
			return next.RoundTrip(later)
		}
		return nil, errors.New("the connection was reset")
	})
}

// A request for a lock lands when its Transaction has committed, and the janusd that would have
// looked for it has been replaced. Nobody else waits until that lock has expired.
func TestALockThatLandsAfterItsTransactionHasEndedIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	policy := harness.FastPolicy
	policy.SettleTime = time.Hour // Only that would find the lock otherwise.
	late := &delayed{}
	first := e.Start(harness.WithPolicy(policy), harness.WithTransport(late.wrap))
	spec := strings.Replace(fixture.PatchAB, "lockTimeout: 1s", "lockTimeout: 1h", 1)
	assert.Equal(t, api.PhaseCommitted, e.Run("first", spec).Status.Phase)
	first.Stop()
	answer, err := late.send()
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, answer.StatusCode)
	require.NoError(t, answer.Body.Close())
	e.Start(harness.WithPolicy(policy))

	second := e.Run("second", patchA)

	assert.Equal(t, api.PhaseCommitted, second.Status.Phase, harness.Describe(second))
	e.NothingLeft("second")
	e.NothingLeft("first")
}

// leaseFor is the manifest of a Lease that locks the ConfigMap a.
func leaseFor(e *harness.Env, holder, metadata string, seconds int) string {
	key := lockmgr.Key{ID: objectid.ID{Resource: "configmaps", Namespace: e.Namespace, Name: "a"}, Kind: "ConfigMap"}
	return fmt.Sprintf(`
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: %s
%s
spec: {holderIdentity: %q, leaseDurationSeconds: %d, renewTime: "2100-01-01T00:00:00.000000Z"}
`, key.LeaseName(), metadata, holder, seconds)
}

// marks are what Janus puts on the Lease of a Transaction.
func marks(e *harness.Env, name string) string {
	return fmt.Sprintf("  labels: {app.kubernetes.io/managed-by: janus, %[1]s: %[3]s}\n  annotations: {%[1]s: %[2]s/%[3]s}",
		api.TransactionKey, e.Namespace, name)
}

// An administrator has taken a Transaction away by force; nothing of Janus knows that it had a lock.
func TestTheLockOfATransactionThatIsGoneIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	for what, holder := range map[string]string{"gone": "gone", "another-of-its-name": "there"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Apply(fixture.AB)
			e.Submit("there", "dryRun: true\n"+patchA)
			e.Apply(leaseFor(e, e.Namespace+"/"+holder+"/2f0c8bd2-0000-4000-8000-000000000000", marks(e, holder), 3600))
			e.Start()
			txn := e.Run("txn", patchA)
			assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			e.NothingLeft("txn")
		})
	}
}

// The lock of a Transaction that runs is waited for, and so is that of a tool whose name for
// itself looks like that of a Transaction.
func TestALockIsWaitedForUnlessItsHolderIsKnownToHaveEnded(t *testing.T) {
	t.Parallel()
	for what, lock := range map[string]func(e *harness.Env, running *api.Transaction) string{
		"running": func(e *harness.Env, running *api.Transaction) string {
			return leaseFor(e, api.HolderOf(running), marks(e, running.Name), 4)
		},
		"another-tool": func(e *harness.Env, _ *api.Transaction) string {
			return leaseFor(e, "ci/deploy/1234", "  labels: {}", 4)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Apply(fixture.AB)
			e.Submit("suspended", "suspend: true\n"+patchA)
			e.Start()
			running := e.Await("suspended", "to be suspended", func(txn *api.Transaction) bool { return txn.Status.SuspendTime != nil })
			require.False(t, running.Status.Phase.Terminal())
			e.Apply(lock(e, running))
			began := time.Now()
			e.Submit("txn", patchA)
			e.Await("txn", "waiting for the lock", func(txn *api.Transaction) bool {
				_, reason, _ := harness.Condition(txn, api.ConditionLocked)
				return reason == errclass.LockHeld
			})
			txn := e.Ended("txn")
			assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			assert.Greater(t, time.Since(began), 4*time.Second)
		})
	}
}
