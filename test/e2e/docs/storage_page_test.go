package docs

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// TestThePageAboutTheStorageVersionIsAsItIs runs docs/storage-version.md, on a cluster of its own: it
// changes the definition.
func TestThePageAboutTheStorageVersionIsAsItIs(t *testing.T) {
	t.Parallel()
	cluster, err := testcluster.Start(testcluster.Options{ControllerManager: true, CRDs: filepath.Join(harness.Root(), "deploy", "crd")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.Stop()) })
	e := harness.On(t, cluster)
	e.Start()
	const change = "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Create, content: {data: {a: b}}}]"
	release := e.Run("release", change)
	require.Equal(t, api.PhaseCommitted, release.Status.Phase, harness.Describe(release))
	e.Submit("waiting", "suspend: true\n"+change)
	e.Await("waiting", "suspended", func(t *api.Transaction) bool {
		return meta.IsStatusConditionTrue(t.Status.Conditions, api.ConditionSuspended)
	})
	e.RunPage("storage-version.md")
}
