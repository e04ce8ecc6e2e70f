package main

import (
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
