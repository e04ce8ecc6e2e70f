package crossplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/crossplane"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// TestThePageAboutPackagesIsAsItIs runs docs/packages.md. An ImageConfig leads the names of
// its images to the registry of the test.
func TestThePageAboutPackagesIsAsItIs(t *testing.T) {
	w := newWorld(t)
	w.startPackages()
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
	w.TypePage(w.inOurNamespace(), "packages.md")
	w.types("kubectl delete imageconfig acme")
}

// inOurNamespace is a shell in a directory whose examples have the namespace of the test in
// place of theirs.
func (w *world) inOurNamespace() *testcluster.Shell {
	w.t.Helper()
	dir := w.t.TempDir()
	examples, err := filepath.Glob(filepath.Join(harness.Root(), "examples", "packages", "*.yaml"))
	require.NoError(w.t, err)
	require.NoError(w.t, os.MkdirAll(filepath.Join(dir, "examples", "packages"), 0o700))
	for _, path := range examples {
		text, err := os.ReadFile(path)
		require.NoError(w.t, err)
		ours := strings.ReplaceAll(string(text), "namespace: shop", "namespace: "+w.Namespace)
		//nolint:gosec // G703: the files are ours.
		require.NoError(w.t, os.WriteFile(filepath.Join(dir, "examples", "packages", filepath.Base(path)), []byte(ours), 0o600))
	}
	shell, err := testcluster.Shared(w.t).NewShell(w.Namespace, dir)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { assert.NoError(w.t, shell.Close()) })
	require.NoError(w.t, shell.Provide("kubectl-janus", plugin))
	return shell
}
