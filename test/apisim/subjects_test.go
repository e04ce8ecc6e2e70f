package apisim_test

import (
	"fmt"
	"math/rand/v2"
)

// subject is a kind that the sequences are about.
type subject struct {
	apiVersion, kind, group, resource string
	status                            bool
	weight                            int
	// fields makes up content, which often is valid.
	fields func(*maker) object
	// parts are JSON pointers of fields that patches are about.
	parts []string
}

func (s subject) collection(namespace string) string {
	return "/" + s.group + "/namespaces/" + namespace + "/" + s.resource
}

var subjects = []subject{
	{apiVersion: "v1", kind: "ConfigMap", group: "api/v1", resource: "configmaps", weight: 6, fields: configMap, parts: []string{"/data/a", "/data/b", "/data", "/immutable"}},
	{apiVersion: "v1", kind: "Secret", group: "api/v1", resource: "secrets", weight: 4, fields: secret, parts: []string{"/data/a", "/data/b", "/stringData", "/type"}},
	{apiVersion: "example.com/v1", kind: "Widget", group: "apis/example.com/v1", resource: "widgets", status: true, weight: 6, fields: widget, parts: []string{"/spec/size", "/spec/tags", "/spec/parts", "/spec/options", "/spec/mode", "/status/phase", "/spec"}},
	{apiVersion: "example.com/v1alpha1", kind: "Sprocket", group: "apis/example.com/v1alpha1", resource: "sprockets", weight: 5, fields: sprocket, parts: []string{"/spec/teeth", "/spec/deep", "/spec/pairs", "/spec/inner", "/spec/holes", "/status"}},
	{apiVersion: "coordination.k8s.io/v1", kind: "Lease", group: "apis/coordination.k8s.io/v1", resource: "leases", weight: 3, fields: lease, parts: []string{"/spec/holderIdentity", "/spec/leaseDurationSeconds", "/spec"}},
	{apiVersion: "v1", kind: "ServiceAccount", group: "api/v1", resource: "serviceaccounts", weight: 1, fields: account, parts: []string{"/secrets", "/automountServiceAccountToken"}},
	{apiVersion: "backup.janus.io/v1alpha1", kind: "Transaction", group: "apis/backup.janus.io/v1alpha1", resource: "transactions", status: true, weight: 3, fields: txn, parts: []string{"/spec/onDelete", "/status/phase", "/status/version"}},
}

// brackets are the two versions of one kind.
var brackets = []subject{bracketsIn("v1beta1"), bracketsIn("v2")}

func bracketsIn(version string) subject {
	return subject{apiVersion: "example.com/" + version, kind: "Bracket", group: "apis/example.com/" + version, resource: "brackets", status: true, fields: bracket,
		parts: []string{"/spec/size", "/spec/colour", "/spec/legacy", "/spec/finish", "/spec/origin", "/spec/marks", "/spec/holes", "/status/bent", "/spec"}}
}

// pseudorandom is a source of what a seed stands for.
func pseudorandom(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // it is to be the same each time
}

// maker makes up contents.
type maker struct {
	*rand.Rand
	seed uint64
}

func (m *maker) one(of ...any) any { return of[m.IntN(len(of))] }
func (m *maker) in(n int) bool     { return m.IntN(n) == 0 }
func (m *maker) some(to object, k string, odds int, of ...any) {
	if m.in(odds) {
		to[k] = m.one(of...)
	}
}

func configMap(m *maker) object {
	out := object{}
	data := object{}
	m.some(data, "a", 2, "1", "2", "3")
	m.some(data, "b", 2, "1", "2", "")
	m.some(data, "c", 4, "1", nil)
	m.some(data, "d", 40, int64(7), true, object{}, []any{"x"})
	m.some(data, "bad key", 40, "1")
	if len(data) > 0 || m.in(3) {
		out["data"] = data
	}
	m.some(out, "binaryData", 6, object{"x": "aGVsbG8="}, object{"x": ""}, object{}, nil, object{"a": "aGVsbG8="}, object{"x": "?"})
	m.frozen(out)
	m.some(out, "unknown", 12, "x", object{"y": int64(1)})
	return out
}

// frozen makes some objects immutable, in every other sequence. There maps are never
// empty: the real server takes an empty map and none for different contents of an
// immutable object, and the model does not.
func (m *maker) frozen(out object) {
	if m.seed%2 == 0 {
		return
	}
	m.some(out, "immutable", 12, true, false, nil)
	for _, k := range []string{"data", "binaryData", "stringData"} {
		if fields, ok := out[k].(object); ok && len(fields) == 0 {
			delete(out, k)
		}
	}
}

