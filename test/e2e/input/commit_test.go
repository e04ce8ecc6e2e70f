package input

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

func TestAChangeThatIsRefusedOnlyWhenItIsMadeIsRolledBack(t *testing.T) {
	t.Parallel()
	runAll(t, []badInput{
		{
			name:  "the quota is used up by the Transaction itself",
			setup: fixture.ConfigMap, same: []string{"ConfigMap/app", "Service/a", "Service/b"},
			arrange: func(t *testing.T, e *harness.Env) {
				t.Helper()
				e.Apply(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: one}, spec: {hard: {count/services: "1"}}}`)
				require.NoError(t, harness.Poll(t.Context(), func(ctx context.Context) (bool, error) {
					quota, err := e.Kube.CoreV1().ResourceQuotas(e.Namespace).Get(ctx, "one", metav1.GetOptions{})
					return err == nil && len(quota.Status.Hard) == 1, err
				}))
			},
			spec: `
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {version: "2.0"}}}
  - {target: {apiVersion: v1, kind: Service, name: a}, type: Create, content: {spec: {ports: [{port: 80}]}}}
  - {target: {apiVersion: v1, kind: Service, name: b}, type: Create, content: {spec: {ports: [{port: 80}]}}}`,
			ends: harness.Ending{Phase: api.PhaseRolledBack, Reason: "Rejected", Validated: metav1.ConditionTrue, Says: []string{
				"item 2", "Service $NS/b", "exceeded quota: one", "raise the quota"}},
		},
		{
			name:  "a custom resource grows beyond what the store takes",
			setup: fixture.ConfigMap, same: []string{"ConfigMap/app", fixture.GadgetKind + "/big"},
			arrange: func(t *testing.T, e *harness.Env) {
				t.Helper()
				fixture.InstallGadgets(t, e)
				e.Apply(`{apiVersion: input.example.com/v1, kind: Gadget, metadata: {name: big}, spec: {blob: ` + strings.Repeat("b", 900_000) + `}}`)
			},
			spec: `
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {version: "2.0"}}}
  - {target: {apiVersion: input.example.com/v1, kind: Gadget, name: big}, type: Patch, content: {spec: {more: ` + strings.Repeat("m", 900_000) + `}}}`,
			ends: harness.Ending{Phase: api.PhaseRolledBack, Reason: "TooLarge", Validated: metav1.ConditionTrue, Says: []string{
				"item 1", "Gadget $NS/big", "request is too large"}},
		},
		midway("a Create whose target another client has created meanwhile", "Create", ", content: {data: {a: b}}", `
{apiVersion: v1, kind: ConfigMap, metadata: {name: second}, data: {of: somebody else}}`, "AlreadyExists", "use Patch or Update"),
		midway("a Delete whose target did not exist and another client has created meanwhile", "Delete", "", `
{apiVersion: v1, kind: ConfigMap, metadata: {name: second}, data: {of: somebody else}}`, "Drifted", "create the Transaction again"),
		vanishing("Patch", ", content: {data: {a: b}}"),
		vanishing("Update", ", content: {data: {a: b}}"),
	})
}

// midway is a Transaction whose second change, of a ConfigMap that does not exist,
// meets one that another client has created since it was prepared.
func midway(name, kind, content, act, reason, wayOut string) badInput {
	return badInput{
		name: name, setup: fixture.ConfigMap, same: []string{"ConfigMap/app"},
		options: func(e *harness.Env) []harness.Option {
			return []harness.Option{harness.Acting(harness.Around{Do: func(_ string, item int) {
				if item == 1 {
					e.Apply(act)
				}
			}})}
		},
		spec: `
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {version: "2.0"}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: second}, type: ` + kind + content + `}`,
		ends: harness.Ending{Phase: api.PhaseRolledBack, Reason: reason, Validated: metav1.ConditionTrue, Says: []string{
			"item 1", "ConfigMap $NS/second", wayOut}},
	}
}

func vanishing(kind, content string) badInput {
	row := midway("a "+kind+" whose target another client has deleted meanwhile makes no stub", kind, content, "", "Drifted", "create the Transaction again")
	row.setup += "\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: second}, data: {version: \"1.0\"}}"
	row.options = func(e *harness.Env) []harness.Option {
		return []harness.Option{harness.Acting(harness.Around{Do: func(_ string, item int) {
			if item == 1 {
				// A failure shows: the change is then made.
				_ = e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(context.Background(), "second", metav1.DeleteOptions{})
			}
		}})}
	}
	row.gone = []string{"ConfigMap/second"}
	return row
}

const waitingDelete = `
timeout: 8s
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {version: "2.0"}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: held}, type: Delete}
`

func TestADeleteThatAFinalizerKeepsFromFinishingFailsInTimeAndSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.ConfigMap)
	fixture.Held(t, e, "held")
	app := e.Object("ConfigMap/app")
	policy := harness.FastPolicy
	policy.Recoveries = 0
	e.Start(harness.WithPolicy(policy))

	txn := e.Run("stuck", waitingDelete)

	harness.Ending{Reason: "RollbackIncomplete", Cause: "DeadlineExceeded", Validated: metav1.ConditionTrue, Says: []string{
		"item 1 (ConfigMap " + e.Namespace + "/held)", "not done within spec.timeout (8s)", "waits for its finalizers example.com/hold"}}.Check(t, e, txn)
	_, _, message := harness.Condition(txn, api.ConditionSucceeded)
	assert.Contains(t, message, "ConfigMap "+e.Namespace+"/held", "what was waited for")
	e.Same(app, "ConfigMap/app")
	e.NothingLeft("stuck")
}

func TestADeleteThatAFinalizerKeptTooLongIsRolledBackOnceItIsGone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.ConfigMap)
	fixture.Held(t, e, "held")
	app, kept := e.Object("ConfigMap/app"), e.Object("ConfigMap/held")
	e.Start()

	e.Submit("late", strings.Replace(waitingDelete, "1s", "3s", 1))
	e.Await("late", "rolling back", func(txn *api.Transaction) bool { return txn.Status.Phase == api.PhaseRollingBack })
	fixture.LetGo(t, e, "held")
	txn := e.Await("late", "rolled back", func(txn *api.Transaction) bool { return txn.Status.Phase == api.PhaseRolledBack })

	harness.Ending{Phase: api.PhaseRolledBack, Reason: "DeadlineExceeded", Validated: metav1.ConditionTrue, Says: []string{
		"not done within spec.timeout (8s)", "ConfigMap " + e.Namespace + "/held", "waits for its finalizers example.com/hold"}}.Check(t, e, txn)
	e.Same(app, "ConfigMap/app")
	e.Same(kept, "ConfigMap/held")
	e.NothingLeft("late")
}

// blockedNamespace is a namespace that is being deleted and cannot go before the
// test ends.
func blockedNamespace(t *testing.T, e *harness.Env) *harness.Env {
	t.Helper()
	other := otherNamespace(t, e)
	fixture.Held(t, other, "held")
	other.Apply(fixture.ConfigMap)
	return other
}

func deleteNamespace(t *testing.T, e *harness.Env) {
	t.Helper()
	assert.NoError(t, e.Kube.CoreV1().Namespaces().Delete(context.Background(), e.Namespace, metav1.DeleteOptions{}))
}

func TestATargetInANamespaceThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	other := blockedNamespace(t, e)
	deleteNamespace(t, other)
	e.Start()
	for _, row := range []struct{ name, target, kind, content string }{
		{"create", "new", "Create", ", content: {data: {a: b}}"},
		{"patch", "held", "Patch", ", content: {data: {a: b}}"},
		{"delete", "held", "Delete", ""},
	} {
		kept := other.Object("ConfigMap/" + row.target)
		txn := e.Run(row.name, "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: "+row.target+", namespace: "+other.Namespace+"}, type: "+row.kind+row.content+"}]")
		harness.Ending{Reason: "Terminating", Says: []string{
			other.Namespace + "/" + row.target, "is being deleted", "wait until it is gone"}}.Check(t, e, txn)
		if row.kind == "Create" {
			other.Same(kept, "ConfigMap/"+row.target)
		}
		e.NothingLeft(row.name)
	}
}

func TestATransactionWhoseNamespaceIsDeletedMidwayLetsItGo(t *testing.T) {
	t.Parallel()
	for _, onDelete := range []string{"Release", "Rollback"} {
		t.Run(onDelete, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			own := e.In(testcluster.Namespace(t))
			own.Apply(fixture.TwoConfigMaps + strings.ReplaceAll(`
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: deployer}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: $NS}]
`, "$NS", own.Namespace))
			own.Start(harness.Acting(harness.Around{Do: func(_ string, item int) {
				if item == 1 {
					deleteNamespace(t, own)
					own.Await("doomed", "being deleted", func(txn *api.Transaction) bool { return txn.DeletionTimestamp != nil })
				}
			}}))

			own.Submit("doomed", "onDelete: "+onDelete+fixture.TwoPatches)
			own.Gone("doomed")
			own.Until("the namespace is gone", func() bool { return own.Object("Namespace/"+own.Namespace) == nil })
			own.NothingLeft("doomed")
		})
	}
}

func TestATransactionCannotBeMadeInANamespaceThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	other := blockedNamespace(t, e)
	deleteNamespace(t, other)

	err := other.TrySubmit("bad", fixture.OneChange("Patch", "{data: {a: b}}"))

	require.Error(t, err)
	assert.Contains(t, err.Error(), "because it is being terminated")
}

// spoil is a Transaction that is rolled back after act, which happens just before
// the first item is rolled back.
func spoil(t *testing.T, act func(e *harness.Env)) (*harness.Env, *api.Transaction, time.Time) {
	t.Helper()
	e := harness.New(t)
	e.Apply(fixture.ConfigMap)
	var once sync.Once
	var at atomic.Pointer[time.Time]
	late := harness.Around{
		Do: func(_ string, item int) {
			if item == 1 {
				e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: late}, data: {of: somebody else}}`)
			}
		},
		Undo: func(string, int) {
			once.Do(func() {
				act(e)
				now := time.Now()
				at.Store(&now)
			})
		},
	}
	e.Start(harness.Acting(late))
	txn := e.Run("spoiled", patchThenLate(fixture.OneChange("Patch", `{data: {version: "2.0"}}`)))
	require.NotNil(t, at.Load(), "nothing was rolled back: %s", harness.Describe(txn))
	return e, txn, *at.Load()
}

