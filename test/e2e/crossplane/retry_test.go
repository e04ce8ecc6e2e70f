package crossplane

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/test/crossplane"
	"janus.io/janus/test/xpkg"
)

// A registry that does not answer costs attempts, and no Transaction. Nothing is changed until it
// is back.
func TestAPackageTransactionOutlastsItsRegistry(t *testing.T) {
	w := newWorld(t)
	w.startPackages()
	var down atomic.Bool
	w.registry = xpkg.Serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if down.Load() {
				http.Error(rw, "it is being repaired", http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(rw, r)
		})
	})
	w.push("bucket", "v1.0.0", "Bucket", size)
	down.Store(true)
	w.submit("install-bucket", "retryLimit: 100, "+install("acme-bucket", w.source("bucket")+":v1.0.0"))
	w.until("an attempt has failed", func() bool { return w.packageTransaction("install-bucket").Status.Failures > 0 })
	p := w.packageTransaction("install-bucket")
	assert.Regexp(t, "^False .*"+w.source("bucket"), says(p, api.Validated), "it says which image cannot be read")
	assert.Regexp(t, "^Unknown TransactionInProgress: attempt [0-9]+ of 100 has failed, the next begins at ", says(p, api.Ready))
	assert.Empty(t, w.compiled("install-bucket"))
	assert.Nil(t, w.provider("acme-bucket"))

	down.Store(false)
	p = w.over("install-bucket")
	require.Regexp(t, "^True TransactionComplete", says(p, api.Ready))
	assert.Regexp(t, "^True AllValidationsPassed", says(p, api.Validated))
	assert.Nil(t, p.Status.RetryTime)
	assert.Len(t, w.compiled("install-bucket"), 1)
	assert.True(t, w.healthy("acme-bucket"))
}

// Each attempt has a plan of its own: an image that is corrected under its tag is what the next one
// installs.
func TestAPackageTransactionIsTriedAgainWithWhatThereIsThen(t *testing.T) {
	w := newWorld(t)
	w.startPackages()
	w.push("family", "v1.0.0", "Config", size)
	needs := []string{crossplane.Needs(w.source("family"), ">=v1.0.0")}
	stream := crossplane.Stream("Provider", "bucket", needs, crossplane.Definition("Bucket", size))
	w.registry.Push("acme/bucket:v1.0.0", strings.Replace(stream, "\nspec:\n", "\nspec:\n  crossplane: {version: \">=v3.0.0\"}\n", 1))
	w.submit("install-bucket", "retryLimit: 100, "+install("acme-bucket", w.source("bucket")+":v1.0.0"))
	w.until("an attempt has failed", func() bool { return w.packageTransaction("install-bucket").Status.Failures > 0 })
	digest := w.registry.Push("acme/bucket:v1.0.0", stream)

	p := w.over("install-bucket")
	require.Regexp(t, "^True TransactionComplete", says(p, api.Ready))
	assert.Contains(t, p.Status.ProposedLockPackages[len(p.Status.ProposedLockPackages)-1].Version, digest)
	made := w.compiled("install-bucket")
	require.Len(t, made, int(p.Status.Failures)+1, "a Transaction for each attempt")
	phases := map[string]int{}
	for i := range made {
		phases[field(&made[i], "status", "phase")]++
	}
	assert.Equal(t, map[string]int{"RolledBack": int(p.Status.Failures), "Committed": 1}, phases)
	assert.True(t, w.healthy("acme-bucket") && w.healthy("acme-family"))
	assert.Len(t, w.locked(), 2)
	assert.Len(t, w.Names("pkg.crossplane.io/v1 ProviderRevision", "pkg.crossplane.io/package=acme-bucket"), 1, "the revision of an attempt that was rolled back is left")
}
