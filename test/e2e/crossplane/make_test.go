package crossplane

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/test/crossplane"
)

// What is planned is made by the same command without plan, once someone has agreed.
func TestAChangeIsMadeByOneCommand(t *testing.T) {
	w := newWorld(t)
	w.push("family", "v1.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.push("store", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	const as = " --service-account installer --crossplane-version v2.1.3"

	said := w.refused(1, "kubectl janus package install %s:v1.0.0"+as+" </dev/null", w.source("bucket"))
	assert.Contains(t, said, "+ Provider acme-family: v1.0.0 comes")
	assert.Contains(t, said, "Make these changes? [y/N]")
	assert.Contains(t, said, "nobody answered, and nothing is changed: set --yes where nobody can be asked")
	said = w.refused(1, "echo no | kubectl janus package install %s:v1.0.0"+as, w.source("bucket"))
	assert.Contains(t, said, "error: nothing is changed")
	assert.Nil(t, w.provider("acme-bucket"))
	said = w.refused(1, "kubectl janus package install %s:v1.0.0 --crossplane-version v2.1.3 --yes", w.source("bucket"))
	assert.Contains(t, said, "no ServiceAccount is named: set --service-account to the one that makes the changes")

	said = w.types("echo y | kubectl janus package install %s:v1.0.0"+as+" --wait --timeout 2m", w.source("bucket"))
	assert.Contains(t, said, "committed")
	assert.True(t, w.healthy("acme-bucket") && w.healthy("acme-family"))
	assert.Contains(t, w.types("kubectl janus package install %s:v1.0.0"+as+" --yes", w.source("bucket")), "NothingToDo")

	said = w.refused(1, "kubectl janus package delete acme-family --service-account installer --yes")
	assert.Contains(t, said, "error: HasDependents: ")
	assert.Contains(t, said, "nothing is changed: see above what stands in the way")

	w.types("kubectl janus package replace acme-bucket %s:v1.0.0"+as+" --yes --wait --timeout 2m", w.source("store"))
	assert.True(t, w.healthy("acme-store") && w.controls("acme-store", "buckets.acme.io"))
	w.types("kubectl delete provider acme-bucket --wait")
	w.types("kubectl janus package delete acme-store acme-family --service-account installer --yes --wait --timeout 2m")
	w.until("no packages are left", func() bool { return w.provider("acme-store") == nil && w.provider("acme-family") == nil })
}
