package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// afterwards has every creation reach the API server, and then something else become of
// the reply.
func afterwards(become func(*http.Request) (*http.Response, error)) func(http.RoundTripper) http.RoundTripper {
	return func(real http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			reply, err := real.RoundTrip(r)
			if err != nil || r.Method != http.MethodPost {
				return reply, err
			}
			_ = reply.Body.Close()
			return become(r)
		})
	}
}

// creates creates a Transaction by way of a wrapped transport, and returns the names of
// those that are there then, and the error.
func creates(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper, metadata map[string]any) ([]string, error) {
	t.Helper()
	e := harness.New(t)
	s := newSession(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: io.Discard, ErrOut: io.Discard})
	s.flags.KubeConfig = &testcluster.Shared(t).Kubeconfig
	s.flags.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c = unlimited(rest.CopyConfig(c))
		c.Wrap(wrap)
		return c
	})
	metadata["namespace"] = e.Namespace
	_, err := s.create(t.Context(), draft{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": "Transaction", "metadata": metadata,
		"spec": map[string]any{"serviceAccountName": "deployer", "changes": []any{map[string]any{
			"type": "Delete", "target": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"},
		}}},
	}}})
	list, listing := e.Dynamic.Resource(api.Resource).Namespace(e.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, listing)
	var there []string
	for _, u := range list.Items {
		there = append(there, u.GetNamespace()+"/"+u.GetName())
	}
	return there, err
}

func TestAfterALostReplyItIsSaidWhatToLookFor(t *testing.T) {
	lost := afterwards(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset by peer") })
	for name, metadata := range map[string]map[string]any{
		"the name is made up": {"generateName": "run-"},
		"the name was given":  {"name": "release"},
	} {
		t.Run(name, func(t *testing.T) {
			there, err := creates(t, lost, metadata)
			require.Error(t, err)
			require.Len(t, there, 1)
			namespace, made, _ := strings.Cut(there[0], "/")
			require.ErrorContains(t, err, "create Transaction "+there[0]+": ")
			assert.ErrorContains(t, err, "connection reset by peer; it may have been created all the same, see: kubectl janus get "+made+" --namespace "+namespace)
		})
	}
}

func TestARequestThatIsSentAgainMakesNoSecondTransaction(t *testing.T) {
	// client-go sends it again after such an answer.
	unavailable := afterwards(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			Status: "503 Service Unavailable", StatusCode: http.StatusServiceUnavailable, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Retry-After": {"0"}}, Body: http.NoBody, Request: r,
		}, nil
	})
	once := false
	there, err := creates(t, func(real http.RoundTripper) http.RoundTripper {
		spoiled := unavailable(real)
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && !once {
				once = true
				return spoiled.RoundTrip(r)
			}
			return real.RoundTrip(r)
		})
	}, map[string]any{"generateName": "run-"})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	require.ErrorContains(t, err, "already exists; it may have been created all the same", "and not that no name could be made up")
	require.Len(t, there, 1)
	_, made, _ := strings.Cut(there[0], "/")
	assert.ErrorContains(t, err, "it may have been created all the same, see: kubectl janus get "+made)
}

func TestWhatWasInterruptedIsNamedToo(t *testing.T) {
	interrupted := afterwards(func(*http.Request) (*http.Response, error) { return nil, context.Canceled })
	there, err := creates(t, interrupted, map[string]any{"generateName": "run-"})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, there, 1)
	_, made, _ := strings.Cut(there[0], "/")
	var said bytes.Buffer
	assert.Equal(t, exitOther, exitCode(err, &said))
	assert.Contains(t, said.String(), "kubectl janus get "+made)
}

func TestWhatWasNotSentWasNotCreated(t *testing.T) {
	refused := func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
	}
	there, err := creates(t, refused, map[string]any{"generateName": "run-"})
	require.ErrorContains(t, err, "connection refused")
	assert.NotContains(t, err.Error(), "may have been created")
	assert.Empty(t, there)
}
