package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// Otherwise the first of these API servers would refuse janusd's first write, and the second would
// answer by a watch that janusd cannot read.
func TestJanusdKeepsFromCBORWhateverItsEnvironmentSays(t *testing.T) {
	t.Run("where the API server reads none", func(t *testing.T) { commitsWithTheGatesOfCBOR(t, harness.New(t)) })
	t.Run("where it does", func(t *testing.T) {
		cluster, err := testcluster.Start(testcluster.Options{FeatureGates: "CBORServingAndStorage=true"})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
		commitsWithTheGatesOfCBOR(t, harness.On(t, cluster))
	})
}

func commitsWithTheGatesOfCBOR(t *testing.T, e *harness.Env) {
	t.Helper()
	e.OwnRights()
	e.Apply(targets)
	t.Setenv("KUBE_FEATURE_ClientsAllowCBOR", "true")
	t.Setenv("KUBE_FEATURE_ClientsPreferCBOR", "true")
	startJanusd(t, e)
	e.Submit("deploy", changes)
	committed(t, e, "deploy")
}

// Answers of 128 KiB and more would be compressed, which takes CPU on both sides.
func TestJanusdHasNoAnswerCompressed(t *testing.T) {
	var asked []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Accept-Encoding"))
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{
		"clusters": [{"name": "a", "cluster": {"server": %q, "insecure-skip-tls-verify": true}}],
		"contexts": [{"name": "a", "context": {"cluster": "a"}}], "current-context": "a"}`, server.URL), 0o600))
	_, err := connect(t.Context(), options{kubeconfig: kubeconfig})
	require.Error(t, err, "this is no API server")
	require.NotEmpty(t, asked)
	assert.Empty(t, strings.Join(asked, ""))
}
