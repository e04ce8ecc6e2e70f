package openapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	smd "sigs.k8s.io/structured-merge-diff/v4/schema"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
	"sigs.k8s.io/yaml"

	"janus.io/janus/test/testcluster"
)

// wire is a transport that counts the requests, and may answer them itself.
type wire struct {
	next http.RoundTripper

	mu      sync.Mutex
	index   int
	schemas int
	hold    func()
	instead answer
}

// answer is what a test lets the wire say: a code and a body, or an error.
type answer func(*http.Request) (code int, body string, err error)

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	switch {
	case req.URL.Path == "/openapi/v3":
		w.index++
	case strings.HasPrefix(req.URL.Path, "/openapi/v3/"):
		w.schemas++
	}
	hold, instead := w.hold, w.instead
	w.mu.Unlock()
	if hold != nil {
		hold()
	}
	if instead == nil {
		return w.next.RoundTrip(req)
	}
	code, body, err := instead(req)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

// answer makes the wire answer by itself, or pass requests on if a is nil.
func (w *wire) answer(a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instead = a
}

// requests says how many there were since it was last called.
func (w *wire) requests() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.index, w.schemas = 0, 0 }()
	return fmt.Sprintf("%d of the index, %d of schemas", w.index, w.schemas)
}

// fixture is a Types on a cluster, with everything that a test may turn.
type fixture struct {
	*Types
	wire  *wire
	clock *testclock.FakePassiveClock
	logs  *observer.ObservedLogs
}

func (f *fixture) pass(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

func newFixture(t testing.TB, config *rest.Config) *fixture {
	t.Helper()
	f := &fixture{wire: &wire{}, clock: testclock.NewFakePassiveClock(time.Unix(1_000_000, 0))}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		f.wire.next = next
		return f.wire
	})
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	core, logs := observer.New(zap.DebugLevel)
	f.logs = logs
	f.Types = New(client.OpenAPIV3(), f.clock, zap.New(core), 0)
	return f
}

func onCluster(t testing.TB) *fixture {
	t.Helper()
	return newFixture(t, testcluster.Shared(t).Config())
}

func (f *fixture) must(t testing.TB, gvk schema.GroupVersionKind) typed.ParseableType {
	t.Helper()
	pt, err := f.Of(t.Context(), gvk)
	require.NoError(t, err)
	return pt
}

// at goes down a type by field names, and by [] into what a list or a map holds.
func at(t testing.TB, pt typed.ParseableType, path string) smd.Atom {
	t.Helper()
	atom, ok := pt.Schema.Resolve(pt.TypeRef)
	require.True(t, ok, "the type itself")
	for step := range strings.FieldsSeq(strings.ReplaceAll(path, ".", " ")) {
		var ref smd.TypeRef
		switch field, found := fieldOf(atom, step); {
		case found:
			ref = field.Type
		case step == "[]" && atom.List != nil:
			ref = atom.List.ElementType
		case step == "[]" && atom.Map != nil:
			ref = atom.Map.ElementType
		default:
			t.Fatalf("there is no %s on the way to %s", step, path)
		}
		atom, ok = pt.Schema.Resolve(ref)
		require.True(t, ok, "%s on the way to %s", step, path)
	}
	return atom
}

func fieldOf(atom smd.Atom, name string) (smd.StructField, bool) {
	if atom.Map == nil {
		return smd.StructField{}, false
	}
	return atom.FindField(name)
}

// describe says what a type is in a few words.
func describe(a smd.Atom) string {
	switch {
	case a.Scalar != nil && a.List != nil && a.Map != nil:
		return "anything"
	case a.List != nil && len(a.Keys) > 0:
		return "list by " + strings.Join(a.Keys, "+")
	case a.List != nil && a.List.ElementRelationship == smd.Associative:
		return "set"
	case a.List != nil:
		return "atomic list"
	case a.Map != nil && a.Map.ElementRelationship == smd.Atomic:
		return "atomic map"
	case a.Map != nil:
		return "map"
	case a.Scalar != nil:
		return string(*a.Scalar)
	}
	return "nothing"
}

func decode(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &u.Object))
	return u
}

func dynamicClient(t testing.TB) dynamic.Interface {
	t.Helper()
	config := testcluster.Shared(t).Config()
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return client
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// groupOf returns an API group for the test alone, however often it runs.
func groupOf(t testing.TB) string {
	t.Helper()
	return testcluster.Namespace(t) + ".janus.io"
}

// crd makes a CRD of a kind.
func crd(t testing.TB, group, kind, schemaOfSpec string) *unstructured.Unstructured {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	return decode(t, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[2]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: %[4]s}
`, group, plural, kind, schemaOfSpec))
}

// install creates a CRD of a kind in a group of its own, and removes it with the test.
func install(t testing.TB, group, kind, schemaOfSpec string) *unstructured.Unstructured {
	t.Helper()
	client := dynamicClient(t).Resource(crds)
	made, err := client.Create(t.Context(), crd(t, group, kind, schemaOfSpec), metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Delete(context.Background(), made.GetName(), metav1.DeleteOptions{}) })
	return made
}

// within waits until a condition holds, and fails the test if it takes longer.
func within(t testing.TB, limit time.Duration, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("not within %s", limit)
		}
	}
}

// awaitSchema waits until the cluster publishes a schema of a kind.
func (f *fixture) awaitSchema(t testing.TB, gvk schema.GroupVersionKind) {
	t.Helper()
	within(t, 20*time.Second, func() bool {
		f.pass(indexLife + 1)
		return f.must(t, gvk).Schema != typed.DeducedParseableType.Schema
	})
}
