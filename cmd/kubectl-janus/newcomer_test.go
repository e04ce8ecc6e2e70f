package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// elsewhere has the API server asked for a version of the API that it does not serve, which
// it answers as if there were no definition.
func elsewhere(real http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Path = strings.Replace(r.URL.Path, api.GroupVersion.String()+"/", api.GroupVersion.Group+"/v0/", 1)
		return real.RoundTrip(r)
	})
}

func TestWithoutTheDefinitionItIsSaidToInstallJanus(t *testing.T) {
	e := harness.New(t)
	s := newSession(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: io.Discard, ErrOut: io.Discard})
	s.flags.KubeConfig, s.flags.Namespace = &testcluster.Shared(t).Kubeconfig, &e.Namespace
	s.flags.WithWrapConfigFn(func(c *rest.Config) *rest.Config {
		c = unlimited(rest.CopyConfig(c))
		c.Wrap(elsewhere)
		return c
	})
	const want = "the cluster does not serve Transactions; install Janus, and see: kubectl janus check"
	_, err := s.create(t.Context(), draft{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": "Transaction", "metadata": map[string]any{"name": "x", "namespace": e.Namespace},
	}}})
	require.ErrorContains(t, err, want)
	assert.NotContains(t, err.Error(), "may have been created")

	_, _, err = s.list(t.Context(), e.Namespace, metav1.ListOptions{})
	require.ErrorContains(t, err, want)
	_, err = (&showing{session: s}).page(t.Context())
	require.ErrorContains(t, err, want)
}

// paper is written by several goroutines.
type paper struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func TestWhoWaitsForNoJanusdIsToldSoOnce(t *testing.T) {
	out := &paper{}
	l := &lines{out: out, patience: 10 * time.Millisecond}
	l.update(&api.Transaction{})
	l.update(&api.Transaction{})
	const want = "Pending: no janusd has looked at it yet; to see whether one runs: kubectl janus check\n"
	require.Eventually(t, func() bool { return out.String() != "" }, 10*time.Second, time.Millisecond)
	time.Sleep(30 * time.Millisecond)
	assert.Equal(t, want, out.String())
	l.done()
}

// That nobody has looked at a Transaction does not change by itself.
func TestWhoWaitsInVainIsSentToTheCheck(t *testing.T) {
	txn := &api.Transaction{}
	txn.Namespace, txn.Name = "shop", "a"
	unended := &unendedError{last: txn, limit: time.Second}
	require.EqualError(t, unended, "transaction shop/a has not ended after 1s: Pending: no janusd has looked at it yet; to see whether one runs: kubectl janus check")
	require.EqualError(t, unplanned(unended, false), "transaction shop/a has no plan after 1s: Pending: no janusd has looked at it yet; to see whether one runs: kubectl janus check")
	assert.Equal(t, "Transaction shop/a is Pending: none of its 0 changes has been made yet, and what it still makes before it is gone stays. To roll back instead: kubectl janus cancel a -n shop", fate(txn))
	txn.Finalizers = []string{api.Finalizer}
	txn.Status.Phase = api.PhaseCommitting
	txn.Status.Items = []api.Item{{State: api.ItemCommitting}}
	require.EqualError(t, unended, "transaction shop/a has not ended after 1s: Committing; it continues by itself")
	assert.Contains(t, unplanned(unended, false).Error(), "; it is deleted, and a longer --timeout may give one")
	assert.Contains(t, fate(txn), "and the one in flight, which no undo can reverse then")
}

func TestWhileTheChangesAreCheckedJanusdHasLooked(t *testing.T) {
	txn := &api.Transaction{}
	assert.Equal(t, "Pending: no janusd has looked at it yet", sentence(txn))
	txn.Finalizers = []string{api.Finalizer}
	assert.Equal(t, "Pending: janusd checks its changes", sentence(txn))
}

func TestWhoIsHeardInTimeIsNotMissed(t *testing.T) {
	out := &paper{}
	l := &lines{out: out, patience: 50 * time.Millisecond}
	l.update(&api.Transaction{})
	heard := &api.Transaction{}
	heard.Status.Phase = api.PhasePending
	heard.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Reason: "Waiting", Message: "it waits"}}
	l.update(heard)
	time.Sleep(100 * time.Millisecond)
	assert.Equal(t, "Pending (Waiting): it waits\n", out.String())
}
