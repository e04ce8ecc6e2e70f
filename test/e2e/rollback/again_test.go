package rollback

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// takenFrom is what a Service loses and another takes: a port, or an address.
var takenFrom = []struct {
	what, given string
	change      string
	// thief has what the Service had.
	thief func(before *unstructured.Unstructured) string
}{
	{"a node port of a Service that was changed", "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: [{port: 80}]}}",
		"  - {target: {apiVersion: v1, kind: Service, name: web}, type: Patch, content: {spec: {type: ClusterIP}}}\n", portThief},
	{"a node port of a Service that was deleted", "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort, ports: [{port: 80}]}}",
		"  - {target: {apiVersion: v1, kind: Service, name: web}, type: Delete}\n", portThief},
	{"the address of a Service that was deleted", "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}",
		"  - {target: {apiVersion: v1, kind: Service, name: web}, type: Delete}\n", func(before *unstructured.Unstructured) string {
			address, _, _ := unstructured.NestedString(before.Object, "spec", "clusterIP")
			return "{apiVersion: v1, kind: Service, metadata: {name: thief}, spec: {clusterIP: " + address + ", ports: [{port: 80}]}}"
		}},
}

func portThief(before *unstructured.Unstructured) string {
	ports, _, _ := unstructured.NestedSlice(before.Object, "spec", "ports")
	port, _ := ports[0].(map[string]any)["nodePort"].(int64)
	return "{apiVersion: v1, kind: Service, metadata: {name: thief}, spec: {type: NodePort, ports: [{port: 80, nodePort: " + strconv.FormatInt(port, 10) + "}]}}"
}

// stolen runs a Transaction of which the rollback finds taken what a Service had.
func stolen(t *testing.T, n int, policy plan.Policy) (e *harness.Env, before *unstructured.Unstructured) {
	t.Helper()
	c := takenFrom[n]
	e = harness.New(t)
	e.Refuse()
	e.Apply(c.given)
	before = e.Object("Service/web")
	e.Start(harness.WithPolicy(policy), harness.Acting(harness.Around{Do: func(_ string, item int) {
		if item == 1 {
			e.Apply(c.thief(before))
		}
	}}))
	txn := e.Run("txn", "\nchanges:\n"+c.change+fixture.RefusedAtCommit)
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.AlreadyAllocated, txn.Status.Items[0].Reason, harness.Describe(txn))
	return e, before
}

func freed(t *testing.T, e *harness.Env) {
	t.Helper()
	require.NoError(t, e.Kube.CoreV1().Services(e.Namespace).Delete(context.Background(), "thief", metav1.DeleteOptions{}))
}

func rolledBackLater(t *testing.T, e *harness.Env) *api.Transaction {
	t.Helper()
	return e.Await("txn", "RolledBack", func(t *api.Transaction) bool { return t.Status.Phase == api.PhaseRolledBack })
}

func TestAServiceIsRestoredOnceItsPortOrAddressIsFree(t *testing.T) {
	t.Parallel()
	for n, c := range takenFrom {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			e, before := stolen(t, n, plan.Policy{Recoveries: 3, RecoveryDelay: time.Second, SettleTime: 300 * time.Millisecond, AddressTime: time.Second})
			freed(t, e)
			txn := rolledBackLater(t, e)
			assert.Positive(t, txn.Status.Recoveries)
			e.Same(before, "Service/web")
			e.NothingLeft("txn")
		})
	}
}

