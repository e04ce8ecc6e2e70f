package ordering

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

const podTemplate = `{metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: "example.com/a:1"}]}}`

// situation is a change with readyWhen, of an object of some kind, and what happens to it.
type situation struct {
	name string
	// before are objects that are there, and settled those of which numberReady,
	// readyReplicas or the like must be there first, as path of a field.
	before  string
	settled []string
	// change is the change, without readyWhen.
	change  string
	timeout string
	// waits is what the Transaction says while it waits, and then what another client does
	// about it.
	waits string
	then  func(e *harness.Env)
	// reason and says are of the end; no reason means that it commits.
	reason, says string
	check        func(t *testing.T, e *harness.Env)
}

var situations = []situation{
	{
		name:   "a Job is waited for until it has completed",
		change: `{type: Create, target: {apiVersion: batch/v1, kind: Job, name: migrate}, content: {spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: "example.com/a:1"}]}}}}}`,
		waits:  "waiting for Job NS/migrate: it is suspended (spec.suspend)",
		then: func(e *harness.Env) {
			e.Merge("somebody", "batch/v1 Job/migrate", `{"spec":{"suspend":false}}`)
		},
		check: func(t *testing.T, e *harness.Env) {
			t.Helper()
			assert.Equal(t, "1", field(e, "batch/v1 Job/migrate", "status", "succeeded"))
			assert.NotEqual(t, "<absent>", field(e, "batch/v1 Job/migrate", "status", "completionTime"))
		},
	},
	{
		name:   "a Job that fails is a failure at once",
		change: `{type: Create, target: {apiVersion: batch/v1, kind: Job, name: fails}, content: {spec: {backoffLimit: 0, activeDeadlineSeconds: 2, template: {spec: {restartPolicy: Never, nodeSelector: {none: "true"}, containers: [{name: a, image: "example.com/a:1"}]}}}}}`,
		reason: errclass.ReadyFailed, says: "Job NS/fails: it has failed: DeadlineExceeded",
	},
	{
		name:    "a Job that does not end is given up in time",
		timeout: "3s",
		change:  `{type: Create, target: {apiVersion: batch/v1, kind: Job, name: hangs}, content: {spec: {template: {spec: {restartPolicy: Never, nodeSelector: {none: "true"}, containers: [{name: a, image: "example.com/a:1"}]}}}}}`,
		reason:  errclass.ReadyTimeout, says: "not ready within 3s: Job NS/hangs: 0/1 Pods succeeded",
	},
	{
		name:    "a DaemonSet with OnDelete leaves its Pods as they are",
		before:  `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {updateStrategy: {type: OnDelete}, selector: {matchLabels: {app: a}}, template: ` + podTemplate + `}}`,
		settled: []string{"apps/v1 DaemonSet/agent", "numberReady", "2"},
		change:  `{type: Patch, target: {apiVersion: apps/v1, kind: DaemonSet, name: agent}, content: {spec: {template: {spec: {containers: [{name: a, image: "example.com/a:2"}]}}}}}`,
		check: func(t *testing.T, e *harness.Env) {
			t.Helper()
			assert.Equal(t, "<absent>", field(e, "apps/v1 DaemonSet/agent", "status", "updatedNumberScheduled"))
		},
	},
	{
		name:   "a new StatefulSet with OnDelete is waited for until its Pods are ready",
		change: `{type: Create, target: {apiVersion: apps/v1, kind: StatefulSet, name: db}, content: {spec: {replicas: 2, serviceName: db, updateStrategy: {type: OnDelete}, selector: {matchLabels: {app: a}}, template: ` + podTemplate + `}}}`,
		check: func(t *testing.T, e *harness.Env) {
			t.Helper()
			assert.Equal(t, "2", field(e, "apps/v1 StatefulSet/db", "status", "readyReplicas"))
		},
	},
	{
		name:    "a Deployment may be paused",
		before:  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: a}}, template: ` + podTemplate + `}}`,
		settled: []string{"apps/v1 Deployment/web", "readyReplicas", "1"},
		change:  `{type: Patch, target: {apiVersion: apps/v1, kind: Deployment, name: web}, content: {spec: {paused: true}}}`,
	},
	{
		name:    "a Deployment that is paused in the middle says so",
		before:  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: still}, spec: {paused: true, selector: {matchLabels: {app: a}}, template: ` + podTemplate + `}}`,
		timeout: "3s",
		change:  `{type: Patch, target: {apiVersion: apps/v1, kind: Deployment, name: still}, content: {spec: {template: {spec: {containers: [{name: a, image: "example.com/a:2"}]}}}}}`,
		reason:  errclass.ReadyTimeout, says: "Deployment NS/still: 0/1 Pods updated, and it is paused (spec.paused)",
	},
	{
		name:   "a Pod that has failed is not ready",
		change: `{type: Create, target: {apiVersion: v1, kind: Pod, name: task}, content: {spec: {restartPolicy: Never, nodeSelector: {none: "true"}, containers: [{name: a, image: "example.com/a:1"}]}}}`,
		waits:  "waiting for Pod NS/task: it has no Node: Unschedulable: ",
		then: func(e *harness.Env) {
			e.Merge("somebody", "Pod/task", `{"status":{"phase":"Failed","reason":"Evicted"}}`, "status")
		},
		reason: errclass.ReadyFailed, says: "Pod NS/task: it has failed: Evicted",
	},
	{
		name:   "a load balancer is waited for until it has an address",
		change: `{type: Create, target: {apiVersion: v1, kind: Service, name: front}, content: {spec: {type: LoadBalancer, ports: [{port: 80}]}}}`,
		waits:  "waiting for Service NS/front: its load balancer has no address yet",
		then: func(e *harness.Env) {
			e.Merge("somebody", "Service/front", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`, "status")
		},
	},
	{
		name:    "a claim that nothing uses says what it waits for",
		timeout: "2s",
		change:  `{type: Create, target: {apiVersion: v1, kind: PersistentVolumeClaim, name: data}, content: {spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}`,
		reason:  errclass.ReadyTimeout, says: "PersistentVolumeClaim NS/data: it is not bound (phase Pending); where the StorageClass has volumeBindingMode WaitForFirstConsumer",
	},
	{
		name:   "a quota is waited for until it is in force",
		change: `{type: Create, target: {apiVersion: v1, kind: ResourceQuota, name: limits}, content: {spec: {hard: {count/leases.coordination.k8s.io: "1000"}}}}`,
		check: func(t *testing.T, e *harness.Env) {
			t.Helper()
			assert.Equal(t, "1k", field(e, "ResourceQuota/limits", "status", "hard", "count/leases.coordination.k8s.io"))
		},
	},
	{
		name:   "the token of a ServiceAccount is waited for",
		change: `{type: Create, target: {apiVersion: v1, kind: Secret, name: token}, content: {type: kubernetes.io/service-account-token, metadata: {annotations: {kubernetes.io/service-account.name: deployer}}}}`,
		check: func(t *testing.T, e *harness.Env) {
			t.Helper()
			assert.NotEqual(t, "<absent>", field(e, "Secret/token", "data", "token"))
		},
	},
	{
		name:   "a ReplicationController is ready when its Pods are",
		change: `{type: Create, target: {apiVersion: v1, kind: ReplicationController, name: old}, content: {spec: {replicas: 1, selector: {app: a}, template: ` + podTemplate + `}}}`,
		check: func(t *testing.T, e *harness.Env) {
			t.Helper()
			assert.Equal(t, "1", field(e, "ReplicationController/old", "status", "readyReplicas"))
		},
	},
	{
		name:    "an autoscaler that no controller has seen is not ready",
		timeout: "2s",
		change:  `{type: Create, target: {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, name: more}, content: {spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}}`,
		reason:  errclass.ReadyTimeout, says: "HorizontalPodAutoscaler NS/more: its controller has not looked at its target yet",
	},
	{
		name:    "an autoscaler that no controller has seen is not ready by its first version",
		timeout: "2s",
		change:  `{type: Create, target: {apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, name: first}, content: {spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}}`,
		reason:  errclass.ReadyTimeout, says: "HorizontalPodAutoscaler NS/first: its controller has not looked at its target yet",
	},
	{
		name:   "a budget is waited for until its controller has seen it",
		change: `{type: Create, target: {apiVersion: policy/v1, kind: PodDisruptionBudget, name: few}, content: {spec: {minAvailable: 1, selector: {matchLabels: {app: none}}}}}`,
		check: func(t *testing.T, e *harness.Env) {
			t.Helper()
			assert.Equal(t, "1", field(e, "policy/v1 PodDisruptionBudget/few", "status", "observedGeneration"))
		},
	},
	{
		name:   "an Ingress is ready at once",
		change: `{type: Create, target: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: way}, content: {spec: {defaultBackend: {service: {name: front, port: {number: 80}}}}}}`,
	},
}

func TestEachKindIsWaitedForAsThePageSays(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	for i, s := range situations {
		t.Run(s.name, func(t *testing.T) { s.run(t, e, fmt.Sprintf("t-%d", i)) })
	}
}

// run runs the situation, with a ConfigMap after it, which must not be there while it waits,
// nor if it fails.
func (s situation) run(t *testing.T, e *harness.Env, name string) {
	t.Helper()
	after := "ConfigMap/after-" + name
	if s.before != "" {
		e.Apply(s.before)
	}
	if s.settled != nil {
		e.Until("the objects are as before", func() bool { return field(e, s.settled[0], "status", s.settled[1]) == s.settled[2] })
	}
	gate := "readyWhen: {status: Ready}}"
	if s.timeout != "" {
		gate = "readyWhen: {status: Ready, timeout: " + s.timeout + "}}"
	}
	e.Submit(name, "timeout: 60s\nchanges:\n- "+strings.TrimSuffix(s.change, "}")+", "+gate+
		"\n- {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: after-"+name+"}, content: {data: {a: b}}}\n")
	if s.waits != "" {
		e.Await(name, "waiting as expected", func(txn *api.Transaction) bool {
			_, _, message := harness.Condition(txn, api.ConditionReconciling)
			return strings.HasPrefix(message, strings.ReplaceAll(s.waits, "NS", e.Namespace))
		})
		require.Nil(t, e.Object(after), "the change after it is made only then")
		s.then(e)
	}
	txn := e.Ended(name)
	if s.reason == "" {
		assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		assert.NotNil(t, e.Object(after))
		if s.check != nil {
			s.check(t, e)
		}
		return
	}
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	_, reason, message := harness.Condition(txn, api.ConditionSucceeded)
	assert.Equal(t, s.reason, reason)
	assert.Contains(t, message, strings.ReplaceAll(s.says, "NS", e.Namespace))
	assert.Nil(t, e.Object(after))
	took := txn.Status.CompletionTime.Sub(txn.Status.StartTime.Time)
	assert.Less(t, took, 20*time.Second, "it is found out when it happens")
}

// field reads a field of an object as text; "<absent>" if there is none.
func field(e *harness.Env, ref string, path ...string) string {
	value, found, err := unstructured.NestedFieldNoCopy(e.Object(ref).Object, path...)
	if err != nil || !found {
		return "<absent>"
	}
	return fmt.Sprint(value)
}

// A Job that has completed may be deleted at once by its ttlSecondsAfterFinished, and be there until its
// Pods are gone: its end counts.
func TestAJobThatHasCompletedIsReadyWhileItIsDeleted(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Submit("run", `
changes:
- {type: Create, target: {apiVersion: batch/v1, kind: Job, name: short}, content: {metadata: {finalizers: [example.com/slow]}, spec: {suspend: true, ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Never, containers: [{name: a, image: "example.com/a:1"}]}}}}, readyWhen: {status: Ready}}
- {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: after}, content: {data: {a: b}}}
`)
	e.Await("run", "waiting", func(txn *api.Transaction) bool {
		_, _, message := harness.Condition(txn, api.ConditionReconciling)
		return strings.Contains(message, "it is suspended")
	})
	e.Merge("person", "batch/v1 Job/short", `{"spec":{"suspend":false}}`)
	txn := e.Ended("run")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	e.Until("the Job is being deleted", func() bool { return e.Object("batch/v1 Job/short").GetDeletionTimestamp() != nil })
	e.Merge("person", "batch/v1 Job/short", `{"metadata":{"finalizers":null}}`)
}

// A Job that is deleted by its ttlSecondsAfterFinished before it was looked at is a failure
// that says how to avoid it: whether it had completed nobody knows.
func TestAJobThatIsGoneBeforeItWasSeenSaysWhy(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Submit("gone", `
changes:
- {type: Create, target: {apiVersion: batch/v1, kind: Job, name: short}, content: {spec: {suspend: true, ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Never, containers: [{name: a, image: "example.com/a:1"}]}}}}, readyWhen: {status: Ready}}
`)
	e.Await("gone", "waiting", func(txn *api.Transaction) bool {
		_, _, message := harness.Condition(txn, api.ConditionReconciling)
		return strings.Contains(message, "it is suspended")
	})
	// By default its Pods would be kept, and it would be there until they are free of it.
	now := metav1.DeletePropagationBackground
	require.NoError(t, e.Kube.BatchV1().Jobs(e.Namespace).Delete(t.Context(), "short", metav1.DeleteOptions{PropagationPolicy: &now}))
	txn := e.Ended("gone")
	_, reason, message := harness.Condition(txn, api.ConditionSucceeded)
	assert.Equal(t, errclass.ReadyFailed, reason)
	assert.Contains(t, message, "after its ttlSecondsAfterFinished (0)")
}

// A custom resource is not ready before its controller has written a status, if its kind
// has one; and definitions are ready when their kind is served.
func TestACustomResourceIsWaitedForUntilItHasAStatus(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	group := e.Namespace + ".example.org"
	e.Apply(strings.ReplaceAll(strings.ReplaceAll(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NS-maker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: NS}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.GROUP}
spec: {group: GROUP, scope: Namespaced, names: {kind: Gadget, plural: gadgets}, versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec: {group: GROUP, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}
`, "NS", e.Namespace), "GROUP", group))
	t.Cleanup(func() { // They are in no namespace.
		ctx := context.Background()
		assert.NoError(t, e.Kube.RbacV1().ClusterRoleBindings().Delete(ctx, e.Namespace+"-maker", metav1.DeleteOptions{}))
		for _, name := range []string{"gadgets", "widgets"} {
			assert.NoError(t, e.Dynamic.Resource(definitions).Delete(ctx, name+"."+group, metav1.DeleteOptions{}))
		}
	})
	e.Served(group + "/v1 Gadget")
	e.Served(group + "/v1 Widget")
	for i, s := range []situation{
		{
			name:   "with a status",
			change: `{type: Create, target: {apiVersion: ` + group + `/v1, kind: Gadget, name: a}, content: {spec: {a: b}}}`,
			waits:  "waiting for Gadget NS/a: its controller has written no status yet",
			then: func(e *harness.Env) {
				e.Merge("somebody", group+"/v1 Gadget/a", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, "status")
			},
		},
		{
			name:   "changed, with a condition of before",
			change: `{type: Patch, target: {apiVersion: ` + group + `/v1, kind: Gadget, name: a}, content: {spec: {a: c}}}`,
			before: `{apiVersion: ` + group + `/v1, kind: Gadget, metadata: {name: a}, spec: {a: b}}`,
			waits:  "waiting for Gadget NS/a: its controller has not seen the change yet (generation 2, condition Ready is of 1)",
			then: func(e *harness.Env) {
				e.Merge("somebody", group+"/v1 Gadget/a", `{"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}}`, "status")
			},
		},
		{
			name:   "without a status",
			change: `{type: Create, target: {apiVersion: ` + group + `/v1, kind: Widget, name: a}, content: {spec: {a: b}}}`,
		},
		{
			name: "a definition whose names are taken",
			change: `{type: Create, target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: others.` + group + `}, content: {spec: {group: ` + group +
				`, scope: Namespaced, names: {kind: Gadget, plural: others}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}}`,
			reason: errclass.ReadyFailed, says: "CustomResourceDefinition others." + group + ": its names are not accepted: ListKindConflict",
		},
	} {
		t.Run(s.name, func(t *testing.T) {
			if i == 1 {
				e.Merge("somebody", group+"/v1 Gadget/a", `{"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":1}]}}`, "status")
			}
			s.run(t, e, fmt.Sprintf("t-%d", i))
		})
	}
}
