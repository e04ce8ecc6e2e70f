package kinds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Steps through doors, and back to where nothing is shut. The API server is asked about most
// of them in test/e2e.
var steps = map[string]struct {
	kind, before, after string
	back                bool // the step back is for good as well
}{
	"a Pod gets a toleration":                      {"Pod", "{spec: {tolerations: [{key: a}]}}", "{spec: {tolerations: [{key: a}, {key: b}]}}", false},
	"a Pod gets its first toleration":              {"Pod", "{}", "{spec: {tolerations: [{key: b}]}}", false},
	"a Pod loses a scheduling gate":                {"Pod", "{spec: {schedulingGates: [{name: a}, {name: b}]}}", "{spec: {schedulingGates: [{name: a}]}}", false},
	"a Pod gets a deadline":                        {"Pod", "{}", "{spec: {activeDeadlineSeconds: 5}}", false},
	"a Pod gets an earlier one":                    {"Pod", "{spec: {activeDeadlineSeconds: 6}}", "{spec: {activeDeadlineSeconds: 5}}", false},
	"a gated Pod gets a node selector":             {"Pod", "{}", "{spec: {nodeSelector: {a: b}}}", true},
	"a volume gets a node affinity":                {"PersistentVolume", "{}", "{spec: {nodeAffinity: {required: {}}}}", false},
	"a claim is bound":                             {"PersistentVolumeClaim", "{spec: {volumeName: \"\"}}", "{spec: {volumeName: a}}", false},
	"a Node gets the id of its provider":           {"Node", "{spec: {}}", "{spec: {providerID: a}}", false},
	"a suspended Job changes and is begun":         {"Job.batch", "{spec: {suspend: true, template: {a: b}}}", "{spec: {suspend: false, template: {a: c}}}", false},
	"a ServiceCIDR gets a second range":            {"ServiceCIDR.networking.k8s.io", "{spec: {cidrs: [a]}}", "{spec: {cidrs: [a, b]}}", false},
	"a definition stores in a version that is new": {"CustomResourceDefinition.apiextensions.k8s.io", "{spec: {versions: [{name: v1, storage: true}]}}", "{spec: {versions: [{name: v2, storage: true}]}}", true},
}

func TestAStepThroughADoorIsForGood(t *testing.T) {
	for name, c := range steps {
		t.Run(name, func(t *testing.T) {
			before, after := object(t, c.before), object(t, c.after)
			kind := schema.ParseGroupKind(c.kind)
			assert.NotEmpty(t, OneWay(kind, before, after))
			assert.Equal(t, c.back, OneWay(kind, after, before) != "", "the step back")
			assert.Empty(t, OneWay(kind, after, after), "no step")
			assert.Empty(t, OneWay(schema.GroupKind{Group: "example.com", Kind: kind.Kind}, before, after), "a kind of the same name")
		})
	}
}

var open = map[string][3]string{
	"the seconds of a toleration":                 {"Pod", "{spec: {tolerations: [{key: a, tolerationSeconds: 5}]}}", "{spec: {tolerations: [{key: a, tolerationSeconds: 6}]}}"},
	"the image of a Pod":                          {"Pod", "{spec: {containers: [{image: a}]}}", "{spec: {containers: [{image: b}]}}"},
	"a Job that is begun as it is":                {"Job.batch", "{spec: {suspend: true, template: {a: b}}}", "{spec: {suspend: false, template: {a: b}}}"},
	"the template of a Job that stays suspended":  {"Job.batch", "{spec: {suspend: true, template: {a: b}}}", "{spec: {suspend: true, template: {a: c}}}"},
	"a definition that serves another version":    {"CustomResourceDefinition.apiextensions.k8s.io", "{spec: {versions: [{name: v1, storage: true}]}}", "{spec: {versions: [{name: v1, storage: true}, {name: v2}]}}"},
	"a definition that stores in one that it had": {"CustomResourceDefinition.apiextensions.k8s.io", "{spec: {versions: [{name: v1, storage: true}, {name: v2}]}}", "{spec: {versions: [{name: v1}, {name: v2, storage: true}]}}"},
}

func TestWhatLooksLikeADoorAndIsNone(t *testing.T) {
	for name, c := range open {
		assert.Empty(t, OneWay(schema.ParseGroupKind(c[0]), object(t, c[1]), object(t, c[2])), name)
	}
}

func TestTransitionRulesAtOrAboveWhatChanges(t *testing.T) {
	definition := object(t, `
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            x-kubernetes-validations: [{rule: "has(self.size) || !has(oldSelf.size)", message: size stays}, {rule: self.size > 0}]
            properties:
              size: {x-kubernetes-validations: [{rule: self >= oldSelf}]}
              other: {x-kubernetes-validations: [{rule: self == oldSelf}]}
              list: {items: {x-kubernetes-validations: [{rule: self == oldSelf}]}}
`).Object
	rules := func(before, after string) (out []string) {
		for _, r := range TransitionRules(definition, "v1", object(t, before).Object, object(t, after).Object) {
			out = append(out, r.Path+": "+r.Text)
		}
		return out
	}
	const above = ".spec: size stays (has(self.size) || !has(oldSelf.size))"
	assert.Equal(t, []string{above, ".spec.size: self >= oldSelf"}, rules("{spec: {size: 1}}", "{spec: {size: 2}}"))
	assert.Equal(t, []string{above, ".spec.list[*]: self == oldSelf"}, rules("{spec: {list: [a]}}", "{spec: {list: [b]}}"))
	assert.Equal(t, []string{above}, rules("{spec: {free: 1}}", "{spec: {free: 2}}"))
	assert.Empty(t, rules("{metadata: {a: b}, spec: {size: 1}}", "{metadata: {a: c}, spec: {size: 1}}"))
	assert.Empty(t, TransitionRules(definition, "v2", map[string]any{"spec": "a"}, map[string]any{}))
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, utiljson.Unmarshal(raw, &obj.Object))
	return obj
}
