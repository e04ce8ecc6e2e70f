package input

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// removeCRD removes a CRD when a test has ended; it may be gone already.
func removeCRD(e *harness.Env, name string) {
	_ = e.Dynamic.Resource(crds).Delete(context.Background(), name, metav1.DeleteOptions{})
}

// terminating makes a ConfigMap that is being deleted and waits for a finalizer
// until the test ends. The Env's namespace could not go either.
func terminating(t *testing.T, e *harness.Env, name string) {
	t.Helper()
	fixture.Held(t, e, name)
	require.NoError(t, e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// otherNamespace returns the Env in a namespace of its own, where deployer has no
// rights.
func otherNamespace(t *testing.T, e *harness.Env) *harness.Env {
	t.Helper()
	return e.In(testcluster.Namespace(t))
}
