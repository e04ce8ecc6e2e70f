package openapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/testcluster"
)

func TestNothingIsAskedForTwice(t *testing.T) {
	f := onCluster(t)
	f.must(t, deployment)
	assert.Equal(t, "1 of the index, 1 of schemas", f.wire.requests(), "cold")
	f.must(t, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"})
	f.pass(indexLife)
	f.must(t, deployment)
	assert.Equal(t, "0 of the index, 0 of schemas", f.wire.requests(), "within the interval")
	f.pass(1)
	f.must(t, deployment)
	f.must(t, deployment)
	assert.Equal(t, "1 of the index, 0 of schemas", f.wire.requests(), "after it")
	f.must(t, configMap)
	assert.Equal(t, "0 of the index, 1 of schemas", f.wire.requests(), "another GroupVersion")
}

func TestAKindWithoutASchemaIsLookedForOnceAndThenWithTheRest(t *testing.T) {
	f := onCluster(t)
	ghost := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Ghost"}
	f.must(t, deployment)
	f.wire.requests()
	f.pass(time.Millisecond)
	f.must(t, ghost)
	assert.Equal(t, "1 of the index, 0 of schemas", f.wire.requests(), "the first time")
	f.pass(time.Millisecond)
	f.must(t, ghost)
	assert.Equal(t, "0 of the index, 0 of schemas", f.wire.requests(), "the second time")
	f.pass(indexLife + 1)
	f.must(t, ghost)
	assert.Equal(t, "1 of the index, 0 of schemas", f.wire.requests(), "later")

	cold := onCluster(t)
	cold.must(t, ghost)
	assert.Equal(t, "1 of the index, 1 of schemas", cold.wire.requests(), "with an index that was read for it")
}

// All of them share one request of each, and the race detector watches them use
// the types: both kinds have an ObjectReference, and one of them overrides it.
func TestManyAskAtTheSameTime(t *testing.T) {
	f := onCluster(t)
	reference := map[string]any{"name": "x", "namespace": "y"}
	objects := map[schema.GroupVersionKind]map[string]any{
		volume:                         {"spec": map[string]any{"claimRef": reference}},
		{Version: "v1", Kind: "Event"}: {"involvedObject": reference},
	}
	var all sync.WaitGroup
	for range 16 {
		for gvk, object := range objects {
			all.Go(func() {
				pt, err := f.Of(t.Context(), gvk)
				if err == nil {
					_, err = fieldsOf(pt, object)
				}
				assert.NoError(t, err)
			})
		}
	}
	all.Wait()
	assert.Equal(t, "1 of the index, 1 of schemas", f.wire.requests())
}

func fieldsOf(pt typed.ParseableType, object map[string]any) (*fieldpath.Set, error) {
	value, err := pt.FromUnstructured(object, typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	return value.ToFieldSet()
}

func TestAServerThatIsAwayIsNoKindWithoutASchema(t *testing.T) {
	ghost := schema.GroupVersionKind{Group: "nowhere.janus.io", Version: "v1", Kind: "Ghost"}
	for name, instead := range map[string]answer{
		"no connection": func(*http.Request) (int, string, error) { return 0, "", errors.New("connection refused") },
		"500":           status(http.StatusInternalServerError, "etcd is gone"),
		"503":           status(http.StatusServiceUnavailable, "starting"),
		"504":           status(http.StatusGatewayTimeout, "timed out"),
		"429":           status(http.StatusTooManyRequests, "slow down"),
		"cut short":     status(http.StatusOK, `{"paths": {"api/v1"`),
		"no JSON":       status(http.StatusOK, "<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			f := onCluster(t)
			failing := func(kinds ...schema.GroupVersionKind) {
				t.Helper()
				for _, gvk := range kinds {
					_, err := f.Of(t.Context(), gvk)
					require.ErrorContains(t, err, "read the schema of "+gvk.String())
					assert.Contains(t, []errclass.Class{errclass.Unknown, errclass.Retryable}, errclass.ClassOf(err))
				}
			}
			f.wire.answer(instead)
			failing(deployment, ghost)

			f.wire.answer(nil)
			f.must(t, configMap)
			f.wire.answer(instead)
			failing(deployment) // The index is there, its document is not.
			f.must(t, configMap)
			f.pass(indexLife + 1)
			failing(configMap, ghost)

			f.wire.answer(nil)
			f.must(t, deployment)
			f.must(t, configMap)
			assert.Empty(t, f.logs.All())
		})
	}
}

func TestWhoeverGivesUpDoesNotStopTheOthers(t *testing.T) {
	f := onCluster(t)
	arrived, goOn := make(chan struct{}), make(chan struct{})
	f.wire.hold = sync.OnceFunc(func() {
		close(arrived)
		<-goOn
	})
	ctx, giveUp := context.WithCancel(t.Context())
	first := make(chan error)
	go func() {
		_, err := f.Of(ctx, deployment)
		first <- err
	}()
	<-arrived
	giveUp()
	err := <-first
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, errclass.Unknown, errclass.ClassOf(err))

	var all sync.WaitGroup
	all.Go(func() { f.must(t, deployment) })
	close(goOn)
	all.Wait()
	assert.Equal(t, "1 of the index, 1 of schemas", f.wire.requests())
}

