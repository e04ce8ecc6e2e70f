package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
)

// workload is a Transaction that is run again and again, each time stopped elsewhere.
type workload struct {
	name    string
	objects string
	refuses bool
	spec    string
	// targets are all targets, as Object and as resource/name.
	targets []watched
	phase   api.Phase
	// committed looks at the targets of a Committed Transaction.
	committed func(t *testing.T, e *harness.Env)
}

type watched struct {
	ref, resource, name string
}

const fourObjects = `
apiVersion: v1
kind: ConfigMap
metadata: {name: patched}
data: {version: "1", other: kept}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: updated, annotations: {note: old}}
data: {a: "1", b: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: deleted, labels: {app: web}}
stringData: {key: canary-7f3a}
`

const fourChanges = `
lockTimeout: 1m
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: patched}
    type: Patch
    content: {data: {version: "2"}}
  - target: {apiVersion: v1, kind: ConfigMap, name: updated}
    type: Update
    content: {data: {a: "2", c: "2"}}
  - target: {apiVersion: v1, kind: ConfigMap, name: created}
    type: Create
    content: {data: {made: "yes"}}
  - target: {apiVersion: v1, kind: Secret, name: deleted}
    type: Delete
`

var fourTargets = []watched{
	{"ConfigMap/patched", "configmaps", "patched"},
	{"ConfigMap/updated", "configmaps", "updated"},
	{"ConfigMap/created", "configmaps", "created"},
	{"Secret/deleted", "secrets", "deleted"},
}

var workloads = []workload{
	{
		name: "commit", objects: fourObjects, spec: fourChanges, targets: fourTargets, phase: api.PhaseCommitted,
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
		name: "rollback", objects: fourObjects, spec: fourChanges + refusedAtCommit, refuses: true, phase: api.PhaseRolledBack,
		targets: append([]watched{{"Service/a", "services", "a"}, {"ConfigMap/refused-b", "configmaps", "refused-b"}}, fourTargets...),
	},
	{
		name: "chain", objects: fourObjects, refuses: true, phase: api.PhaseRolledBack,
		targets: append([]watched{{"Service/a", "services", "a"}, {"ConfigMap/refused-b", "configmaps", "refused-b"}}, fourTargets[:1]...),
		spec: `
lockTimeout: 1m
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: patched}
    type: Patch
    content: {data: {version: "2", more: "2"}}
  - target: {apiVersion: v1, kind: ConfigMap, name: patched}
    type: Patch
    content: {data: {version: "3"}}
` + refusedAtCommit,
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
			assert.Len(t, harness.Changing(line, e.Namespace, target.resource, target.name), 1, "%s is written once", target.ref)
			assert.Empty(t, e.ItemManagers(target.ref), "%s: managers that stay", target.ref)
		}
	case api.PhaseRolledBack:
		for _, target := range w.targets {
			e.Same(before[target.ref], target.ref)
			writes := harness.Changing(line, e.Namespace, target.resource, target.name)
			assert.LessOrEqual(t, len(writes), w.most(target), "%s: %v", target.ref, writes)
		}
	}
	for _, target := range w.targets {
		for _, write := range harness.Changing(line, e.Namespace, target.resource, target.name) {
			assert.Equal(t, "system:serviceaccount:"+e.Namespace+":deployer", write.User, "%v", write)
		}
	}
	e.NothingLeft("txn")
}

// most is how many writes may take effect on a target of a Transaction that rolls
// back: the change, and at most two for its compensation, values and owners.
func (w workload) most(target watched) int {
	items := 1
	if w.name == "chain" && target.name == "patched" {
		items = 2
	}
	return 3 * items
}
