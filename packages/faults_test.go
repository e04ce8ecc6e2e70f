package packages_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	kubetesting "k8s.io/client-go/testing"

	"sigs.k8s.io/yaml"

	"janus.io/janus/internal/registries"
	"janus.io/janus/packages"
	"janus.io/janus/packages/check"
	"janus.io/janus/packages/compile"
	"janus.io/janus/packages/installed"
	"janus.io/janus/test/xpkg"
)

// at fails the nth of some requests; none if it is 0.
type at struct {
	n     int64
	fault string
	seen  atomic.Int64
}

func (a *at) hits() bool { return a.seen.Add(1) == a.n }

// registryFaults are the answers of a registry that is not well.
var registryFaults = map[string]func(w http.ResponseWriter, answer *httptest.ResponseRecorder){
	"says 500": func(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
		w.WriteHeader(http.StatusInternalServerError)
	},
	"says 429": func(w http.ResponseWriter, _ *httptest.ResponseRecorder) { w.WriteHeader(http.StatusTooManyRequests) },
	"says 401": func(w http.ResponseWriter, _ *httptest.ResponseRecorder) { w.WriteHeader(http.StatusUnauthorized) },
	"says 404": func(w http.ResponseWriter, _ *httptest.ResponseRecorder) { w.WriteHeader(http.StatusNotFound) },
	"sends half": func(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", fmt.Sprint(answer.Body.Len()))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
	},
	"sends something else": func(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write([]byte(strings.Repeat("{", answer.Body.Len())))
	},
}

// clusterFaults are the errors of an API server that is not well.
var clusterFaults = map[string]error{
	"is away":      apierrors.NewServiceUnavailable("it is away"),
	"takes long":   apierrors.NewServerTimeout(schema.GroupResource{Resource: "things"}, "get", 1),
	"says no":      apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "a", nil),
	"is not there": apierrors.NewInternalError(context.DeadlineExceeded),
}

// outcome is what came of a plan: an error, findings, or a Transaction.
type outcome struct {
	err         error
	findings    check.Findings
	transaction string
}

// faulty plans what a story asks for, with a fault in the registry or in the cluster, and
// returns how many requests each has had.
func faulty(t *testing.T, file string, registry, cluster *at) outcome {
	t.Helper()
	a, err := txtar.ParseFile(file)
	require.NoError(t, err)
	s, request := read(t, a)
	r := xpkg.Serve(t, func(real http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if request.Method != http.MethodGet && request.Method != http.MethodHead || !registry.hits() {
				real.ServeHTTP(w, request)
				return
			}
			answer := httptest.NewRecorder()
			real.ServeHTTP(answer, request)
			registryFaults[registry.fault](w, answer)
		})
	})
	for ref, stream := range s.images {
		r.Push(strings.TrimPrefix(ref, "xpkg.acme.io/"), stream)
	}
	client, ok := s.cluster.(*fake.FakeDynamicClient)
	require.True(t, ok)
	require.NoError(t, client.Tracker().Add(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "pkg.crossplane.io/v1beta1", "kind": "ImageConfig", "metadata": map[string]any{"name": "acme"},
		"spec": map[string]any{
			"matchImages":  []any{map[string]any{"prefix": "xpkg.acme.io/"}},
			"rewriteImage": map[string]any{"prefix": r.Host + "/"},
		},
	}}))
	client.PrependReactor("*", "*", func(kubetesting.Action) (bool, runtime.Object, error) {
		if cluster.hits() {
			return true, nil, clusterFaults[cluster.fault]
		}
		return false, nil, nil
	})
	planner := packages.Planner{
		Cluster: client, Crossplane: installed.Crossplane{Version: "v2.1.3"},
		Registries: packages.Pulling(client, packages.DefaultNamespace, registries.Patience{Pull: time.Minute, Stall: time.Minute, Attempts: 1}),
	}
	plan, err := planner.Plan(t.Context(), request)
	out := outcome{err: err, findings: plan.Findings}
	if err == nil && len(plan.Findings.Errors()) == 0 {
		made, err := compile.Transaction(plan.Change, options)
		require.NoError(t, err)
		text, err := yaml.Marshal(made)
		require.NoError(t, err)
		out.transaction = string(text)
	}
	return out
}

// Whatever request of a plan fails, there is the plan that there would be otherwise, or none. Where
// an image cannot be read, the plan says of which and why.
func TestAPlanIsTheRightOneOrNone(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	for _, story := range []string{"install", "upgrade", "replace-family", "delete"} {
		file := "testdata/" + story + ".txtar"
		var registry, cluster at
		right := faulty(t, file, &registry, &cluster)
		require.NoError(t, right.err)
		require.NotEmpty(t, right.transaction, right.findings)
		require.Positive(t, cluster.seen.Load())
		if story != "delete" {
			require.Positive(t, registry.seen.Load())
		}
		for fault := range registryFaults {
			for n := range registry.seen.Load() {
				t.Run(fmt.Sprintf("%s/the registry %s at request %d", story, fault, n+1), func(t *testing.T) {
					got := faulty(t, file, &at{n: n + 1, fault: fault}, &at{})
					require.NoError(t, got.err)
					if got.transaction != "" {
						assert.Equal(t, right.transaction, got.transaction)
						return
					}
					require.NotEmpty(t, got.findings.Errors())
					for _, f := range got.findings.Errors() {
						assert.Contains(t, f.Message, "acme/")
					}
				})
			}
		}
		for fault := range clusterFaults {
			for n := range cluster.seen.Load() {
				t.Run(fmt.Sprintf("%s/the cluster %s at request %d", story, fault, n+1), func(t *testing.T) {
					got := faulty(t, file, &at{}, &at{n: n + 1, fault: fault})
					if got.transaction != "" {
						assert.Equal(t, right.transaction, got.transaction)
					}
					assert.True(t, got.err != nil || got.transaction != "" || len(got.findings.Errors()) > 0)
				})
			}
		}
	}
}