// status makes an answer of a code, without a Status in it.
func status(code int, body string) answer {
	return func(*http.Request) (int, string, error) { return code, body, nil }
}

// pages answers by path and hash, from what a test puts there. It stands for an
// API server in states that a real one is in for an instant only.
func pages(site map[string]string, otherwise answer) answer {
	return func(req *http.Request) (int, string, error) {
		if body, ok := site[req.URL.Path+req.URL.Query().Get("hash")]; ok {
			return http.StatusOK, body, nil
		}
		return otherwise(req)
	}
}

const xIndex = `{"paths": {"apis/x.io/v1": {"serverRelativeURL": "/openapi/v3/apis/x.io/v1?hash=%s"}}}`

var xKind = schema.GroupVersionKind{Group: "x.io", Version: "v1", Kind: "X"}

func xDocument(fieldType string) string {
	return fmt.Sprintf(`{"components": {"schemas": {"io.x.v1.X": {"type": "object", "properties": {"f": {"type": %q}},
		"x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "X"}]}}}}`, fieldType)
}

func TestADocumentThatHasMovedIsFoundByAFreshIndex(t *testing.T) {
	for name, gone := range map[string]answer{
		"404":                           status(http.StatusNotFound, "404 page not found"),
		"nothing, as kube-openapi does": status(http.StatusOK, ""),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, &rest.Config{Host: "http://nowhere.invalid", QPS: -1})
			site := map[string]string{"/openapi/v3": fmt.Sprintf(xIndex, "A"), "/openapi/v3/apis/x.io/v1A": xDocument("string")}
			f.wire.answer(pages(site, gone))
			assert.Equal(t, "string", describe(at(t, f.must(t, xKind), "f")))

			// The index that we have leads to nothing.
			site["/openapi/v3"] = fmt.Sprintf(xIndex, "B")
			f.pass(indexLife + 1)
			_, err := f.Of(t.Context(), xKind)
			require.ErrorContains(t, err, "the schema is not where the index says")
			assert.Equal(t, errclass.Unknown, errclass.ClassOf(err), "that it is not found must not end anything")
			assert.Equal(t, "2 of the index, 3 of schemas", f.wire.requests())

			f.pass(time.Millisecond)
			site["/openapi/v3"] = fmt.Sprintf(xIndex, "C")
			site["/openapi/v3/apis/x.io/v1C"] = xDocument("boolean")
			assert.Equal(t, "boolean", describe(at(t, f.must(t, xKind), "f")))
			assert.Equal(t, "1 of the index, 2 of schemas", f.wire.requests())
			assert.Empty(t, f.logs.All())
		})
	}
}

// An API server that starts again serves custom resources about a second before
// it publishes their schemas. It is not ready then, but it answers.
func TestAnAPIServerThatStartsAgainCostsNoSchema(t *testing.T) {
	cluster, err := testcluster.Start(testcluster.Options{RestartKilled: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	client, err := dynamic.NewForConfig(cluster.Config())
	require.NoError(t, err)
	_, err = client.Resource(crds).Create(t.Context(), crd(t, "again.openapi.janus.io", "Thing", `{type: object}`), metav1.CreateOptions{})
	require.NoError(t, err)
	thing := schema.GroupVersionKind{Group: "again.openapi.janus.io", Version: "v1", Kind: "Thing"}
	f := newFixture(t, cluster.Config())
	f.awaitSchema(t, thing)
	f.logs.TakeAll()

	require.NoError(t, cluster.Signal(testcluster.APIServer, syscall.SIGKILL))
	within(t, time.Minute, func() bool { return !answers(t, cluster) })
	within(t, time.Minute, func() bool { return answers(t, cluster) })
	unpublished := 0
	within(t, time.Minute, func() bool {
		f.pass(indexLife + 1)
		assert.NotSame(t, typed.DeducedParseableType.Schema, f.must(t, thing).Schema)
		_, published := f.latest.paths[pathOf(thing.GroupVersion())]
		if !published {
			unpublished++
		}
		return published
	})
	assert.NotZero(t, unpublished, "looks at an index without the kind")
	assert.Empty(t, f.logs.All())
}

// answers reports whether the API server gives its index of schemas. It asks once:
// client-go would try again.
func answers(t *testing.T, cluster *testcluster.Cluster) bool {
	t.Helper()
	config := cluster.Config()
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	resp, err := client.Get(config.Host + "/openapi/v3")
	if err != nil {
		return false
	}
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode == http.StatusOK
}

func TestASchemaThatIsNotPublishedAnyMoreStillHolds(t *testing.T) {
	f := newFixture(t, &rest.Config{Host: "http://nowhere.invalid", QPS: -1})
	site := map[string]string{"/openapi/v3": fmt.Sprintf(xIndex, "A"), "/openapi/v3/apis/x.io/v1A": xDocument("string")}
	f.wire.answer(pages(site, status(http.StatusOK, "")))
	before := f.must(t, xKind)
	site["/openapi/v3"] = `{"paths": {}}`
	f.pass(indexLife + 1)
	assert.Equal(t, before.Schema, f.must(t, xKind).Schema)
	assert.Empty(t, f.logs.All())
}
