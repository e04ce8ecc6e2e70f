package crossplane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/crossplane"
)

const size = `{type: object, properties: {size: {type: integer}}}`

func TestAProviderIsInstalledWithItsDependency(t *testing.T) {
	w := newWorld(t)
	w.push("family", "v1.0.0", "Config", size)
	w.push("family", "v1.1.0", "Config", size)
	w.push("family", "v2.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0,<v2.0.0"))

	shown := w.refused(1, "kubectl janus package plan install %s:v1.0.0 --service-account installer --crossplane-version v2.1.3", w.source("bucket"))
	t.Log(shown)
	assert.Contains(t, shown, "+ Provider acme-family: v1.1.0 comes")

	w.committed("install %s:v1.0.0", w.source("bucket"))
	require.NotNil(t, w.provider("acme-family"))
	require.Equal(t, w.source("family")+":v1.1.0", w.Value("pkg.crossplane.io/v1 Provider/acme-family", "spec", "package"))
	require.NotNil(t, w.Object("apiextensions.k8s.io/v1 CustomResourceDefinition/buckets.acme.io"))
	t.Log(w.types("kubectl janus package tree; kubectl janus package list"))
}