// The API server holds the address of a Service whose deletion it has seen late for a minute, and
// the rollback waits until it has dropped it.
func TestAServiceGetsTheAddressBackThatOnlyTheAPIServerHolds(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	e.Apply("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}")
	before := e.Object("Service/web")
	address, _, _ := unstructured.NestedString(before.Object, "spec", "clusterIP")
	e.Start(harness.WithPolicy(unaided), harness.Acting(harness.Around{Do: func(_ string, item int) {
		if item == 1 {
			e.Apply("{apiVersion: networking.k8s.io/v1, kind: IPAddress, metadata: {name: " + address +
				", labels: {ipaddress.kubernetes.io/managed-by: ipallocator.k8s.io, ipaddress.kubernetes.io/ip-family: IPv4}}, " +
				"spec: {parentRef: {resource: services, namespace: " + e.Namespace + ", name: web}}}")
		}
	}}))
	e.Submit("txn", "\nchanges:\n  - {target: {apiVersion: v1, kind: Service, name: web}, type: Delete}\n"+fixture.RefusedAtCommit)

	txn := e.Await("txn", "waiting for the address", func(t *api.Transaction) bool { return len(t.Status.Items) > 0 && t.Status.Items[0].SetAside })
	assert.Equal(t, errclass.AlreadyAllocated, txn.Status.Items[0].Reason)
	assert.Contains(t, txn.Status.Items[0].Message, "refused, and tried again for a while")
	assert.Contains(t, txn.Status.Items[0].Message, "or the API server itself, for up to a minute")
	rolledBackLater(t, e)
	e.Same(before, "Service/web")
	e.NothingLeft("txn")
}

// A quota counts a deleted object until its controller comes to it, and the rollback waits for that.
func TestAnObjectIsMadeAgainOnceItsDeletionHasBeenCounted(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	e.Apply("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}")
	e.Apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: one}, spec: {hard: {services: '1'}}}")
	before := e.Object("Service/web")
	counted := func(want string) {
		assert.NoError(t, harness.Poll(context.Background(), func(ctx context.Context) (bool, error) {
			quota, err := e.Kube.CoreV1().ResourceQuotas(e.Namespace).Get(ctx, "one", metav1.GetOptions{})
			count, known := quota.Status.Used["services"]
			return known && count.String() == want, err
		}))
	}
	count := func(n string) {
		_, err := e.Kube.CoreV1().ResourceQuotas(e.Namespace).Patch(context.Background(), "one", types.MergePatchType,
			[]byte(`{"status":{"used":{"services":"`+n+`"}}}`), metav1.PatchOptions{}, "status")
		assert.NoError(t, err)
	}
	counted("1")
	e.Start(harness.WithPolicy(unaided), harness.Acting(harness.Around{Do: func(_ string, item int) {
		if item == 1 {
			counted("0") // The controller was quick; it does not look again by itself.
			count("1")
		}
	}}))
	e.Submit("txn", "\nchanges:\n  - {target: {apiVersion: v1, kind: Service, name: web}, type: Delete}\n"+
		"  - {target: {apiVersion: v1, kind: ConfigMap, name: refused-b}, type: Create, content: {data: {a: b}}}\n")

	txn := e.Await("txn", "waiting for the quota", func(t *api.Transaction) bool { return len(t.Status.Items) > 0 && t.Status.Items[0].SetAside })
	assert.Contains(t, txn.Status.Items[0].Message, "refused, and tried again for a while")
	time.Sleep(plan.DefaultCatchUp + 2*time.Second)
	assert.Equal(t, api.PhaseRollingBack, e.Transaction("txn").Status.Phase)
	count("0")
	rolledBackLater(t, e)
	e.Same(before, "Service/web")
	e.NothingLeft("txn")
}

// What a person asks for is tried at once, and once.
func TestWhatIsLeftIsTriedAgainWhenSomebodyAsks(t *testing.T) {
	t.Parallel()
	e, before := stolen(t, 0, unaided)
	ask := func(what string) {
		e.Merge("person", "backup.janus.io/v1alpha1 Transaction/txn", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, api.RecoverAnnotation, what))
	}
	ask("first")
	txn := e.Await("txn", "tried again", func(t *api.Transaction) bool { return t.Status.HandledRecovery == "first" && t.Status.Phase.Terminal() })
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase)
	assert.Equal(t, errclass.AlreadyAllocated, txn.Status.Items[0].Reason)
	freed(t, e)
	ask("first")
	time.Sleep(time.Second)
	assert.Equal(t, txn.Status.Version, e.Transaction("txn").Status.Version, "what was asked before is not asked again")
	ask("second")
	rolledBackLater(t, e)
	e.Same(before, "Service/web")
	e.NothingLeft("txn")
}

