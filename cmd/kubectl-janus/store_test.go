package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// runs runs a command, and returns what it has printed.
func runs(t *testing.T, e *harness.Env, wrap func(http.RoundTripper) http.RoundTripper, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	s := newSession(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out})
	s.flags.KubeConfig, s.flags.Namespace = &testcluster.Shared(t).Kubeconfig, &e.Namespace
	s.flags.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c = unlimited(rest.CopyConfig(c))
		if wrap != nil {
			c.Wrap(wrap)
		}
		return c
	})
	cmd := newRoot(s.IOStreams)
	for _, own := range []*cobra.Command{newRun(s), newRetry(s), newPlan(s), newCheck(s)} {
		for _, other := range cmd.Commands() {
			if other.Name() == own.Name() {
				cmd.RemoveCommand(other)
			}
		}
		cmd.AddCommand(own)
	}
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// writeBundle writes a file with ConfigMaps that cannot be compressed well, and a Secret.
func writeBundle(t *testing.T, n, size int, before ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(strings.Join(before, ""))
	for i := range n {
		noise := make([]byte, size/2)
		for j := range noise {
			noise[j] = byte(rand.IntN(256)) //nolint:gosec // It hides nothing.
		}
		fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: part-%d}\ndata: {text: %s}\n---\n", i, hex.EncodeToString(noise))
	}
	b.WriteString("apiVersion: v1\nkind: Secret\nmetadata: {name: hidden}\nstringData: {password: hunter2-hunter2}\n")
	file := filepath.Join(t.TempDir(), "bundle.yaml")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}

func (l listing) names() []string {
	var out []string
	for _, kind := range []string{"ConfigMap", "Secret"} {
		out = append(out, l.e.Names("v1 "+kind, api.ContentLabel)...)
	}
	return out
}

// listing lists the objects that hold contents.
type listing struct{ e *harness.Env }

func TestContentThatDoesNotFitIsStoredBesideTheTransaction(t *testing.T) {
	e := harness.New(t)
	e.Start()
	out, err := runs(t, e, nil, "run", "-f", writeBundle(t, 30, 150_000), "--service-account", "deployer", "--name", "large", "--wait", "--timeout", "2m")
	require.NoError(t, err, out)
	txn := e.Transaction("large")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	require.Len(t, txn.Spec.Changes, 31)
	for i, c := range txn.Spec.Changes {
		require.Nil(t, c.Content, "%d", i)
		assert.Equal(t, c.Target.Kind == "Secret", c.ContentFrom.Confidential())
	}
	assert.Len(t, e.Value("ConfigMap/part-7", "data", "text"), 150_000)
	stored := listing{e}.names()
	assert.Subset(t, stored, []string{"large-content-0", "large-content-1"})
	assert.LessOrEqual(t, len(stored), 5, "as few as they fit in: %s", stored)
}

func TestTheContentOfASecretIsNeverInATransactionThatRunMakes(t *testing.T) {
	e := harness.New(t)
	e.Start()
	file := writeBundle(t, 1, 100)
	out, err := runs(t, e, nil, "run", "-f", file, "--service-account", "deployer", "--name", "small", "--wait", "--timeout", "2m")
	require.NoError(t, err, out)
	txn := e.Transaction("small")
	assert.NotNil(t, txn.Spec.Changes[0].Content, "it fits, and is no Secret's")
	assert.Nil(t, txn.Spec.Changes[1].Content)
	assert.Equal(t, []string{"small-content-0"}, listing{e}.names())
	assert.Equal(t, "aHVudGVyMi1odW50ZXIy", e.Value("Secret/hidden", "data", "password"))
}

func TestIfContentCannotBeStoredTheTransactionIsDeleted(t *testing.T) {
	e := harness.New(t)
	e.Start()
	refused := func(real http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") {
				return nil, errors.New("no route to host")
			}
			return real.RoundTrip(r)
		})
	}
	_, err := runs(t, e, refused, "run", "-f", writeBundle(t, 1, 100), "--service-account", "deployer", "--name", "cut")
	require.ErrorContains(t, err, "store the contents of Transaction "+e.Namespace+"/cut: create Secret "+e.Namespace+"/cut-content-0")
	require.ErrorContains(t, err, "it was deleted, and nothing was changed")
	e.Gone("cut")
	assert.Empty(t, listing{e}.names())
	assert.Nil(t, e.Object("ConfigMap/part-0"))
}

func TestARetryHasTheContentsOfItsOwn(t *testing.T) {
	e := harness.New(t)
	e.Refuse()
	e.Start()
	file := writeBundle(t, 1, 100, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: refused-a}\n---\n")
	out, err := runs(t, e, nil, "run", "-f", file, "--service-account", "deployer", "--name", "first", "--wait", "--timeout", "2m")
	require.Error(t, err, out)
	out, err = runs(t, e, nil, "retry", "first", "--name", "again", "--wait", "--timeout", "2m")
	require.Error(t, err, out)
	txn := e.Transaction("again")
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.ElementsMatch(t, []string{"first-content-0", "again-content-0"}, listing{e}.names())
	for i, c := range txn.Spec.Changes {
		if c.Target.Kind == "Secret" {
			assert.Equal(t, "again-content-0", c.ContentFrom.SecretKeyRef.Name)
			assert.Equal(t, api.ItemPrepared, txn.Status.Items[i].State, "its content was read: %s", harness.Describe(txn))
		}
	}
}

// once has the first creation of a Secret reach the API server, and then something else become
// of the reply.
func once(become func(*http.Request) (*http.Response, error)) func(http.RoundTripper) http.RoundTripper {
	var done atomic.Bool
	spoil := afterwards(become)
	return func(real http.RoundTripper) http.RoundTripper {
		spoiled := spoil(real)
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") && done.CompareAndSwap(false, true) {
				return spoiled.RoundTrip(r)
			}
			return real.RoundTrip(r)
		})
	}
}

func TestContentIsStoredOnceThoughItIsSentTwice(t *testing.T) {
	e := harness.New(t)
	e.Start()
	out, err := runs(t, e, once(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			Status: "503 Service Unavailable", StatusCode: http.StatusServiceUnavailable, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Retry-After": {"0"}}, Body: http.NoBody, Request: r,
		}, nil
	}), "run", "-f", writeBundle(t, 1, 100), "--service-account", "deployer", "--name", "twice", "--wait", "--timeout", "2m")
	require.NoError(t, err, out)
	assert.Equal(t, api.PhaseCommitted, e.Transaction("twice").Status.Phase)
	assert.Equal(t, []string{"twice-content-0"}, listing{e}.names())
}

func TestAfterALostReplyAboutContentTheTransactionIsDeleted(t *testing.T) {
	e := harness.New(t)
	_, err := runs(t, e, once(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset by peer") }),
		"run", "-f", writeBundle(t, 1, 100), "--service-account", "deployer", "--name", "lost")
	require.ErrorContains(t, err, "create Secret "+e.Namespace+"/lost-content-0: ")
	require.ErrorContains(t, err, "it was deleted, and nothing was changed")
	e.Gone("lost")
}
