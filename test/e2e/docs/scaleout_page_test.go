package docs

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// TestThePageAboutScalingOutIsAsItIs runs docs/scale-out.md.
func TestThePageAboutScalingOutIsAsItIs(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	shell := e.Shell()
	e.ProvideJanusd(shell)
	t.Cleanup(func() {
		// If the page was not typed to its end, its processes still run.
		_, err := shell.Run(context.Background(), `kill -9 $(cat "$TMPDIR"/janus-scale-out-*/*.pid) 2>/dev/null || true`)
		assert.NoError(t, err)
	})
	e.TypePage(shell, "scale-out.md")

	for n := 1; n <= 6; n++ {
		e.NothingLeft("retire-" + strconv.Itoa(n))
		assert.Equal(t, "retired", e.Value("ConfigMap/catalogue-"+strconv.Itoa(n), "data", "orders"))
	}
	ranByOneAtATime(t, e)
	leases, err := e.Kube.CoordinationV1().Leases(e.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, leases.Items, 8, "those of the shards")
	for _, lease := range leases.Items {
		assert.Empty(t, *lease.Spec.HolderIdentity, "%s was given back", lease.Name)
	}
}

// ranByOneAtATime wants that no janusd was refused a checkpoint, as one is that runs a
// Transaction at the same time as another.
func ranByOneAtATime(t *testing.T, e *harness.Env) {
	t.Helper()
	requests, err := testcluster.Shared(t).Audit(e.Namespace)
	require.NoError(t, err)
	checkpoints := map[string]int{}
	for _, r := range requests {
		if r.Namespace == e.Namespace && r.Resource == "transactions" && r.Subresource == "status" && strings.HasPrefix(r.UserAgent, "janusd/") {
			assert.Equal(t, http.StatusOK, r.Code, "%s %s at %s", r.Verb, r.RequestURI, r.Received)
			checkpoints[r.Name]++
		}
	}
	assert.Len(t, checkpoints, 6)
}
