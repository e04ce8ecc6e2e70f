package apisim_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/test/apisim"
)

// A server keeps ten managers that have updated an object, and makes one of the
// oldest when there are more.
func TestTheModelCapsManagersAsTheRealServerDoes(t *testing.T) {
	p := newPair(t)
	p.begin()
	for _, s := range subjects[:3] {
		path := s.collection(p.namespace)
		p.put("create", http.MethodPost, path, asJSON, "fieldManager=m00", object{"apiVersion": s.apiVersion, "kind": s.kind, "metadata": object{"name": "many"}})
		for i := range 14 {
			patch := object{"metadata": object{"labels": object{fmt.Sprintf("l%02d", i): "x"}}}
			p.put(fmt.Sprintf("manager %d", i), http.MethodPatch, path+"/many", asMerge, fmt.Sprintf("fieldManager=m%02d", i+1), patch)
		}
		p.put("apply", http.MethodPatch, path+"/many", asApply, "fieldManager=m15", object{"apiVersion": s.apiVersion, "kind": s.kind, "metadata": object{"labels": object{"l03": "y"}}})
	}
}

// Who may do nothing is told so in the same words.
func TestTheModelForbidsAsTheRealServerDoes(t *testing.T) {
	p := newPair(t)
	p.begin()
	nobody := "system:serviceaccount:" + p.namespace + ":nobody"
	p.server = apisim.New(apisim.Options{CRDs: p.crds, Namespaces: []string{p.namespace}, Allowed: func(a apisim.Access) bool { return a.User != nobody }})
	p.model = newSide(t, "the model", configFor(p.server, ""))
	p.model.forget()
	for _, s := range subjects {
		path := s.collection(p.namespace)
		obj := object{"apiVersion": s.apiVersion, "kind": s.kind, "metadata": object{"name": "a"}}
		for _, o := range []operation{
			{method: http.MethodGet, path: path + "/a"},
			{method: http.MethodGet, path: path},
			{method: http.MethodGet, path: path, query: "watch=true"},
			{method: http.MethodPost, path: path, contentType: asJSON},
			{method: http.MethodPut, path: path + "/a", contentType: asJSON},
			{method: http.MethodPatch, path: path + "/a", contentType: asMerge},
			{method: http.MethodDelete, path: path + "/a", contentType: asJSON},
			{method: http.MethodDelete, path: path, contentType: asJSON},
		} {
			o.agent, o.user = "tester", nobody
			if o.contentType != "" {
				o.body = func(*side) any { return obj }
			}
			p.both("forbidden", o)
		}
	}
	for _, user := range []string{"", nobody} {
		review := operation{method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", contentType: asJSON, agent: "tester", user: user, body: func(*side) any {
			return object{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": object{"resourceAttributes": object{
				"namespace": p.namespace, "verb": "get", "resource": "secrets", "name": "a",
			}}}
		}}
		theirs, ours := p.real.send(t, review), p.model.send(t, review)
		assert.Equal(t, theirs.code, ours.code)
		allowed := func(a answer) any { return a.raw.(object)["status"].(object)["allowed"] }
		assert.Equal(t, allowed(theirs), allowed(ours), "user %q", user)
	}
}

// A watch that begins before what is remembered is told so.
func TestTheModelForgetsAsTheRealServerDoes(t *testing.T) {
	p := newPair(t)
	p.begin()
	p.put("create", http.MethodPost, "/api/v1/namespaces/"+p.namespace+"/configmaps", asJSON, "", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a"}})
	p.server.Forget()
	resp, _ := p.model.open(t.Context(), t, operation{method: http.MethodGet, path: "/api/v1/namespaces/" + p.namespace + "/configmaps", query: "watch=true&resourceVersion=1"})
	defer func() { _ = resp.Body.Close() }()
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	event := decoded(t, resp.Body)
	assert.Equal(t, "ERROR", event["type"])
	assert.Equal(t, "Expired", event["object"].(object)["reason"])
	assert.InDelta(t, http.StatusGone, event["object"].(object)["code"], 0)
}
