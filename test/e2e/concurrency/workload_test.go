package concurrency

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// workload is a Transaction that is run again and again, each time stopped elsewhere.
type workload struct {
	name    string
	objects string
	refuses bool
	spec    string
	// targets are all targets, as Object and as resource/name.
	targets []fixture.Target
	phase   api.Phase
	// committed looks at the targets of a Committed Transaction.
	committed func(t *testing.T, e *harness.Env)
}

var workloads = []workload{
	{
		name: "commit", objects: fixture.FourObjects, spec: fixture.FourChanges, targets: fixture.FourTargets, phase: api.PhaseCommitted,
		committed: func(t *testing.T, e *harness.Env) {
			t.Helper()
			assert.Equal(t, "2", e.Value("ConfigMap/patched", "data", "version"))
			assert.Equal(t, "kept", e.Value("ConfigMap/patched", "data", "other"))
			assert.Equal(t, map[string]any{"a": "2", "c": "2"}, e.Object("ConfigMap/updated").Object["data"])
			assert.Equal(t, "yes", e.Value("ConfigMap/created", "data", "made"))
			assert.Nil(t, e.Object("Secret/deleted"))
		},
	},
	{
		name: "rollback", objects: fixture.FourObjects, spec: fixture.FourChanges + fixture.RefusedAtCommit, refuses: true, phase: api.PhaseRolledBack,
		targets: append([]fixture.Target{{Ref: "Service/a", Resource: "services", Name: "a"}, {Ref: "ConfigMap/refused-b", Resource: "configmaps", Name: "refused-b"}}, fixture.FourTargets...),
	},
	{
		name: "chain", objects: fixture.FourObjects, refuses: true, phase: api.PhaseRolledBack,
		targets: append([]fixture.Target{{Ref: "Service/a", Resource: "services", Name: "a"}, {Ref: "ConfigMap/refused-b", Resource: "configmaps", Name: "refused-b"}}, fixture.FourTargets[:1]...),
		spec: `
lockTimeout: 1m
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: patched}
    type: Patch
    content: {data: {version: "2", more: "2"}}
  - target: {apiVersion: v1, kind: ConfigMap, name: patched}
    type: Patch
    content: {data: {version: "3"}}
` + fixture.RefusedAtCommit,
	},
}

// check holds what is there against the guarantees.
func (w workload) check(t *testing.T, e *harness.Env, line *faultinject.Line, ended *api.Transaction, before map[string]*unstructured.Unstructured) {
	t.Helper()
	assert.Equal(t, w.phase, ended.Status.Phase, harness.Describe(ended))
	switch ended.Status.Phase {
	case api.PhaseCommitted:
		w.committed(t, e)
		for _, target := range w.targets {
			assert.Len(t, harness.Changing(line, e.Namespace, target.Resource, target.Name), 1, "%s is written once", target.Ref)
			assert.Empty(t, e.ItemManagers(target.Ref), "%s: managers that stay", target.Ref)
		}
	case api.PhaseRolledBack:
		for _, target := range w.targets {
			e.Same(before[target.Ref], target.Ref)
			writes := harness.Changing(line, e.Namespace, target.Resource, target.Name)
			assert.LessOrEqual(t, len(writes), w.most(target), "%s: %v", target.Ref, writes)
		}
	}
	for _, target := range w.targets {
		for _, write := range harness.Changing(line, e.Namespace, target.Resource, target.Name) {
			assert.Equal(t, "system:serviceaccount:"+e.Namespace+":deployer", write.User, "%v", write)
		}
	}
	e.NothingLeft("txn")
}

// most is how many writes may take effect on a target of a Transaction that rolls
// back: the change, and at most two for its compensation, values and owners.
func (w workload) most(target fixture.Target) int {
	items := 1
	if w.name == "chain" && target.Name == "patched" {
		items = 2
	}
	return 3 * items
}
