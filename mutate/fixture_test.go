package mutate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/clock"

	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/target"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// wire counts the requests of the strategies, and can break one.
type wire struct {
	next http.RoundTripper
	mu   sync.Mutex
	log  []string
	// lose is asked about each request before it is sent, by its number since the
	// last reset. Before: it is never sent. After: its answer is lost.
	before, after func(n int, r *http.Request) bool
	// aside is done before a request is sent, by its number.
	aside func(n int)
	// forbidden is the number of the request that is answered by 403, and of all after
	// it; 0 for none.
	forbidden int
	// old is the answer to a request in place of what the server says, by its number.
	old map[int]*unstructured.Unstructured
}

var errLost = errors.New("lost by the test")

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	n := len(w.log)
	w.log = append(w.log, r.Method)
	before, after, aside, forbidden, old := w.before, w.after, w.aside, w.forbidden, w.old[n]
	w.mu.Unlock()
	if old != nil {
		body, err := old.MarshalJSON()
		return &http.Response{
			StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, Body: io.NopCloser(bytes.NewReader(body)),
		}, err
	}
	if aside != nil {
		aside(n)
	}
	if before != nil && before(n, r) {
		return nil, errLost
	}
	if forbidden > 0 && n >= forbidden {
		return &http.Response{
			StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"the right was taken away"}`)),
		}, nil
	}
	answer, err := w.next.RoundTrip(r)
	if err == nil && after != nil && after(n, r) {
		_ = answer.Body.Close()
		return nil, errLost
	}
	return answer, err
}

// requests returns the methods since the last call, and lets everything pass again.
func (w *wire) requests() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := strings.Join(w.log, " ")
	w.log, w.before, w.after, w.aside, w.forbidden, w.old = nil, nil, nil, nil, 0, nil
	return out
}

// set lets the test do something before a request is sent.
func (w *wire) set(aside func(n int)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.aside = aside
}

// refuseNth never sends the n-th request from now on.
func (w *wire) refuseNth(n int) {
	w.requests()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = func(i int, _ *http.Request) bool { return i == n }
}

// loseNth loses the answer to the n-th request from now on.
func (w *wire) loseNth(n int) {
	w.requests()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = func(i int, _ *http.Request) bool { return i == n }
}

// forbidFrom answers the n-th request from now on, and all after it, by 403.
func (w *wire) forbidFrom(n int) {
	w.requests()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forbidden = n
}

// answerOld answers the n-th request from now on by an object that was there before.
func (w *wire) answerOld(n int, obj *unstructured.Unstructured) {
	w.requests()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.old = map[int]*unstructured.Unstructured{n: obj}
}

// env is a namespace in which changes are made and rolled back.
type env struct {
	*harness.Client
	t         *testing.T
	namespace string
	wire      *wire
	dynamic   dynamic.Interface // through the wire
	resolver  *target.Resolver
	types     *openapi.Types
}

func newEnv(t *testing.T) *env {
	t.Helper()
	cluster := testcluster.Shared(t)
	client, err := harness.NewClient(cluster.Config())
	require.NoError(t, err)
	e := &env{Client: client, t: t, namespace: testcluster.Namespace(t), wire: &wire{}}
	config := cluster.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		e.wire.next = next
		return e.wire
	})
	e.dynamic, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	discovery := memory.NewMemCacheClient(client.Kube.Discovery())
	e.types = openapi.New(client.Kube.Discovery().OpenAPIV3(), clock.RealClock{}, zaptest.NewLogger(t), openapi.Patience)
	e.resolver = target.NewResolver(restmapper.NewDeferredDiscoveryRESTMapper(discovery), discovery)
	return e
}

// within waits until something is so.
func (e *env) within(what string, so func() bool) {
	e.t.Helper()
	err := harness.Poll(e.t.Context(), func(context.Context) (bool, error) { return so(), nil })
	require.NoError(e.t, err, "it never was so that %s", what)
}

var widgetsOnce sync.Once

// widgets installs the custom resource of the tests.
func (e *env) widgets() {
	e.t.Helper()
	widgetsOnce.Do(func() {
		crd, err := os.ReadFile(filepath.Join("..", "testdata", "crds", "widgets.yaml"))
		require.NoError(e.t, err)
		require.NoError(e.t, e.ApplyYAML(e.t.Context(), "", string(crd)))
	})
	e.served("Widget", "v1")
}

// served waits until a kind of example.com is served in a version and the schema of it is
// published, which comes later: without one, preparing is to be tried again.
func (e *env) served(kind, version string) {
	e.t.Helper()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: version, Kind: kind}
	e.within(gvk.String()+" is served, and its schema is published", func() bool {
		client, err := e.For(gvk, e.namespace)
		if err != nil {
			return false
		}
		_, err = client.List(e.t.Context(), metav1.ListOptions{Limit: 1})
		if err != nil {
			return false
		}
		_, err = e.types.Of(e.t.Context(), gvk)
		return err == nil
	})
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := harness.Decode(text)
	require.NoError(t, err)
	require.Len(t, objects, 1)
	// Through the decoder of the API machinery: integers stay integers.
	data, err := json.Marshal(objects[0].Object)
	require.NoError(t, err)
	var out unstructured.Unstructured
	require.NoError(t, out.UnmarshalJSON(data))
	return &out
}

// resource is the administrator's own way to an object, past the wire.
func (e *env) resource(obj *unstructured.Unstructured) dynamic.ResourceInterface {
	e.t.Helper()
	client, err := e.For(obj.GroupVersionKind(), e.namespace)
	require.NoError(e.t, err)
	return client
}

// live reads an object; nil if there is none.
func (e *env) live(obj *unstructured.Unstructured) *unstructured.Unstructured {
	e.t.Helper()
	got, err := e.resource(obj).Get(e.t.Context(), obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(e.t, err)
	return got
}

// create makes an object as a person with kubectl would, by an apply of old.
func (e *env) create(text string) *unstructured.Unstructured {
	e.t.Helper()
	obj := parse(e.t, text)
	_, err := e.resource(obj).Apply(e.t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "kubectl", Force: true})
	require.NoError(e.t, err)
	if !hasNamespace(obj) {
		e.t.Cleanup(func() { _ = e.resource(obj).Delete(context.Background(), obj.GetName(), metav1.DeleteOptions{}) })
	}
	return e.age(obj)
}

func hasNamespace(obj *unstructured.Unstructured) bool {
	return !slices.Contains([]string{"ClusterRole", "Namespace", "CustomResourceDefinition"}, obj.GetKind())
}

// longAgo is when the fields of objects were last written before a test began: an
// owner that is given back with another time shows.
var longAgo = metav1.Time{Time: time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)}

// age makes all entries of managedFields old. It takes two writes: the server
// leaves out one that changes nothing but times.
func (e *env) age(obj *unstructured.Unstructured) *unstructured.Unstructured {
	e.t.Helper()
	live := e.live(obj)
	entries := live.GetManagedFields()
	if len(entries) == 0 {
		return live
	}
	for i := range entries {
		entries[i].Time = &longAgo
	}
	passing := metav1.ManagedFieldsEntry{Manager: "passing", Operation: metav1.ManagedFieldsOperationApply, APIVersion: live.GetAPIVersion(),
		Time: &longAgo, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}}
	passing.FieldsV1.SetRawBytes([]byte(`{"f:metadata":{"f:annotations":{"f:passing":{}}}}`))
	e.setManagedFields(live, append(slices.Clone(entries), passing))
	aged := e.setManagedFields(live, entries)
	for _, got := range aged.GetManagedFields() {
		require.True(e.t, got.Time.Equal(&longAgo), "%s has not aged", got.Manager)
	}
	return aged
}

func (e *env) setManagedFields(obj *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	e.t.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": entries}})
	require.NoError(e.t, err)
	got, err := e.resource(obj).Patch(e.t.Context(), obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: "test"})
	require.NoError(e.t, err)
	return got
}

// merge writes fields as another client, by an update.
func (e *env) merge(manager string, obj *unstructured.Unstructured, patch string, subresource ...string) *unstructured.Unstructured {
	e.t.Helper()
	got, err := e.resource(obj).Patch(e.t.Context(), obj.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresource...)
	require.NoError(e.t, err)
	return got
}

// edit writes fields as another client, by a JSON patch.
func (e *env) edit(obj *unstructured.Unstructured, patch string) *unstructured.Unstructured {
	e.t.Helper()
	got, err := e.resource(obj).Patch(e.t.Context(), obj.GetName(), types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(e.t, err)
	return got
}

// apply writes fields as another client, by a forced apply.
func (e *env) apply(manager, text string) *unstructured.Unstructured {
	e.t.Helper()
	obj := parse(e.t, text)
	got, err := e.resource(obj).Apply(e.t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: manager, Force: true})
	require.NoError(e.t, err)
	return got
}

// remove deletes an object and waits until it is gone.
func (e *env) remove(obj *unstructured.Unstructured) {
	e.t.Helper()
	e.askToRemove(obj)
	e.within("it is gone", func() bool { return e.live(obj) == nil })
}

func (e *env) askToRemove(obj *unstructured.Unstructured) {
	e.t.Helper()
	require.NoError(e.t, e.resource(obj).Delete(e.t.Context(), obj.GetName(), metav1.DeleteOptions{}))
}