func secret(m *maker) object {
	out := object{}
	data := object{}
	m.some(data, "a", 2, "MQ==", "Mg==", "")
	m.some(data, "b", 3, "MQ==", "")
	m.some(data, "c", 30, "not base64", int64(1))
	if len(data) > 0 || m.in(3) {
		out["data"] = data
	}
	m.some(out, "stringData", 4, object{"a": "5"}, object{"z": "x", "b": ""}, object{}, nil)
	m.some(out, "type", 5, "Opaque", "example.com/own", "kubernetes.io/basic-auth", "", "kubernetes.io/tls")
	m.frozen(out)
	m.some(out, "unknown", 15, "x")
	return out
}

func widget(m *maker) object {
	spec := object{}
	m.some(spec, "size", 2, int64(1), int64(2), int64(9007199254740993))
	m.some(spec, "size", 30, "big", 1.5, nil)
	m.some(spec, "mode", 3, "plain", "fancy", nil)
	m.some(spec, "nickname", 4, nil, "gizmo", "")
	m.some(spec, "options", 3, object{"a": int64(1)}, object{}, object{"deep": object{"list": []any{nil, object{"x": nil}}}, "none": nil}, nil)
	m.some(spec, "selector", 4, object{"a": "b"}, object{"c": "d", "a": "x"}, object{})
	m.some(spec, "steps", 4, []any{"one", "two"}, []any{"one", "one"}, []any{})
	m.some(spec, "tags", 3, []any{"x", "y"}, []any{"y", "z"}, []any{}, []any{"z"})
	m.some(spec, "tags", 20, []any{"x", "x"})
	m.some(spec, "parts", 2, []any{object{"name": "a", "count": int64(1)}}, []any{object{"name": "b"}, object{"name": "a"}}, []any{object{"name": "c", "count": int64(3)}, object{"name": "b", "count": int64(2)}}, []any{})
	m.some(spec, "parts", 20, []any{object{"name": "a"}, object{"name": "a"}}, []any{object{"count": int64(1)}}, []any{"text"})
	m.some(spec, "unknown", 10, "x", object{"a": "b"})
	out := object{"spec": spec}
	m.some(out, "status", 4, object{"phase": "up"}, object{"phase": "down", "other": int64(1)}, object{}, nil)
	m.some(out, "extra", 15, "x")
	return out
}

func sprocket(m *maker) object {
	spec := object{"teeth": m.one(int64(3), int64(4), int64(50))}
	m.some(spec, "teeth", 15, int64(1), int64(100), "many", nil)
	m.some(spec, "ratio", 4, 1.5, int64(2), 0.25)
	m.some(spec, "metal", 3, "iron", "brass", nil)
	m.some(spec, "metal", 25, "gold", int64(1))
	m.some(spec, "label", 4, "abc", "")
	m.some(spec, "label", 25, "toolong", "ABC")
	m.some(spec, "locked", 4, true, false)
	m.some(spec, "port", 4, int64(80), "http")
	m.some(spec, "port", 30, true, 1.5)
	m.some(spec, "by", 8, "2026-01-02T03:04:05Z", "yesterday")
	m.some(spec, "holes", 4, []any{int64(1)}, []any{int64(1), int64(2)}, []any{int64(1), int64(2), int64(3), int64(4)}, []any{"x"})
	m.some(spec, "sizes", 4, object{"a": int64(1)}, object{"a": int64(2), "b": int64(3)}, object{"a": nil}, object{"a": "x"}, object{})
	m.some(spec, "deep", 4, object{}, object{"depth": int64(1)}, object{"more": object{}}, object{"more": object{"on": false}}, nil, object{"unknown": int64(1)})
	m.some(spec, "anything", 5, object{"a": nil, "b": object{}}, object{"c": []any{}}, object{})
	m.some(spec, "pairs", 3, []any{object{"left": "a", "right": int64(1)}}, []any{object{"left": "a"}, object{"left": "b", "note": "n"}}, []any{object{"left": "b", "right": int64(2), "note": "x"}, object{"left": "a", "right": int64(2)}})
	m.some(spec, "pairs", 25, []any{object{"left": "a"}, object{"left": "a", "right": int64(1)}})
	m.some(spec, "inner", 4, object{"x": "1"}, object{"x": "1", "y": "2"}, object{})
	out := object{"spec": spec}
	m.some(out, "spec", 40, nil, "text", object{})
	m.some(out, "status", 4, object{"turns": int64(1)}, object{"turns": int64(2)}, nil)
	return out
}

