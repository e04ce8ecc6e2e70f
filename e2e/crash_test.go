package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/janustest"
)

// faults says how many of the fault runs are made: a fixed sample, in which every
// attempt to write meets a fault, or every fault at every attempt.
var faults = flag.String("faults", orElse(os.Getenv("JANUS_FAULTS"), "sample"), "which faults to try: sample or all")

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// workload is a Transaction that is run again and again, each time with another
// fault.
type workload struct {
	name    string
	objects string
	refuses bool
	spec    string
	// targets are all targets, as Object and as resource/name.
	targets []watched
	phase   api.Phase
	// committed looks at the targets of a Committed Transaction.
	committed func(t *testing.T, e *janustest.Env)
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
		committed: func(t *testing.T, e *janustest.Env) {
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

// TestWhateverAttemptToWriteFailsTheGuaranteesHold runs each workload once for
// each attempt to write that it makes, and lets that one fail.
func TestWhateverAttemptToWriteFailsTheGuaranteesHold(t *testing.T) {
	var names []string
	for _, w := range workloads {
		names = append(names, w.name)
	}
	janustest.Together(t, len(names), names, func(t *testing.T, i int) {
		w := workloads[i]
		var attempts int
		t.Run("none", func(t *testing.T) { attempts = w.run(t, 0, janustest.NoFault).Attempts() })
		cases, names := w.cases(attempts)
		t.Logf("%d attempts to write, %d runs", attempts, len(cases))
		janustest.Together(t, 6, names, func(t *testing.T, i int) {
			wire := w.run(t, cases[i].at, cases[i].fault)
			assert.True(t, wire.Reached(), "the fault was never met: %d attempts", wire.Attempts())
		})
		t.Run("after-the-last", func(t *testing.T) {
			assert.False(t, w.run(t, attempts, janustest.CrashBefore).Reached(), "there are more attempts than were tried")
		})
	})
}

type faultCase struct {
	at    int
	fault janustest.Fault
}

// cases are all faults at all attempts, or a sample: every attempt meets one of the
// faults in turn, and in the chain, which does much that the others do, every other.
func (w workload) cases(attempts int) (cases []faultCase, names []string) {
	add := func(n int, f janustest.Fault) {
		cases = append(cases, faultCase{n, f})
		names = append(names, fmt.Sprintf("%s-at-%d", f, n))
	}
	for n := range attempts {
		if *faults == "all" {
			for _, f := range janustest.Faults {
				add(n, f)
			}
			continue
		}
		if w.name == "chain" && n%2 == 1 {
			continue
		}
		add(n, []janustest.Fault{
			janustest.CrashAfter, janustest.LostReply, janustest.CrashBefore,
			janustest.FailedYet, janustest.FailedNot, janustest.TooMany,
		}[n%6])
	}
	return cases, names
}

// run runs the workload with a fault, replaces a Janus that crashes, and looks at
// what is there in the end.
func (w workload) run(t *testing.T, at int, fault janustest.Fault) *janustest.Wire {
	e := janustest.New(t)
	e.Apply(w.objects)
	if w.refuses {
		applyRefusal(t, e)
	}
	before := map[string]*unstructured.Unstructured{}
	for _, target := range w.targets {
		before[target.ref] = e.Object(target.ref)
	}
	wire := janustest.NewWire(at, fault)
	first := e.Start(wire.Process())
	e.Submit("txn", w.spec)

	ended := e.EndedAcross(wire, "txn", func() {
		first.Stop()
		e.Start(wire.Process())
	})

	w.check(t, e, wire, ended, before)
	return wire
}

// check holds what is there against the guarantees.
func (w workload) check(t *testing.T, e *janustest.Env, wire *janustest.Wire, ended *api.Transaction, before map[string]*unstructured.Unstructured) {
	t.Helper()
	assert.Equal(t, w.phase, ended.Status.Phase, janustest.Describe(ended))
	switch ended.Status.Phase {
	case api.PhaseCommitted:
		w.committed(t, e)
		for _, target := range w.targets {
			assert.Len(t, wire.Effective(e, target.resource, target.name), 1, "%s is written once", target.ref)
			assert.Empty(t, e.ItemManagers(target.ref), "%s: managers that stay", target.ref)
		}
	case api.PhaseRolledBack:
		for _, target := range w.targets {
			e.Same(before[target.ref], target.ref)
			writes := wire.Effective(e, target.resource, target.name)
			assert.LessOrEqual(t, len(writes), w.most(target), "%s: %v", target.ref, writes)
		}
	}
	for _, target := range w.targets {
		for _, write := range wire.Effective(e, target.resource, target.name) {
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
