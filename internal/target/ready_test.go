package target

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"janus.io/janus/internal/errclass"
)

// What an API server refuses counts if it is ready, and if nobody can tell.
func TestARefusalIsBelievedOfAServerThatIsReady(t *testing.T) {
	for name, tt := range map[string]struct {
		readyz []int // each time that it is asked
		class  errclass.Class
		reason string
	}{
		"ready":                     {[]int{http.StatusOK, http.StatusOK}, errclass.Terminal, errclass.AccessDenied},
		"not ready":                 {[]int{http.StatusInternalServerError}, errclass.Retryable, errclass.TooManyRequests},
		"overloaded":                {[]int{http.StatusServiceUnavailable}, errclass.Retryable, errclass.TooManyRequests},
		"ready, then restarted":     {[]int{http.StatusOK, http.StatusInternalServerError}, errclass.Retryable, errclass.TooManyRequests},
		"a proxy keeps the path":    {[]int{http.StatusNotFound, http.StatusNotFound}, errclass.Terminal, errclass.AccessDenied},
		"the question is forbidden": {[]int{http.StatusForbidden, http.StatusForbidden}, errclass.Terminal, errclass.AccessDenied},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []*http.Request
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == readyPath {
					if asked = append(asked, req); assert.LessOrEqual(t, len(asked), len(tt.readyz)) {
						w.WriteHeader(tt.readyz[len(asked)-1])
					}
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				_ = json.NewEncoder(w).Encode(metav1.Status{
					TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "carla may not",
				})
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL, QPS: -1, BearerToken: "secret", Impersonate: rest.ImpersonationConfig{UserName: "carla"}}
			config.Wrap(Transport)
			client, err := dynamic.NewForConfig(config)
			require.NoError(t, err)
			err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).
				Namespace("shop").Delete(t.Context(), "a", metav1.DeleteOptions{})
			require.ErrorContains(t, err, "carla may not")
			class, reason := errclass.Classify(err)
			assert.Equal(t, tt.class, class)
			assert.Equal(t, tt.reason, reason)
			require.Len(t, asked, len(tt.readyz))
			for _, req := range asked {
				assert.Equal(t, "Bearer secret", req.Header.Get("Authorization"))
				assert.Empty(t, req.Header.Get("Impersonate-User"), "an API server that knows no roles would refuse this one too")
			}
		})
	}
}

// An API server may become ready between its refusal and its answer to that question. It is
// asked the same again, and what it says then counts.
func TestARefusalIsNotBelievedOfAServerThatHasJustBecomeReady(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		assert.NoError(t, err)
		got = append(got, req.Method+" "+req.URL.Path+" "+req.Header.Get("Impersonate-User")+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		switch len(got) {
		case 1:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "code": 403, "reason": "Forbidden", "message": "clusterrole not found"}`)
		case 3:
			_, _ = io.WriteString(w, `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}`)
		}
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: -1, Impersonate: rest.ImpersonationConfig{UserName: "carla"}}
	config.Wrap(Transport)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	made, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).
		Namespace("shop").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data": {"b": "c"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	assert.Equal(t, "a", made.GetName())
	patch := `PATCH /api/v1/namespaces/shop/configmaps/a carla {"data": {"b": "c"}}`
	assert.Equal(t, []string{patch, "GET /readyz  ", patch}, got)
}

// A request that cannot be sent again is not refused for good: anyone who asked sends another.
func TestARefusalOfWhatCannotBeSentAgainIsNotBelieved(t *testing.T) {
	sent := 0
	answer := roundTripper(func(req *http.Request) (*http.Response, error) {
		sent++
		code := http.StatusForbidden
		if req.URL.Path == readyPath {
			code = http.StatusOK
		}
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/", io.MultiReader(bytes.NewBufferString("once")))
	require.NoError(t, err)
	resp, err := (&onlyReady{answer}).RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	assert.Equal(t, 2, sent)
}

// Who is refused and then cannot ask has met a server that has gone. What it had said is
// told, in whatever encoding it came.
func TestARefusalIsNotBelievedOfAServerThatHasGone(t *testing.T) {
	var said bytes.Buffer
	refusal := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "carla may not"}
	require.NoError(t, protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(refusal, &said))
	gone := roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == readyPath {
			return nil, io.ErrUnexpectedEOF
		}
		return &http.Response{StatusCode: http.StatusForbidden, Body: io.NopCloser(&said), Request: req}, nil
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/api/v1/namespaces/shop/configmaps/a", http.NoBody)
	require.NoError(t, err)
	resp, err := Transport(gone).RoundTrip(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	assert.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	assert.Equal(t, "1", resp.Header.Get("Retry-After"))
	var told metav1.Status
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&told))
	assert.Equal(t, "the API server is not ready yet, and refuses what it may allow later: carla may not", told.Message)
}

// A review of rights that says no is asked about in the same way, as Janus itself.
func TestADenialIsBelievedOfAServerThatIsReady(t *testing.T) {
	for name, tt := range map[string]struct {
		readyz int // 0: the connection breaks
		ready  bool
	}{
		"ready":                  {http.StatusOK, true},
		"a proxy keeps the path": {http.StatusNotFound, true},
		"not ready":              {http.StatusInternalServerError, false},
		"gone":                   {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := &rest.Config{Host: "https://api.example", QPS: -1}
			config.Wrap(func(http.RoundTripper) http.RoundTripper {
				return roundTripper(func(req *http.Request) (*http.Response, error) {
					assert.Equal(t, readyPath, req.URL.Path)
					assert.Empty(t, req.Header.Get("Impersonate-User"))
					if tt.readyz == 0 {
						return nil, io.ErrUnexpectedEOF
					}
					return &http.Response{StatusCode: tt.readyz, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
				})
			})
			kube, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			err = (&Identity{core: kube.CoreV1()}).Ready(t.Context())
			if tt.ready {
				require.NoError(t, err)
				return
			}
			class, reason := errclass.Classify(err)
			assert.Equal(t, errclass.Retryable, class)
			assert.Equal(t, errclass.ServerUnavailable, reason)
		})
	}
}
