package target

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// A server that asks to be tried again is asked once for a write, and again for a
// read: client-go does that by itself, and would for writes too.
func TestAWriteIsSentOnceAndAReadIsRepeated(t *testing.T) {
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	for _, code := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		for name, tt := range map[string]struct {
			send   func(dynamic.ResourceInterface) error
			repeat bool
		}{
			"get": {func(c dynamic.ResourceInterface) error {
				_, err := c.Get(t.Context(), "a", metav1.GetOptions{})
				return err
			}, true},
			"list": {func(c dynamic.ResourceInterface) error {
				_, err := c.List(t.Context(), metav1.ListOptions{})
				return err
			}, true},
			"create": {func(c dynamic.ResourceInterface) error {
				_, err := c.Create(t.Context(), obj, metav1.CreateOptions{})
				return err
			}, false},
			"update": {func(c dynamic.ResourceInterface) error {
				_, err := c.Update(t.Context(), obj, metav1.UpdateOptions{})
				return err
			}, false},
			"patch": {func(c dynamic.ResourceInterface) error {
				_, err := c.Patch(t.Context(), "a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
				return err
			}, false},
			"apply": {func(c dynamic.ResourceInterface) error {
				_, err := c.Apply(t.Context(), "a", obj, metav1.ApplyOptions{FieldManager: "x"})
				return err
			}, false},
			"delete": {func(c dynamic.ResourceInterface) error {
				return c.Delete(t.Context(), "a", metav1.DeleteOptions{})
			}, false},
		} {
			t.Run(http.StatusText(code)+" to "+name, func(t *testing.T) {
				var requests atomic.Int32
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if requests.Add(1) > 2 {
						w.WriteHeader(http.StatusNotFound)
						return
					}
					w.Header().Set("Retry-After", "0")
					w.WriteHeader(code)
				}))
				defer server.Close()
				config := &rest.Config{Host: server.URL, QPS: -1}
				config.Wrap(Transport)
				client, err := dynamic.NewForConfig(config)
				require.NoError(t, err)
				require.Error(t, tt.send(client.Resource(configMaps).Namespace("shop")))
				want := int32(1)
				if tt.repeat {
					want = 3
				}
				assert.Equal(t, want, requests.Load())
			})
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// client-go cancels a request that takes too long by the transport at the bottom.
func TestTheTransportBelowCanBeFound(t *testing.T) {
	below := &http.Transport{}
	found := Transport(below)
	for {
		wrapper, ok := found.(utilnet.RoundTripperWrapper)
		if !ok {
			break
		}
		found = wrapper.WrappedRoundTripper()
	}
	assert.Same(t, below, found)
}