func bracket(m *maker) object {
	spec := object{}
	m.some(spec, "size", 2, int64(1), int64(2))
	m.some(spec, "size", 30, "big", nil)
	m.some(spec, "colour", 3, "grey", "red", "blue", nil)
	m.some(spec, "legacy", 3, "x", "y")
	m.some(spec, "finish", 3, "matt", "gloss")
	m.some(spec, "origin", 3, object{"country": "at"}, object{"checked": true}, object{}, object{"country": "ch", "checked": false})
	m.some(spec, "marks", 3, []any{object{"at": int64(1)}}, []any{object{"at": int64(3)}, object{}}, []any{object{"at": int64(2), "depth": int64(5)}}, []any{})
	m.some(spec, "holes", 3, []any{object{"name": "a", "count": int64(1)}}, []any{object{"name": "b"}, object{"name": "a"}}, []any{})
	m.some(spec, "unknown", 15, "x")
	out := object{"spec": spec}
	m.some(out, "status", 4, object{"bent": true}, object{"torn": true}, object{"bent": false, "torn": true}, nil)
	return out
}

func lease(m *maker) object {
	spec := object{}
	m.some(spec, "holderIdentity", 2, "x", "y", "")
	m.some(spec, "leaseDurationSeconds", 2, int64(10), int64(20))
	m.some(spec, "leaseDurationSeconds", 20, int64(0), int64(-1))
	m.some(spec, "leaseTransitions", 4, int64(0), int64(1))
	m.some(spec, "leaseTransitions", 25, int64(-1))
	m.some(spec, "renewTime", 3, "2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.000000Z", nil)
	m.some(spec, "acquireTime", 20, "yesterday", "2026-01-02T03:04:05Z")
	m.some(spec, "strategy", 30, "x")
	out := object{"spec": spec}
	if m.in(20) {
		delete(out, "spec")
	}
	return out
}

func account(m *maker) object {
	out := object{}
	m.some(out, "automountServiceAccountToken", 2, true, false, nil)
	m.some(out, "imagePullSecrets", 3, []any{object{"name": "a"}}, []any{object{"name": "b"}, object{"name": "a"}}, []any{})
	m.some(out, "secrets", 3, []any{object{"name": "a"}}, []any{object{"name": "b", "kind": "Secret", "namespace": "x"}}, []any{})
	return out
}

func txn(m *maker) object {
	change := object{"type": "Delete", "target": object{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}}
	m.some(change, "name", 3, "first", "second")
	m.some(change, "type", 25, "Destroy")
	spec := object{"serviceAccountName": m.one("deployer", "deployer", "other"), "changes": []any{change}}
	m.some(spec, "timeout", 4, "10m", "30m")
	m.some(spec, "onDelete", 4, "Release", "Rollback")
	m.some(spec, "unknown", 15, int64(1))
	out := object{"spec": spec}
	m.some(out, "status", 3, object{"phase": "Pending", "version": int64(1)}, object{"phase": "Committed"}, object{"phase": "Nonsense"}, object{}, object{
		"observedGeneration": int64(1), "items": []any{object{"name": "0", "state": "Pending", "committed": false, "prepared": false, "rolledBack": false,
			"target": object{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "n"}}},
	})
	return out
}

// metadata makes up labels, annotations and finalizers.
func (m *maker) metadata(to object) object {
	m.some(to, "labels", 3, object{"app": "x"}, object{"app": "y"}, object{"app": "x", "tier": "1"}, object{}, nil)
	m.some(to, "labels", 60, object{"app": "not valid!"}, object{"": "x"}, object{"app": int64(1)})
	m.some(to, "annotations", 4, object{"note": "1"}, object{"note": "2", "example.com/more": ""}, object{}, nil)
	m.some(to, "annotations", 60, object{"not valid!": "x"})
	m.some(to, "finalizers", 8, []any{"example.com/wait"}, []any{"example.com/wait", "example.com/other"}, []any{}, nil)
	m.some(to, "finalizers", 80, []any{"nodomain"}, []any{"a b"}, []any{"example.com/wait", "example.com/wait"})
	m.some(to, "unknown", 40, "x")
	m.some(to, "generation", 20, int64(7), int64(0), int64(-1))
	m.some(to, "generateName", 30, fmt.Sprintf("generated-%d-", m.seed))
	m.some(to, "creationTimestamp", 20, nil, "2020-01-01T00:00:00Z")
	m.some(to, "deletionTimestamp", 40, "2020-01-01T00:00:00Z")
	m.some(to, "selfLink", 40, "/x")
	return to
}
