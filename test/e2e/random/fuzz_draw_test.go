package random

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// fuzzedSpec is a random spec, valid or not, over objects of one case.
type fuzzedSpec struct {
	n         int    // counts cases: it is in every name
	namespace string // of the case
	other     string // another one, in which nothing is named but by chance
	spec      map[string]any
	// wild is set where the spec may be one that the API server itself refuses.
	wild bool
	// named are the targets, as "apiVersion Kind/name", with their namespaces.
	named map[string]bool
	// sources are the objects that hold contents.
	sources []string
}

// fuzzedKind is a kind that a random change may name.
type fuzzedKind struct {
	apiVersion, kind string
	// base is what an object of it needs; empty if none is made for a case.
	base string
}

var fuzzedKinds = []fuzzedKind{
	{"v1", "ConfigMap", `{"data":{"a":"1"}}`},
	{"v1", "Secret", `{"data":{"a":"Yw=="}}`},
	{"v1", "Service", `{"spec":{"ports":[{"port":80}]}}`},
	{"apps/v1", "Deployment", `{"spec":{"paused":true,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`},
	{"example.com/v1", "Widget", `{"spec":{"size":1,"options":{"o":"x"}}}`},
	{"coordination.k8s.io/v1", "Lease", `{"spec":{"holderIdentity":"somebody","leaseDurationSeconds":5}}`},
}

// oddKinds are ones that few think of, and some that there are not.
var oddKinds = []fuzzedKind{
	{"v1", "Namespace", `{}`}, {"rbac.authorization.k8s.io/v1", "ClusterRole", `{"rules":[]}`}, {"v1", "ServiceAccount", `{}`},
	{"backup.janus.io/v1alpha1", "Transaction", ``}, {"v1", "Event", ``}, {"v1", "Pod", ``}, {"batch/v1", "Job", ``}, {"v1", "Binding", ``},
	{"authentication.k8s.io/v1", "TokenReview", ``}, {"authorization.k8s.io/v1", "SelfSubjectAccessReview", ``}, {"v1", "ComponentStatus", ``},
	{"v1", "ConfigMapList", ``}, {"v1", "NoSuchKind", ``}, {"no.such.group/v1", "Thing", ``}, {"v2", "ConfigMap", ``}, {"apps/v1", "deployment", ``},
	{"autoscaling/v1", "Scale", ``}, {"events.k8s.io/v1", "Event", ``}, {"apiextensions.k8s.io/v1", "CustomResourceDefinition", ``}, {"v1", "Status", ``},
	{"v1", "Node", ``}, {"v1", "PersistentVolume", ``},
}

// wildKinds, and what else is called wild, the API server refuses in a Transaction.
var wildKinds = []fuzzedKind{{"v1", "", ``}, {"", "ConfigMap", ``}, {"a/b/c", "ConfigMap", ``}}

// existing are the objects that a case finds there: one of each usual kind.
func (s *fuzzedSpec) existing() string {
	var out []string
	for _, k := range fuzzedKinds {
		object := decoded(k.base).(map[string]any)
		object["apiVersion"], object["kind"] = k.apiVersion, k.kind
		object["metadata"] = map[string]any{"name": fmt.Sprint("there-", s.n), "labels": map[string]any{"x": "y"}}
		out = append(out, encoded(object))
	}
	return strings.Join(append(out, s.sources...), "\n---\n")
}

func decoded(text string) any {
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return toIntegers(out)
}

func encoded(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func drawSpec(t *rapid.T, n int, namespace, other string) *fuzzedSpec {
	s := &fuzzedSpec{n: n, namespace: namespace, other: other, spec: map[string]any{"timeout": "3s"}, named: map[string]bool{}}
	s.wild = rapid.IntRange(0, 7).Draw(t, "wild") == 0
	var changes []any
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		changes = append(changes, s.drawChange(t))
	}
	if rapid.IntRange(0, 9).Draw(t, "twice") == 0 && changes[0].(map[string]any)["name"] == nil {
		changes = append(changes, changes[0])
	}
	if rapid.IntRange(0, 2).Draw(t, "refused") > 0 {
		s.name("v1", "ConfigMap", fmt.Sprint("refused-", n), "")
		changes = append(changes, decoded(fmt.Sprintf(`{"target":{"apiVersion":"v1","kind":"ConfigMap","name":"refused-%d"},"type":"Create","content":{}}`, n)))
	}
	s.spec["changes"] = changes
	for range rapid.IntRange(0, 1).Draw(t, "options") {
		fields := []string{"timeout", "lockTimeout", "onDelete", "conflictPolicy", "serviceAccountName", "approval"}
		if s.wild {
			fields = append(fields, "unknown", "changes")
		}
		field := rapid.SampledFrom(fields).Draw(t, "option")
		s.spec[field] = s.drawOption(t, field)
	}
	s.drawSources(t, true)
	return s
}

