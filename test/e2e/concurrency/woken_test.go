package concurrency

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// A Janus hangs just before it sends a change. Another takes the Transaction over,
// makes that change, is refused a later one, and rolls everything back: the targets are
// again as the request of the first expects them. When it wakes up it must not make the
// change after all.
func TestAJanusThatWakesUpAfterTheRollbackChangesNothing(t *testing.T) {
	t.Parallel()
	for name, change := range secondChanges {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: first}
data: {version: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: second}
data: {version: "1", other: "1"}
`)
			e.Refuse()
			first, second, third := e.Object("ConfigMap/first"), e.Object("ConfigMap/second"), e.Object("ConfigMap/third")
			asleep, awake, wrote := make(chan struct{}), make(chan struct{}), make(chan struct{})
			hang, done := sync.OnceFunc(func() { close(asleep); <-awake }), sync.OnceFunc(func() { close(wrote) })
			e.Start(harness.Acting(harness.Around{Do: func(_ string, item int) {
				if item == 1 {
					hang()
				}
			}}), harness.Recording(harness.Journaling{Refused: func(*api.Transaction) { done() }}))
			e.Submit("txn", `
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: first}
    type: Patch
    content: {data: {version: "2"}}
  - `+change+fixture.RefusedAtCommit)
			<-asleep
			// From then on it has to ask whether it is still up to date.
			late := time.After(1100 * time.Millisecond)
			e.Start()
			txn := e.Ended("txn")
			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))

			<-late
			close(awake)

			<-wrote
			e.Same(first, "ConfigMap/first")
			e.NothingLeft("txn")
			if name == "Delete" {
				assert.Equal(t, second.Object["data"], e.Object("ConfigMap/second").Object["data"])
				return
			}
			e.Same(second, "ConfigMap/second")
			e.Same(third, "ConfigMap/third")
		})
	}
}

// The same, and it is told to end while it hangs: it finishes the step in flight, finds
// that it was overtaken, and lets go of what it has taken in that step.
func TestAJanusThatIsToldToEndAfterItWasOvertakenLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]string{"Committed": fixture.PatchAB, "RolledBack": fixture.PatchAB + fixture.RefusedAtCommit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Apply(fixture.AB)
			e.Refuse()
			asleep, awake := make(chan struct{}), make(chan struct{})
			hang := sync.OnceFunc(func() { close(asleep) })
			slow := e.Start(harness.WithTransport(func(next http.RoundTripper) http.RoundTripper {
				return harness.RoundTrip(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/leases") {
						hang()
						<-awake
					}
					return next.RoundTrip(r)
				})
			}))
			e.Submit("txn", spec)
			<-asleep
			e.Start()
			txn := e.Ended("txn")
			assert.Equal(t, name, string(txn.Status.Phase), harness.Describe(txn))

			slow.Interrupt()
			close(awake)
			slow.Stop()

			e.NothingLeft("txn")
		})
	}
}