// A Namespace that others have filled goes when they have left.
func TestANamespaceIsRolledBackOnceOthersHaveLeftIt(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	e.Refuse()
	made := e.Namespace + "-made"
	t.Cleanup(func() { e.DeleteNamespace(made) })
	e.Start(harness.WithPolicy(plan.Policy{Recoveries: 3, RecoveryDelay: time.Second, SettleTime: 300 * time.Millisecond}),
		harness.WithChanges(func(c engine.Changes) engine.Changes {
			return intruder{c, func() {
				e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: " + made + "}}")
			}}
		}))

	txn := e.Run("txn", namespaceAndObject(made)+fixture.RefusedAtCommit)

	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	require.Equal(t, errclass.NotEmpty, txn.Status.Items[0].Reason)
	require.NoError(t, e.Kube.CoreV1().ConfigMaps(made).Delete(context.Background(), "theirs", metav1.DeleteOptions{}))
	rolledBackLater(t, e)
	assert.Nil(t, e.Object("Namespace/"+made))
	e.NothingLeft("txn")
}

// A Namespace with a workload of which the Pods take their time is waited for.
func TestANamespaceIsRolledBackOnceThePodsInItAreGone(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet", "Job"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.ClusterWide()
			made := e.Namespace + "-made"
			t.Cleanup(func() { e.DeleteNamespace(made) })
			e.Start(harness.WithPolicy(unaided))
			e.Submit("txn", slowWorkload(kind, made))
			inside := e.In(made)
			e.Until("the Pod is there", func() bool { return nameOfOne(inside, "v1 Pod") != "" })
			pod := nameOfOne(inside, "v1 Pod")
			e.Merge("person", "backup.janus.io/v1alpha1 Transaction/txn", `{"spec":{"cancel":"Rollback"}}`)

			txn := e.Await("txn", "waiting for the Pod", func(t *api.Transaction) bool {
				_, reason, message := harness.Condition(t, api.ConditionReconciling)
				return reason == errclass.Terminating && strings.Contains(message, "Pod "+pod)
			})
			assert.Equal(t, api.PhaseRollingBack, txn.Status.Phase)
			inside.Merge("person", "Pod/"+pod, `{"metadata":{"finalizers":null}}`)

			txn = e.Ended("txn")
			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			assert.Nil(t, e.Object("Namespace/"+made))
			e.NothingLeft("txn")
		})
	}
}

func slowWorkload(kind, namespace string) string {
	version, spec, template := "apps/v1", "replicas: 1, selector: {matchLabels: {app: web}},", ""
	switch kind {
	case "StatefulSet":
		spec += " serviceName: web,"
	case "Job":
		version, spec, template = "batch/v1", "", "restartPolicy: Never, "
	}
	return strings.NewReplacer("VERSION", version, "KIND", kind, "NS", namespace, "SPEC", spec, "POD", template).Replace(`
changes:
  - {target: {apiVersion: v1, kind: Namespace, name: NS}, type: Create, content: {}}
  - target: {apiVersion: VERSION, kind: KIND, namespace: NS, name: web}
    type: Create
    content:
      spec: {SPEC template: {metadata: {labels: {app: web}, finalizers: [example.com/slow]}, spec: {POD containers: [{name: web, image: example.com/web}]}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: gate}, type: Create, content: {}, readyWhen: {expression: "has(object.data)"}}
`)
}

// The undo of what cannot be undone in the reverse order says what is in the way.
func TestAnUndoThatAStricterSchemaRefusesNamesIt(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := groupOf(e)
	defineLimits(t, e, group)
	e.Apply("{apiVersion: " + group + "/v1, kind: Limit, metadata: {name: big}, spec: {size: 50}}")
	e.Start()
	txn := e.Run("tighten", "\nrevisionHistoryLimit: 10"+tightened(group))
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	e.Until("the schema is in force", func() bool {
		return tryApply(e, "{apiVersion: "+group+"/v1, kind: Limit, metadata: {name: probe}, spec: {size: 50}}") != nil
	})

	txn = e.Run("undo", "\nundoOf: {name: tighten}")

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	big := txn.Status.Items[0]
	assert.Equal(t, "big", big.Name)
	assert.Contains(t, big.Message, "item definition (CustomResourceDefinition limits."+group+"), which is undone after it")
	assert.Equal(t, int64(5), e.Object(group + "/v1 Limit/big").Object["spec"].(map[string]any)["size"])
}
