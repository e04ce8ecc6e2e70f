package leasetable

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"janus.io/janus/test/testcluster"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{}) }

// A wire counts the requests of a client, and does something with the next one.
type wire struct {
	next http.RoundTripper

	mu     sync.Mutex
	counts map[string]int
	around func(send func() (*http.Response, error)) (*http.Response, error)
}

// waits is how long a test waits for what must happen, and tick how often it looks.
const waits, tick = time.Minute, time.Millisecond

var errLost = errors.New("the answer was lost")

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.counts[r.Method]++
	around := w.around
	w.around = nil
	w.mu.Unlock()
	if around != nil {
		return around(func() (*http.Response, error) { return w.next.RoundTrip(r) })
	}
	return w.next.RoundTrip(r)
}

// counted returns the numbers of requests since the last call.
func (w *wire) counted() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := w.counts
	w.counts = map[string]int{}
	return counts
}

// on does something with the next request.
func (w *wire) on(around func(send func() (*http.Response, error)) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.around = around
}

// lose has the next request land, and its answer be lost.
func (w *wire) lose() {
	w.on(func(send func() (*http.Response, error)) (*http.Response, error) {
		answer, err := send()
		if err != nil {
			return nil, err
		}
		return nil, errors.Join(errLost, answer.Body.Close())
	})
}

// process is a Client as of a process of its own, and its wire.
func process(t *testing.T) (*Client, *wire) {
	t.Helper()
	config := testcluster.Shared(t).Config()
	tap := &wire{counts: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		tap.next = next
		return tap
	})
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	t.Cleanup(client.CoordinationV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections)
	return New(client.CoordinationV1(), "apart"), tap
}

func lease(name, holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"holder": holder}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(holder), LeaseDurationSeconds: ptr.To[int32](30), LeaseTransitions: ptr.To[int32](0)},
	}
}

// objects are the Leases of a namespace that are objects.
func objects(t *testing.T, c *Client, namespace string) []coordinationv1.Lease {
	t.Helper()
	list, err := c.objects.Leases(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}
