package mutate_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"janus.io/janus/mutate"
)

func meaningOf(t *testing.T, text string) string {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(content))
	return mutate.Change{}.Meaning(obj)
}

// Content that means the same has the same digest, however it is written.
func TestContentThatMeansTheSame(t *testing.T) {
	const kind = "apiVersion: example.com/v1\nkind: App\nmetadata:\n  name: a\n"
	for name, c := range map[string]struct{ one, other string }{
		"an order":            {"spec: {a: 1, b: 2}", "spec: {b: 2, a: 1}"},
		"CPU":                 {"spec: {resources: {limits: {cpu: 1000m}}}", "spec: {resources: {limits: {cpu: 1}}}"},
		"CPU as text":         {"spec: {resources: {requests: {cpu: '0.5'}}}", "spec: {resources: {requests: {cpu: 500m}}}"},
		"memory":              {"spec: {resources: {limits: {memory: 1Gi}}}", "spec: {resources: {limits: {memory: 1024Mi}}}"},
		"a quota":             {"spec: {hard: {requests.cpu: 2000m}}", "spec: {hard: {requests.cpu: '2'}}"},
		"containers":          {"spec: {containers: [{name: a, resources: {limits: {cpu: 1500m}}}]}", "spec: {containers: [{name: a, resources: {limits: {cpu: '1.5'}}}]}"},
		"a number":            {"spec: {n: 1.0}", "spec: {n: 1}"},
		"what is null":        {"spec: {a: 1, b: null}", "spec: {a: 1}"},
		"who has made it":     {"", "  labels: {janus.io/transaction: x}\n  annotations: {janus.io/transaction: shop/x, janus.io/transaction-uid: u.0}"},
		"what kubectl writes": {"", "  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}'}"},
	} {
		assert.Equal(t, meaningOf(t, kind+c.one), meaningOf(t, kind+c.other), name)
	}
	for name, c := range map[string]struct{ one, other string }{
		"another value":             {"spec: {a: 1}", "spec: {a: 2}"},
		"text that looks like CPU":  {"data: {cpu: 1000m}", "data: {cpu: '1'}"},
		"text below limits as well": {"data: {limits: 1000m}", "data: {limits: '1'}"},
		"another amount":            {"spec: {limits: {cpu: 1001m}}", "spec: {limits: {cpu: 1}}"},
		"what is empty":             {"spec: {volume: {emptyDir: {}}}", "spec: {volume: {}}"},
		"an order of a list":        {"spec: {a: [1, 2]}", "spec: {a: [2, 1]}"},
		"text and a number":         {"spec: {a: '1'}", "spec: {a: 1}"},
	} {
		assert.NotEqual(t, meaningOf(t, kind+c.one), meaningOf(t, kind+c.other), name)
	}
}

// An amount can be so written that its digits fill the memory, and a custom kind takes any.
func TestAnAmountWithAHugeExponentIsNotWrittenOut(t *testing.T) {
	for _, amount := range []string{"1e3000000", "1e-3000000", "1.5E3000000", "1e" + strings.Repeat("0", 100) + "3000000"} {
		content := "kind: App\nspec: {limits: {cpu: " + strconv.Quote(amount) + "}}"
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := meaningOf(t, content)
		runtime.ReadMemStats(&after)
		assert.Len(t, got, 32)
		assert.Less(t, (after.TotalAlloc-before.TotalAlloc)>>10, uint64(1024), "KiB, of %s", amount)
	}
}

func TestConfidentialContentHasNoDigest(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "data": map[string]any{"key": "MQ=="}}}
	assert.Empty(t, mutate.Change{Sensitive: true}.Meaning(obj))
	assert.Empty(t, mutate.Change{}.Meaning(nil))
	assert.Len(t, mutate.Change{}.Meaning(obj), 32)
}
