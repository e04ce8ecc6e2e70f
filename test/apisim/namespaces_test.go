package apisim_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func (p *pair) put(label, method, path, contentType, query string, body object) {
	p.t.Helper()
	p.both(label, operation{method: method, path: path, contentType: contentType, query: query, agent: "tester", body: func(*side) any { return body }})
}

// Nothing can be created in a namespace that is missing or on its way out, and what
// is in it goes with it.
func TestTheModelEndsNamespacesAsTheRealServerDoes(t *testing.T) {
	p := newPair(t)
	p.begin()
	name := "ends-" + p.namespace
	home := "/api/v1/namespaces/" + name
	settings := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a", "finalizers": []any{"example.com/wait"}}}
	lease := object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": object{"name": "l"}, "spec": object{}}
	leases := "/apis/coordination.k8s.io/v1/namespaces/" + name + "/leases"

	p.put("missing namespace, create", http.MethodPost, home+"/configmaps", asJSON, "", settings)
	p.put("missing namespace, apply", http.MethodPatch, home+"/configmaps/a", asApply, "fieldManager=x", settings)
	p.put("missing namespace, put", http.MethodPut, leases+"/l", asJSON, "", lease)
	p.put("missing namespace, patch", http.MethodPatch, home+"/configmaps/a", asMerge, "", object{})
	p.put("missing namespace, delete", http.MethodDelete, home+"/configmaps/a", asJSON, "", object{})
	p.put("missing namespace, read", http.MethodGet, home+"/configmaps/a", "", "", nil)
	p.put("create", http.MethodPost, "/api/v1/namespaces", asJSON, "", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name, "labels": object{"a": "b"}}})
	p.put("create again", http.MethodPost, "/api/v1/namespaces", asJSON, "", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}})
	p.put("patch", http.MethodPatch, home, asMerge, "", object{"metadata": object{"labels": object{"a": nil, "kubernetes.io/metadata.name": "other"}}})
	p.put("apply", http.MethodPatch, home, asApply, "fieldManager=x&force=true", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name, "labels": object{"c": "d"}}})
	p.put("content", http.MethodPost, home+"/configmaps", asJSON, "", settings)
	p.put("wrong uid", http.MethodDelete, home, asJSON, "", object{"preconditions": object{"uid": "11111111-2222-4333-8444-555555555555"}})
	p.put("wrong version", http.MethodDelete, home, asJSON, "", object{"preconditions": object{"resourceVersion": "1"}})
	p.put("dry run", http.MethodDelete, home, asJSON, "", object{"dryRun": []any{"All"}})
	// The answer to a deletion is not compared: the namespace controller may have come first.
	for _, s := range []*side{p.real, p.model} {
		a := s.send(t, operation{method: http.MethodDelete, path: home, agent: "tester"})
		require.Equal(t, http.StatusOK, a.code)
	}
	p.put("on its way out, create", http.MethodPost, home+"/configmaps", asJSON, "", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "b"}})
	p.put("on its way out, create again", http.MethodPost, home+"/configmaps", asJSON, "", settings)
	p.put("on its way out, apply", http.MethodPatch, home+"/configmaps/b", asApply, "fieldManager=x", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "b"}})
	p.put("on its way out, put", http.MethodPut, leases+"/l", asJSON, "", lease)
	p.server.Collect()
	state := func(s *side) string {
		out := ""
		for _, path := range []string{home, home + "/configmaps/a"} {
			a := s.send(t, operation{method: http.MethodGet, path: path})
			obj, _ := a.raw.(object)
			m := metadataOf(obj)
			out += fmt.Sprint(a.code, m["finalizers"], m["deletionTimestamp"] != nil, " ")
		}
		return out
	}
	settled := func() bool { return state(p.real) == state(p.model) }
	require.Eventually(t, settled, 20*time.Second, 50*time.Millisecond, "waiting: %s", state(p.model))
	for _, s := range []*side{p.real, p.model} {
		a := s.send(t, operation{method: http.MethodPatch, path: home + "/configmaps/a", contentType: asMerge, agent: "tester", body: func(*side) any { return object{"metadata": object{"finalizers": nil}} }})
		require.Equal(t, http.StatusOK, a.code)
	}
	p.server.Collect()
	require.Nil(t, p.server.Get(namespaceResource, "", name), "the model keeps the namespace")
	require.Eventually(t, settled, 30*time.Second, 50*time.Millisecond, "gone: %s", state(p.model))
}