// noTargetWritten asserts that the ServiceAccount has made the change and written
// nothing since.
func noTargetWritten(t *testing.T, e *harness.Env, since time.Time) {
	t.Helper()
	events, err := testcluster.Shared(t).Audit(e.Namespace)
	require.NoError(t, err)
	writes := testcluster.Filter(events, testcluster.Persisted, testcluster.OnResource("", "configmaps"),
		testcluster.ByActor("system:serviceaccount:"+e.Namespace+":deployer"))
	if assert.Len(t, writes, 1, "writes to targets") {
		assert.True(t, writes[0].Received.Before(since), "it is the change itself")
	}
}

func deleteImage(e *harness.Env) {
	e.Merge("intruder", "ConfigMap/spoiled-rollback", `{"metadata":{"finalizers":null}}`)
	_ = e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(context.Background(), "spoiled-rollback", metav1.DeleteOptions{})
}

func TestABeforeImageThatSomebodyHasReplacedIsNotRestored(t *testing.T) {
	t.Parallel()
	e, txn, at := spoil(t, func(e *harness.Env) {
		image := e.Object("ConfigMap/spoiled-rollback")
		deleteImage(e)
		data, _ := image.Object["data"].(map[string]any)
		for key, value := range data {
			data[key] = strings.ReplaceAll(value.(string), "1.0", "6.6")
		}
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
			delete(image.Object["metadata"].(map[string]any), field)
		}
		client, err := e.For(image.GroupVersionKind(), e.Namespace)
		if assert.NoError(t, err) {
			_, err = client.Create(context.Background(), image, metav1.CreateOptions{FieldManager: "intruder"})
			assert.NoError(t, err)
		}
	})

	harness.Ending{Reason: "RollbackIncomplete", Cause: "AlreadyExists", Validated: metav1.ConditionTrue, Says: []string{
		"item 0 (ConfigMap " + e.Namespace + "/app)", "before-image"}}.Check(t, e, txn)
	assert.Equal(t, "BeforeImageTampered", txn.Status.Items[0].Reason)
	assert.Equal(t, "2.0", e.Value("ConfigMap/app", "data", "version"))
	harness.AwaitEventOf(t, e, txn, "BeforeImageTampered")
	noTargetWritten(t, e, at)
	time.Sleep(500 * time.Millisecond)
	assert.Equal(t, int32(0), e.Transaction("spoiled").Status.Recoveries, "it cannot heal, and is not tried again")
}

func TestABeforeImageThatSomebodyHasDeletedIsReportedLost(t *testing.T) {
	t.Parallel()
	e, txn, at := spoil(t, deleteImage)

	harness.Ending{Reason: "RollbackIncomplete", Cause: "AlreadyExists", Validated: metav1.ConditionTrue, Says: []string{
		"item 0 (ConfigMap " + e.Namespace + "/app)", "before-image"}}.Check(t, e, txn)
	assert.Equal(t, "BeforeImageLost", txn.Status.Items[0].Reason)
	assert.Equal(t, "2.0", e.Value("ConfigMap/app", "data", "version"))
	harness.AwaitEventOf(t, e, txn, "BeforeImageLost")
	noTargetWritten(t, e, at)
	e.NothingLeft("spoiled")
}
