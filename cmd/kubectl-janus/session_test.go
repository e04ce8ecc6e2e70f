package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "janus.io/janus/api/v1alpha1"
)

// Times are kept by the second, so that two Transactions may have been created at the same.
func TestOfTheSameSecondTheOneThatWasWrittenLastIsLater(t *testing.T) {
	of := func(version string) *api.Transaction {
		return &api.Transaction{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	assert.Negative(t, byVersion(of("99"), of("100")))
	assert.Positive(t, byVersion(of("100"), of("99")))
	assert.Zero(t, byVersion(of("x"), of("100")), "what cannot be compared is not ordered by it")
}

// A command that looks up a hundred objects would wait for most of its time.
func TestNoCommandIsSlowedDownByItsOwnClient(t *testing.T) {
	s := newSession(genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard})
	server, empty := "https://127.0.0.1:1", filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	s.flags.APIServer, s.flags.KubeConfig = &server, &empty
	config, err := s.flags.ToRESTConfig()
	require.NoError(t, err)
	assert.Negative(t, config.QPS)
	assert.Nil(t, config.RateLimiter)
	client, err := s.kube()
	require.NoError(t, err)
	assert.Nil(t, client.CoreV1().RESTClient().GetRateLimiter())
}
