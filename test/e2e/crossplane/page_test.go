package crossplane

import (
	"testing"

	"janus.io/janus/test/crossplane"
)

// TestThePageAboutPackagesIsAsItIs runs docs/packages.md. An ImageConfig leads the names of
// its images to the registry of the test.
func TestThePageAboutPackagesIsAsItIs(t *testing.T) {
	w := newWorld(t)
	w.Apply(`
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: acme}
spec:
  matchImages: [{prefix: xpkg.acme.io/}]
  rewriteImage: {prefix: ` + w.registry.Host + `/}
`)
	w.push("family", "v1.0.0", "Config", size)
	w.push("family", "v1.1.0", "Config", size)
	w.push("family", "v2.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs("xpkg.acme.io/acme/family", ">=v1.0.0,<v2.0.0"))
	w.push("bucket", "v1.1.0", "Bucket", `{type: object, properties: {size: {type: integer, maximum: 5}}}`, crossplane.Needs("xpkg.acme.io/acme/family", ">=v1.0.0"))
	w.TypePage(w.shell, "packages.md")
	w.types("kubectl delete imageconfig acme")
}