// drawOption draws the value of a field of the spec, right or wrong. A timeout that
// is right is short.
func (s *fuzzedSpec) drawOption(t *rapid.T, field string) any {
	right := map[string][]any{
		"serviceAccountName": {"deployer", "deployer", "deployer", "nobody", "default"}, "timeout": {"1s", "2.5s", "1s1ms"}, "lockTimeout": {"1s", "24h", "1.5s"},
		"approval": {map[string]any{"required": true}, map[string]any{"required": true, "timeout": "1s"}, map[string]any{"required": false}}, // Nobody guards or gives one here.
		"onDelete": {"Rollback", "Release"}, "conflictPolicy": {"Force", "Fail"},
	}[field]
	wrong := []any{nil, "", "-1s", "1d", int64(7), []any{}, map[string]any{}, "ä", "99999999999h"}
	if len(right) > 0 && (!s.wild || rapid.Bool().Draw(t, "right")) {
		return rapid.SampledFrom(right).Draw(t, "value")
	}
	return rapid.SampledFrom(wrong).Draw(t, "value")
}

func (s *fuzzedSpec) drawChange(t *rapid.T) map[string]any {
	k := rapid.SampledFrom(fuzzedKinds).Draw(t, "kind")
	if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		k = rapid.SampledFrom(oddKinds).Draw(t, "kind")
		if s.wild {
			k = rapid.SampledFrom(wildKinds).Draw(t, "kind")
		}
	}
	name, hows := s.drawName(t)
	target := map[string]any{"apiVersion": k.apiVersion, "kind": k.kind, "name": name}
	namespace := ""
	if rapid.IntRange(0, 7).Draw(t, "elsewhere") == 0 {
		namespaces := []string{s.namespace, s.namespace, s.other, fmt.Sprint("none-", s.n), ""}
		if s.wild {
			namespaces = []string{"UPPER", "a.b", "a/b"}
		}
		namespace = rapid.SampledFrom(namespaces).Draw(t, "namespace")
		target["namespace"] = namespace
	}
	s.name(k.apiVersion, k.kind, name, namespace)
	how := rapid.SampledFrom(hows).Draw(t, "type")
	change := map[string]any{"target": target, "type": how}
	if how != "Delete" || s.wild {
		change["content"] = s.drawContent(t, k, how)
	}
	s.drawManner(t, change, how)
	return change
}

// drawManner draws how a change is to be made.
func (s *fuzzedSpec) drawManner(t *rapid.T, change map[string]any, how string) {
	switch more := rapid.IntRange(0, 9).Draw(t, "more"); {
	case more < 3 && (how != "Create" || s.wild):
		change["acceptLoss"] = true
	case more == 3 && (how == "Patch" || s.wild):
		change["force"] = rapid.Bool().Draw(t, "force")
	case more < 6 && (how == "Delete" || s.wild):
		change["propagationPolicy"] = rapid.SampledFrom([]any{"Orphan", "Foreground", "Background"}).Draw(t, "propagation")
	case more == 9 && s.wild:
		change["name"] = rapid.SampledFrom([]any{"x", "0", "1", "Ä", "", nil, strings.Repeat("n", 63), strings.Repeat("n", 64)}).Draw(t, "name")
	}
}

// name notes that an object may be changed.
func (s *fuzzedSpec) name(apiVersion, kind, name, namespace string) {
	if namespace == "" {
		namespace = s.namespace
	}
	s.named[inventoryKey(apiVersion, kind, namespace, name)] = true
}

// drawName draws the name of a target, and the types of change that suit it.
func (s *fuzzedSpec) drawName(t *rapid.T) (name string, hows []string) {
	there, made := fmt.Sprint("there-", s.n), fmt.Sprint("made-", s.n)
	any := []string{"Create", "Update", "Patch", "Delete"}
	switch which := rapid.IntRange(0, 19).Draw(t, "which"); {
	case which == 0 && s.wild:
		return rapid.SampledFrom([]string{"%2e", "x/y", strings.Repeat("a", 254), "a\nb", "\u0000", ""}).Draw(t, "name"), any
	case which == 0:
		return rapid.SampledFrom([]string{
			".", "..", "ä", "Made_" + made, "a b", "a:b", "\U0001f600", "-", "a" + strings.Repeat(".b", 126), "\u202etxet", "system:a:" + made, "'\"{}", "names.example.com",
			s.transaction(), s.transaction() + "-rollback", "default", "kube-root-ca.crt-" + made,
		}).Draw(t, "name"), any
	case which < 7:
		return made, []string{"Create", "Create", "Create", "Patch", "Delete"}
	default:
		return there, []string{"Update", "Patch", "Patch", "Delete", "Update", "Patch", "Delete", "Create"}
	}
}

