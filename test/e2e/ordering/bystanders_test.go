package ordering

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

const gate = `
  - name: gate
    type: Create
    target: {apiVersion: v1, kind: ConfigMap, name: gate}
    content: {data: {a: b}}
    readyWhen: {expression: "has(object.data.go)", timeout: 150s}
`

// pod is what every workload here runs.
const pod = `{terminationGracePeriodSeconds: 0, containers: [{name: a, image: "registry.example/a:1"}]}`

// bystander is an object that a change makes and that adopts what was there before.
type bystander struct {
	name string
	// before are the objects that are there, adopted those of them that it adopts.
	before, adopted []string
	// prepare makes more of them, which are adopted as well.
	prepare func(t *testing.T, e *harness.Env) (adopted []string)
	// make is the object, owner what it is called.
	make, owner string
}

var bystanders = []bystander{
	{
		name:   "a ReplicaSet adopts a Pod",
		before: []string{`{apiVersion: v1, kind: Pod, metadata: {name: mine, labels: {app: x}}, spec: ` + pod + `}`}, adopted: []string{"v1 Pod/mine"},
		owner: "apps/v1 ReplicaSet/x", make: `{spec: {replicas: 2, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: ` + pod + `}}}`,
	},
	{
		name: "a StatefulSet adopts a claim, which it would delete",
		before: []string{
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-x-0, labels: {app: x}}, spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}`,
		},
		adopted: []string{"PersistentVolumeClaim/data-x-0"}, owner: "apps/v1 StatefulSet/x",
		make: `{spec: {serviceName: x, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: ` + pod + `},
          volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}]}}`,
	},
	{
		name: "a StatefulSet adopts Pod and revision of one that was deleted with Orphan", owner: "apps/v1 StatefulSet/x",
		make: `{spec: {serviceName: x, replicas: 2, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: ` + pod + `}}}`,
		prepare: orphaned("apps/v1 StatefulSet/x", `{spec: {serviceName: x, replicas: 1, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: `+pod+`}}}`,
			"apps/v1 ControllerRevision", "v1 Pod"),
	},
	{
		name: "a Deployment adopts a ReplicaSet, which keeps its Pods", owner: "apps/v1 Deployment/x",
		make: `{spec: {replicas: 2, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: ` + pod + `}}}`,
		prepare: orphaned("apps/v1 Deployment/x", `{spec: {replicas: 1, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: `+pod+`}}}`,
			"apps/v1 ReplicaSet"),
	},
	{
		name: "the ReplicaSet that a Deployment makes adopts Pods", owner: "apps/v1 Deployment/x",
		make: `{spec: {replicas: 2, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: ` + pod + `}}}`,
		prepare: func(t *testing.T, e *harness.Env) []string {
			t.Helper()
			sets := orphaned("apps/v1 Deployment/x", `{spec: {replicas: 1, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: `+pod+`}}}`, "apps/v1 ReplicaSet")(t, e)
			found := list(t, e, "v1 Pod")
			remove(t, e, sets[0])
			return found
		},
	},
	{
		name: "a DaemonSet adopts Pods and revision of one that was deleted with Orphan", owner: "apps/v1 DaemonSet/x",
		make: `{spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: ` + pod + `}}}`,
		prepare: orphaned("apps/v1 DaemonSet/x", `{spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: `+pod+`}}}`,
			"apps/v1 ControllerRevision", "v1 Pod"),
	},
	{
		name:   "a Job adopts a Pod",
		before: []string{`{apiVersion: v1, kind: Pod, metadata: {name: mine, labels: {app: x}}, spec: ` + strings.Replace(pod, "{", "{restartPolicy: Never, ", 1) + `}`}, adopted: []string{"v1 Pod/mine"},
		owner: "batch/v1 Job/x",
		make:  `{spec: {parallelism: 2, completions: 2, manualSelector: true, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: ` + strings.Replace(pod, "{", "{restartPolicy: Never, ", 1) + `}}}`,
	},
}

// list names the objects of a kind that have the label of the workloads here.
func list(t *testing.T, e *harness.Env, kind string) (refs []string) {
	t.Helper()
	for _, name := range e.Names(kind, "app=x") {
		refs = append(refs, kind+"/"+name)
	}
	return refs
}

func remove(t *testing.T, e *harness.Env, ref string) {
	t.Helper()
	obj := e.Object(ref)
	client, err := e.For(obj.GroupVersionKind(), e.Namespace)
	require.NoError(t, err)
	orphan := metav1.DeletePropagationOrphan
	require.NoError(t, client.Delete(t.Context(), obj.GetName(), metav1.DeleteOptions{PropagationPolicy: &orphan}))
	e.Until(ref+" is gone", func() bool { return e.Object(ref) == nil })
}

// orphaned makes a workload and deletes it with Orphan: what it made is left.
func orphaned(ref, content string, kinds ...string) func(t *testing.T, e *harness.Env) []string {
	return func(t *testing.T, e *harness.Env) []string {
		t.Helper()
		version, kind, _ := strings.Cut(strings.TrimSuffix(ref, "/x"), " ")
		e.Apply(fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: x}, %s", version, kind, strings.TrimPrefix(content, "{")))
		var out []string
		e.Until("it has what it makes, and that runs", func() bool {
			out = nil
			for _, kind := range kinds {
				found := list(t, e, kind)
				if len(found) == 0 {
					return false
				}
				out = append(out, found...)
			}
			running := list(t, e, "v1 Pod")
			return len(running) > 0 && !slices.ContainsFunc(running, func(ref string) bool { return e.Value(ref, "status", "phase") != "Running" })
		})
		remove(t, e, ref)
		out = nil // It may have made more until it went, such as the Pod of another Node.
		for _, kind := range kinds {
			out = append(out, list(t, e, kind)...)
		}
		return out
	}
}

// What an object has adopted is older than it, and stays when its creation is rolled back.
// What it has made goes.
func TestARollbackOfACreateKeepsWhatWasAdopted(t *testing.T) {
	t.Parallel()
	for _, b := range bystanders {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			for _, object := range b.before {
				e.Apply(object)
			}
			adopted := b.adopted
			if b.prepare != nil {
				adopted = b.prepare(t, e)
			}
			require.NotEmpty(t, adopted)
			before := map[string]string{}
			for _, ref := range adopted {
				before[ref] = string(e.Object(ref).GetUID())
				require.Empty(t, e.Object(ref).GetOwnerReferences(), ref)
			}
			e.NextSecond()
			e.Start()
			version, kind, _ := strings.Cut(strings.TrimSuffix(b.owner, "/x"), " ")
			e.Submit("adopt", fmt.Sprintf("\nchanges:\n  - name: x\n    type: Create\n    target: {apiVersion: %s, kind: %s, name: x}\n    content: %s\n%s", version, kind, b.make, gate))
			e.Until("it is adopted", func() bool {
				return !slices.ContainsFunc(adopted, func(ref string) bool { return len(e.Object(ref).GetOwnerReferences()) == 0 })
			})
			e.Until("all changes are made", func() bool { return e.Object("ConfigMap/gate") != nil })
			e.Merge("person", "backup.janus.io/v1alpha1 Transaction/adopt", `{"spec":{"cancel":"Rollback"}}`)
			txn := e.Ended("adopt")

			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			assert.Nil(t, e.Object(b.owner))
			e.Until("what it made is gone", func() bool {
				for _, kind := range []string{"v1 Pod", "apps/v1 ReplicaSet", "apps/v1 ControllerRevision"} {
					for _, ref := range list(t, e, kind) {
						if !ours(e, ref, before, adopted) {
							return false
						}
					}
				}
				return true
			})
			for _, ref := range adopted {
				now := e.Object(ref)
				if assert.NotNil(t, now, ref) {
					assert.Equal(t, before[ref], string(now.GetUID()), ref)
					assert.Nil(t, now.GetDeletionTimestamp(), ref)
					assert.Empty(t, now.GetOwnerReferences(), ref)
					assert.NotContains(t, e.ItemManagers(ref), "janus-"+string(txn.UID)[:8]+"-0", ref)
				}
			}
			e.NothingLeft("adopt")
		})
	}
}

// ours reports whether an object was adopted, or belongs to what was.
func ours(e *harness.Env, ref string, before map[string]string, adopted []string) bool {
	if slices.Contains(adopted, ref) {
		return true
	}
	obj := e.Object(ref)
	if obj == nil {
		return true
	}
	for _, owner := range obj.GetOwnerReferences() {
		for _, uid := range before {
			if string(owner.UID) == uid {
				return true
			}
		}
	}
	return false
}
