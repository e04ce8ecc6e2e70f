package apisim_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"janus.io/janus/test/apisim"
)

// The policy of the namespace stamps whatever is called a-…, and changes what its content
// says.
const policy = `{
 "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "NAME"},
 "spec": {
  "failurePolicy": "Fail", "reinvocationPolicy": "Never",
  "matchConstraints": {"resourceRules": [{"apiGroups": ["", "example.com"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps", "widgets", "brackets"]}]},
  "matchConditions": [{"name": "named", "expression": "has(request.name) && request.name.startsWith('a-')"}],
  "mutations": [
   {"patchType": "JSONPatch", "jsonPatch": {"expression": "has(object.metadata.annotations) && dyn(object.metadata.annotations) != null ? [JSONPatch{op: 'add', path: '/metadata/annotations/stamp', value: 'policy'}] : [JSONPatch{op: 'add', path: '/metadata/annotations', value: {'stamp': 'policy'}}]"}},
   {"patchType": "JSONPatch", "jsonPatch": {"expression": "has(object.data) && has(object.data.a) ? [JSONPatch{op: 'replace', path: '/data/a', value: 'policy'}] : []"}},
   {"patchType": "JSONPatch", "jsonPatch": {"expression": "has(object.spec) && has(object.spec.size) ? [JSONPatch{op: 'replace', path: '/spec/size', value: 42}] : []"}},
   {"patchType": "JSONPatch", "jsonPatch": {"expression": "has(object.spec) && has(object.spec.colour) && object.spec.colour == 'blue' ? [JSONPatch{op: 'remove', path: '/spec/colour'}] : []"}}
  ]
 }
}`

const binding = `{
 "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": "NAME"},
 "spec": {"policyName": "NAME", "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "NAME"}}}}
}`

// mutated does what the policy does.
func mutated(a apisim.Admission) bool {
	if a.Subresource != "" || !strings.HasPrefix(a.Name, "a-") || a.Resource != "configmaps" && a.Resource != "widgets" && a.Resource != "brackets" {
		return false
	}
	notes := a.Object.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes["stamp"] = "policy"
	a.Object.SetAnnotations(notes)
	data, _ := a.Object.Object["data"].(object)
	if _, ok := data["a"]; ok {
		data["a"] = "policy"
	}
	spec, _ := a.Object.Object["spec"].(object)
	if _, ok := spec["size"]; ok {
		spec["size"] = int64(42)
	}
	if spec["colour"] == "blue" {
		delete(spec, "colour")
	}
	return true
}

// What mutating admission changes is checked, defaulted and owned as on the real server.
func TestTheModelIsChangedByAdmissionAsTheRealServerIs(t *testing.T) {
	p := newPair(t)
	p.mutate = mutated
	p.begin()
	for resource, body := range map[string]string{"mutatingadmissionpolicies": policy, "mutatingadmissionpolicybindings": binding} {
		collection := "/apis/admissionregistration.k8s.io/v1/" + resource
		made := p.real.send(t, operation{method: http.MethodPost, path: collection, contentType: asJSON, agent: "tester", body: func(*side) any {
			return parsed(t, strings.ReplaceAll(body, "NAME", p.namespace))
		}})
		require.Equal(t, http.StatusCreated, made.code, "%v", made.raw)
		t.Cleanup(func() {
			gone := p.real.send(t, operation{method: http.MethodDelete, path: collection + "/" + p.namespace, contentType: asJSON, agent: "tester", body: func(*side) any { return object{} }})
			require.Equal(t, http.StatusOK, gone.code)
		})
	}
	probe := operation{method: http.MethodPost, path: "/api/v1/namespaces/" + p.namespace + "/configmaps", query: "dryRun=All", contentType: asJSON, agent: "tester", body: func(*side) any {
		return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a-probe"}}
	}}
	require.Eventually(t, func() bool {
		made, _ := p.real.send(t, probe).raw.(object)
		notes, _ := metadataOf(made)["annotations"].(object)
		return notes["stamp"] == "policy"
	}, 30*time.Second, 100*time.Millisecond, "the policy is not in force")

	p.sequences(max(3, *sequences/3), subjects[0], subjects[2], brackets[0], brackets[1])
}

func parsed(t *testing.T, text string) object {
	t.Helper()
	var out object
	require.NoError(t, utiljson.Unmarshal([]byte(text), &out))
	return out
}
