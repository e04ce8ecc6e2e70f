package crossplane

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/internal/registries"
	"janus.io/janus/packages/controller"
	"janus.io/janus/packages/controller/progress"
	"janus.io/janus/test/crossplane"
	"janus.io/janus/test/xpkg"
)

// noSize is a schema of a spec that drops the size.
const noSize = `{type: object, properties: {color: {type: string}}}`

// mine is a custom resource that has a size.
const mine = "apiVersion: acme.io/v1\nkind: Bucket\nmetadata: {name: mine}\nspec: {size: 3}\n"

// sized is the size that a Bucket has; nil for none.
func (w *world) sized(name string) any {
	w.t.Helper()
	size, _, err := unstructured.NestedFieldNoCopy(w.Object("acme.io/v1 Bucket/"+name).Object, "spec", "size")
	require.NoError(w.t, err)
	return size
}

// What is refused says what would be lost; with allow it is done, and what was said comes true.
func TestWhatIsAllowedIsDone(t *testing.T) {
	w := newWorld(t)
	w.startPackages()
	w.push("bucket", "v1.0.0", "Bucket", size)
	w.push("bucket", "v1.1.0", "Bucket", noSize)
	w.submit("install", install("acme-bucket", w.source("bucket")+":v1.0.0"))
	require.Regexp(t, "^True ", says(w.over("install"), api.Ready))
	w.Served("acme.io/v1 Bucket")
	w.Apply(mine)
	uid := w.Object("acme.io/v1 Bucket/mine").GetUID()
	tag := func() string { return w.Value("pkg.crossplane.io/v1 Provider/acme-bucket", "spec", "package") }

	narrower := install("acme-bucket", w.source("bucket")+":v1.1.0")
	w.submit("narrow", "allow: {dataLoss: true, downgrade: true}, "+narrower)
	assert.Regexp(t, `^False SchemaIncompatible: .* harms 1 of 1 custom resource: mine \(loses spec.size\) \(spec.allow.schemaNarrowing lets it pass\)`, says(w.over("narrow"), api.Validated))
	assert.Equal(t, w.source("bucket")+":v1.0.0", tag())
	assert.EqualValues(t, 3, w.sized("mine"))

	w.submit("narrow-allowed", "allow: {schemaNarrowing: true}, "+narrower)
	p := w.over("narrow-allowed")
	require.Regexp(t, "^True TransactionComplete", says(p, api.Ready))
	assert.Contains(t, says(p, api.Validated), "SchemaIncompatible: "+w.source("bucket")+" v1.1.0 narrows buckets.acme.io, which harms 1 of 1 custom resource: mine (loses spec.size)", "it says so all the same")
	assert.Equal(t, w.source("bucket")+":v1.1.0", tag())
	w.until("the size is not served any more", func() bool { return w.sized("mine") == nil })
	assert.Equal(t, uid, w.Object("acme.io/v1 Bucket/mine").GetUID())

	older := install("acme-bucket", w.source("bucket")+":v1.0.0")
	w.submit("back", "allow: {dataLoss: true, schemaNarrowing: true}, "+older)
	assert.Regexp(t, `^False Downgrade: .* goes back from v1.1.0 to v1.0.0 \(spec.allow.downgrade lets it pass\)$`, says(w.over("back"), api.Validated))
	assert.Equal(t, w.source("bucket")+":v1.1.0", tag())
	w.submit("back-allowed", "allow: {downgrade: true, schemaNarrowing: true}, "+older)
	require.Regexp(t, "^True TransactionComplete", says(w.over("back-allowed"), api.Ready))
	assert.Equal(t, w.source("bucket")+":v1.0.0", tag())

	w.submit("gone", "allow: {downgrade: true, schemaNarrowing: true}, "+remove(w.source("bucket")))
	assert.Regexp(t, `^False DataLoss: buckets.acme.io goes with .*: delete its 1 custom resource first: mine \(spec.allow.dataLoss lets it pass\)$`, says(w.over("gone"), api.Validated))
	assert.Equal(t, uid, w.Object("acme.io/v1 Bucket/mine").GetUID())
	w.submit("gone-allowed", "allow: {dataLoss: true}, "+remove(w.source("bucket")))
	require.Regexp(t, "^True TransactionComplete", says(w.over("gone-allowed"), api.Ready))
	assert.Nil(t, w.provider("acme-bucket"))
	w.until("the custom resource is gone with its definition", func() bool {
		return w.Object("apiextensions.k8s.io/v1 CustomResourceDefinition/buckets.acme.io") == nil
	})
}