func (s *fuzzedSpec) transaction() string { return fmt.Sprint("fuzz-", s.n) }

// paths are where content is made odd.
var paths = []string{
	"metadata", "metadata.name", "metadata.namespace", "metadata.labels", "metadata.labels.a", "metadata.annotations", "metadata.annotations.a", "metadata.finalizers",
	"metadata.ownerReferences", "metadata.uid", "metadata.resourceVersion", "metadata.generateName", "metadata.managedFields", "metadata.creationTimestamp",
	"metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds", "metadata.generation", "metadata.selfLink", "metadata.unknown", "apiVersion", "kind", "status",
	"status.phase", "data", "data.a", "data.b", "binaryData", "stringData", "stringData.a", "type", "immutable", "spec", "spec.replicas", "spec.template", "spec.size",
	"spec.options", "spec.options.o", "spec.tags", "spec.parts", "spec.nickname", "spec.selector", "spec.ports", "spec.clusterIP", "spec.holderIdentity", "rules", "unknown", "",
	"metadata.annotations.janus\\.io/transaction-uid", "metadata.annotations.janus\\.io/rollback-batch", "metadata.labels.janus\\.io/transaction",
}

// drawContent draws content that is right, with a few odd values in it.
func (s *fuzzedSpec) drawContent(t *rapid.T, k fuzzedKind, how string) any {
	base := k.base
	if base == "" || how == "Patch" {
		base = `{}`
	}
	content := decoded(base).(map[string]any)
	if k.kind == "ConfigMap" || how == "Patch" && rapid.Bool().Draw(t, "labels") {
		put(content, "metadata.labels.x", fmt.Sprint("v", rapid.IntRange(0, 2).Draw(t, "label")))
	}
	for range max(0, rapid.IntRange(-3, 2).Draw(t, "oddities")) {
		put(content, rapid.SampledFrom(paths).Draw(t, "path"), s.drawValue(t))
	}
	if s.wild && rapid.IntRange(0, 3).Draw(t, "whole") == 0 {
		return s.drawValue(t)
	}
	return content
}

// put sets a field, and replaces what is in the way.
func put(object map[string]any, path string, value any) {
	names := strings.Split(strings.ReplaceAll(path, "\\.", "\x00"), ".")
	for i, name := range names {
		name = strings.ReplaceAll(name, "\x00", ".")
		if i == len(names)-1 {
			object[name] = value
			return
		}
		inner, ok := object[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[name] = inner
		}
		object = inner
	}
}

// drawValue draws any JSON.
func (s *fuzzedSpec) drawValue(t *rapid.T) any {
	deep := any("bottom")
	for range 60 {
		deep = map[string]any{"d": []any{deep}}
	}
	return rapid.SampledFrom([]any{
		nil, nil, "", "x", "y", int64(0), int64(-1), int64(7), 1.5, 1e300, int64(9007199254740993), true, []any{}, []any{nil}, []any{"a", "a"}, []any{"example.com/hold"},
		map[string]any{}, map[string]any{"a": nil}, map[string]any{"": ""}, map[string]any{"a": "2", "b": "3"}, map[string]any{"a": map[string]any{"b": nil}}, deep,
		"ä\u202e\U0001f600", "a\x00b\x1b[31m", strings.Repeat("long ", 100), strings.Repeat("x", 300_000), strings.Repeat("x", 1_100_000), "$(rm -rf)", "%s%d%!v",
		[]any{map[string]any{"name": "p", "count": int64(1)}, map[string]any{"name": "p"}}, []any{map[string]any{"port": int64(80)}, map[string]any{"port": int64(80)}},
		[]any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "..", "uid": "u"}},
		[]any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": fmt.Sprint("there-", s.n), "uid": "not-its-uid", "controller": true}},
		[]any{map[string]any{"apiVersion": "no.such/v1", "kind": "Thing", "name": "a", "uid": "u"}}, []any{map[string]any{"manager": "kubectl", "operation": "Apply"}},
		"2020-01-01T00:00:00Z", fmt.Sprint("there-", s.n), s.namespace,
	}).Draw(t, "value")
}
