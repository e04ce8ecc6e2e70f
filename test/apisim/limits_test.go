package apisim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What is too large is refused in three ways: by the server for any body, by the
// checks of a kind, and by etcd.
func TestTheModelHasTheLimitsOfTheRealServer(t *testing.T) {
	p := newPair(t)
	p.begin()
	home := "/api/v1/namespaces/" + p.namespace
	widgets := "/apis/example.com/v1/namespaces/" + p.namespace + "/widgets"
	text := func(n int) string { return strings.Repeat("x", n) }
	widget := func(name string, n int) object {
		return object{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": object{"name": name}, "spec": object{"options": object{"text": text(n)}}}
	}
	settings := func(name string, data, annotation int) object {
		return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name, "annotations": object{"a": text(annotation)}}, "data": object{"a": text(data)}}
	}
	p.put("full", http.MethodPost, home+"/configmaps", asJSON, "", settings("a", 1<<20, 0))
	p.put("one byte too many", http.MethodPost, home+"/configmaps", asJSON, "", settings("b", 1<<20+1, 0))
	p.put("annotations", http.MethodPost, home+"/configmaps", asJSON, "", settings("c", 0, 256<<10))
	p.put("full annotations", http.MethodPost, home+"/configmaps", asJSON, "", settings("c", 0, 256<<10-1))
	p.put("grown", http.MethodPatch, home+"/configmaps/a", asMerge, "", object{"data": object{"b": "x"}})
	p.put("body", http.MethodPost, home+"/configmaps", asJSON, "", settings("d", 3<<20, 0))
	for i, n := range []int{1400 << 10, 1530 << 10, 1540 << 10, 1600 << 10} {
		p.put(fmt.Sprintf("custom, %d", n), http.MethodPost, widgets, asJSON, "", widget(fmt.Sprintf("w%d", i), n))
		p.put(fmt.Sprintf("custom, apply %d", n), http.MethodPatch, widgets+fmt.Sprintf("/v%d", i), asApply, "fieldManager=x", widget(fmt.Sprintf("v%d", i), n))
	}
	p.put("custom, dry run", http.MethodPost, widgets, asJSON, "dryRun=All", widget("x", 1600<<10))
	p.put("custom, status", http.MethodPatch, widgets+"/w0/status", asMerge, "", object{"status": object{"phase": text(200 << 10)}})
	p.put("custom, patch", http.MethodPatch, widgets+"/w0", asMerge, "", object{"spec": object{"nickname": text(200 << 10)}})
}