// The flags of the command are the fields of allow.
func TestTheCommandAllowsTheSame(t *testing.T) {
	w := newWorld(t)
	w.push("bucket", "v1.0.0", "Bucket", size)
	w.push("bucket", "v1.1.0", "Bucket", noSize)
	const as = " --service-account installer --crossplane-version v2.1.3 --yes --wait --timeout 2m"
	w.types("kubectl janus package install %s:v1.0.0"+as, w.source("bucket"))
	w.Served("acme.io/v1 Bucket")
	w.Apply(mine)

	said := w.refused(1, "kubectl janus package install %s:v1.1.0 --allow-data-loss --allow-downgrade"+as, w.source("bucket"))
	assert.Contains(t, said, "harms 1 of 1 custom resource: mine (loses spec.size) (--allow-schema-narrowing lets it pass)")
	said = w.types("kubectl janus package install %s:v1.1.0 --allow-schema-narrowing"+as, w.source("bucket"))
	assert.Contains(t, said, "warning: SchemaIncompatible: ")
	assert.NotContains(t, said, "lets it pass")
	w.until("the size is not served any more", func() bool { return w.sized("mine") == nil })

	said = w.refused(1, "kubectl janus package install %s:v1.0.0 --allow-schema-narrowing"+as, w.source("bucket"))
	assert.Contains(t, said, "error: Downgrade: "+w.source("bucket")+" goes back from v1.1.0 to v1.0.0 (--allow-downgrade lets it pass)")
	w.types("kubectl janus package install %s:v1.0.0 --allow-downgrade --allow-schema-narrowing"+as, w.source("bucket"))

	said = w.refused(1, "kubectl janus package delete acme-bucket%s", as)
	assert.Contains(t, said, "delete its 1 custom resource first: mine (--allow-data-loss lets it pass)")
	require.NotNil(t, w.Object("acme.io/v1 Bucket/mine"))
	w.types("kubectl janus package delete acme-bucket --allow-data-loss%s", as)
	w.until("the custom resource is gone with its definition", func() bool {
		return w.Object("apiextensions.k8s.io/v1 CustomResourceDefinition/buckets.acme.io") == nil
	})
}

// The registry is down at the first attempt, and up at the second.
func TestTheSecondAttemptFindsTheRegistryUpAgain(t *testing.T) {
	w := newWorld(t)
	var down atomic.Bool
	w.registry = xpkg.Serve(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			if down.Load() {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(out, r)
		})
	})
	w.startPackagesWith(func(o *controller.Options) {
		o.Policy = progress.Policy{Look: fast.Look, RetryBase: 5 * time.Second, RetryMax: 5 * time.Second}
		o.Patience = registries.Patience{Pull: 10 * time.Second, Stall: 5 * time.Second, Pause: time.Second, First: 100 * time.Millisecond, Attempts: 2}
	})
	w.push("family", "v1.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	down.Store(true)
	w.submit("install-bucket", install("acme-bucket", w.source("bucket")+":v1.0.0"))
	w.until("the first attempt has failed", func() bool { return w.packageTransaction("install-bucket").Status.Failures == 1 })
	down.Store(false)
	p := w.packageTransaction("install-bucket")
	assert.Regexp(t, "^False ImageUnusable: .*"+w.registry.Host, says(p, api.Validated))
	assert.Regexp(t, "^Unknown TransactionInProgress: attempt 1 of 5 has failed, the next begins at ", says(p, api.Ready))
	assert.NotNil(t, p.Status.RetryTime)
	assert.Nil(t, p.Status.TransactionRef)

	p = w.over("install-bucket")
	require.Regexp(t, "^True TransactionComplete", says(p, api.Ready))
	assert.Regexp(t, "^True AllValidationsPassed", says(p, api.Validated))
	assert.EqualValues(t, 1, p.Status.Failures)
	assert.Nil(t, p.Status.RetryTime)
	assert.Len(t, w.compiled("install-bucket"), 1, "the failed attempt made none")
	assert.True(t, w.healthy("acme-bucket") && w.healthy("acme-family"))
}

// kubectl describe shows what has happened; the events are in the namespace default.
func TestKubectlDescribesAPackageTransaction(t *testing.T) {
	w := newWorld(t)
	w.startPackages()
	w.push("bucket", "v1.0.0", "Bucket", size)
	w.submit("install-bucket", install("acme-bucket", w.source("bucket")+":v1.0.0"))
	w.until("it has its turn", func() bool { return w.packageTransaction("install-bucket").Status.TransactionNumber > 0 })
	w.submit("again", install("acme-bucket", w.source("bucket")+":v1.0.0"))
	w.submit("delete-other", remove(w.source("other")))
	for _, name := range []string{"install-bucket", "again", "delete-other"} {
		w.over(name)
	}
	made := w.packageTransaction("install-bucket").Status.TransactionRef.Name
	for name, want := range map[string][]string{
		"install-bucket": {
			"Normal +AllValidationsPassed .*janusd +Pre-flight validation completed successfully",
			"Normal +InstallationInProgress .*janusd +attempt 1: Transaction " + w.Namespace + "/" + made + " makes the change",
			"Normal +TransactionComplete .*janusd +Transaction " + w.Namespace + "/" + made + " has committed",
		},
		"again":        {"Normal +WaitingForLock .*janusd +waiting for PackageTransaction install-bucket", "Normal +TransactionComplete .*Everything is as it is to be"},
		"delete-other": {"Normal +WaitingForLock ", "Warning +NotFound .*janusd +" + w.source("other") + " is not installed"},
	} {
		w.until(name+" is described", func() bool {
			return strings.Contains(w.types("kubectl describe ptxn %s", name), "Complete ") || name == "delete-other"
		})
		said := w.types("kubectl describe ptxn %s", name)
		_, events, found := strings.Cut(said, "\nEvents:")
		require.True(t, found, said)
		for _, one := range want {
			assert.Regexp(t, one, events, name)
		}
	}
	assert.Contains(t, w.types("kubectl janus tree %s", made), "(owned by PackageTransaction install-bucket)")
	assert.Regexp(t, "Owned by: +PackageTransaction install-bucket", w.types("kubectl janus describe %s", made))
}
