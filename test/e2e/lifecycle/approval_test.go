package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// approved makes four changes of different types once they are approved.
const approved = `{approval: {required: true}, changes: [
  {name: patch, target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2"}}},
  {name: update, target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Update, content: {data: {version: "2"}}},
  {name: create, target: {apiVersion: v1, kind: Service, name: made}, type: Create, content: {spec: {selector: {app: web}, ports: [{port: 80}]}}},
  {name: pod, target: {apiVersion: v1, kind: Pod, name: made}, type: Create, content: {spec: {serviceAccountName: deployer, containers: [{name: web, image: web}]}}},
  {name: drop, target: {apiVersion: v1, kind: ConfigMap, name: dropped}, type: Delete}]}`

const dropped = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: dropped}, data: {version: \"1\"}}\n"

func guarded(t *testing.T) *harness.Env {
	t.Helper()
	e := harness.New(t)
	e.GuardApprovals()
	e.Apply(fixture.AB + dropped)
	e.Start()
	return e
}

// A Transaction stands with its plan, holding nothing, until it is approved; and what each
// dry run chooses by itself, such as the address of a Service or the name of a volume of a Pod,
// makes no other plan.
func TestATransactionStandsUntilItsPlanIsApproved(t *testing.T) {
	t.Parallel()
	e := guarded(t)
	before := dataOf(e, "a", "b", "dropped")
	e.Submit("release", approved)
	txn := e.Standing("release", 1)
	assert.Equal(t, api.PhasePending, txn.Status.Phase)
	ready := meta.FindStatusCondition(txn.Status.Conditions, api.ConditionReady)
	require.NotNil(t, ready)
	assert.Equal(t, plan.AwaitingApproval, ready.Reason)
	assert.Contains(t, ready.Message, "plan "+txn.Status.Approval.Digest+" waits for approval: kubectl janus approve release -n "+e.Namespace)
	assert.True(t, meta.IsStatusConditionFalse(txn.Status.Conditions, api.ConditionApproved))
	for _, item := range txn.Status.Items {
		require.NotNil(t, item.Plan, "%s", item.Name)
		assert.Len(t, item.Plan.Digest, 64, "%s", item.Name)
		assert.Empty(t, item.LockLease)
	}
	assert.Empty(t, e.Names("coordination.k8s.io/v1 Lease", "app.kubernetes.io/managed-by=janus"), "no lock is held meanwhile")
	assert.Equal(t, before, dataOf(e, "a", "b", "dropped"))
	e.AwaitEvent("release", plan.AwaitingApproval)

	e.Approve(txn)
	txn = e.Ended("release")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, harness.Approver(e.Namespace), txn.Status.Approval.ApprovedBy)
	assert.NotNil(t, txn.Status.Approval.ApprovalTime)
	assert.EqualValues(t, 1, txn.Status.Approval.Plans)
	assert.True(t, meta.IsStatusConditionTrue(txn.Status.Conditions, api.ConditionApproved))
	e.AwaitEvent("release", plan.ReasonApproved)
	e.NothingLeft("release")
}

// What the pre-flight refuses is no part of the plan. The others wait for their approval, and are
// made.
func TestAPlanOfWhatIsLeftStandsToo(t *testing.T) {
	t.Parallel()
	e := guarded(t)
	e.Submit("release", `{approval: {required: true}, onFailure: Continue, changes: [
  {name: taken, target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Create, content: {data: {version: "2"}}},
  {name: patch, target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {version: "2"}}}]}`)
	txn := e.Standing("release", 1)
	assert.Equal(t, errclass.AlreadyExists, txn.Status.Items[0].Reason)
	assert.Equal(t, api.ItemPending, txn.Status.Items[1].State)
	assert.Equal(t, "1", e.Value("ConfigMap/b", "data", "version"))
	assert.Empty(t, e.Names("coordination.k8s.io/v1 Lease", "app.kubernetes.io/managed-by=janus"), "no lock is held meanwhile")

	e.Approve(txn)
	txn = e.Ended("release")
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, api.ItemCommitted, txn.Status.Items[1].State)
	assert.Equal(t, "2", e.Value("ConfigMap/b", "data", "version"))
	assert.EqualValues(t, 1, txn.Status.Approval.Plans)
}

// What a person writes into a field of the plan, or a target that is another object, makes
// another plan; a write to what the plan does not touch does not.
func TestAPlanThatHasChangedNeedsAnotherApproval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		write func(t *testing.T, e *harness.Env)
		item  string
	}{
		"a value that is replaced":     {func(_ *testing.T, e *harness.Env) { e.Merge("person", "ConfigMap/a", `{"data":{"version":"7"}}`) }, "patch"},
		"a field that an update drops": {func(_ *testing.T, e *harness.Env) { e.Merge("person", "ConfigMap/b", `{"data":{"more":"7"}}`) }, "update"},
		"a field of what is deleted":   {func(_ *testing.T, e *harness.Env) { e.Merge("person", "ConfigMap/dropped", `{"data":{"version":"7"}}`) }, "drop"},
		"the owner of a field": {func(_ *testing.T, e *harness.Env) {
			e.Merge("person", "ConfigMap/a", `{"data":{"version":"7"}}`)
			e.Merge("person", "ConfigMap/a", `{"data":{"version":"1"}}`)
		}, "patch"},
		"another object of the name": {func(t *testing.T, e *harness.Env) {
			require.NoError(t, e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(e.Context(), "dropped", metav1.DeleteOptions{}))
			e.Apply(dropped)
		}, "drop"},
		"nothing that it would touch": {func(_ *testing.T, e *harness.Env) { e.Merge("person", "ConfigMap/a", `{"data":{"untouched":"7"}}`) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := guarded(t)
			e.Submit("release", approved)
			first := e.Standing("release", 1)
			c.write(t, e)
			e.Approve(first)
			if c.item == "" {
				require.Equal(t, api.PhaseCommitted, e.Ended("release").Status.Phase)
				return
			}
			second := e.Standing("release", 2)
			assert.Equal(t, []string{c.item}, second.Status.Approval.Changed)
			assert.NotEqual(t, first.Status.Approval.Digest, second.Status.Approval.Digest)
			assert.Empty(t, second.Status.Approval.ApprovedBy)
			assert.Empty(t, e.Names("coordination.k8s.io/v1 Lease", "app.kubernetes.io/managed-by=janus"), "its locks are released")
			assert.Empty(t, e.Names("v1 ConfigMap", "app.kubernetes.io/managed-by=janus"), "its before-images are gone")
			e.AwaitEvent("release", plan.ReasonPlanChanged)
			e.Approve(second)
			txn := e.Ended("release")
			require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			assert.EqualValues(t, 2, txn.Status.Approval.Plans)
			e.NothingLeft("release")
		})
	}
}

// Only the policy makes an approval worth anything. It refuses another's name, a user without
// the right, and any plan but the one that stands.
func TestNobodyApprovesWhoMayNot(t *testing.T) {
	t.Parallel()
	e := guarded(t)
	e.Submit("release", approved)
	txn := e.Standing("release", 1)
	name, user := types.NamespacedName{Namespace: e.Namespace, Name: "release"}, harness.Approver(e.Namespace)
	digest := txn.Status.Approval.Digest
	err := e.ApproveAs(t.Context(), user, name, digest, "joe")
	require.ErrorContains(t, err, `may not approve a plan in the name of "joe"`)
	err = e.ApproveAs(t.Context(), user, name, "4711", user)
	require.ErrorContains(t, err, "plan "+digest+" does; look at it, and approve that")
	e.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: editor}
rules: [{apiGroups: [backup.janus.io], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: editor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: editor}]
`)
	require.Eventually(t, func() bool {
		err = e.ApproveAs(t.Context(), "editor", name, digest, "editor")
		return errclass.PolicyOf(err) == api.ApprovalPolicy
	}, time.Minute, 20*time.Millisecond, "the editor may patch by then")
	require.ErrorContains(t, err, "the verb approve counts on transactions.approve.janus.io, and no more on transactions/approval in backup.janus.io")
	require.True(t, apierrors.IsForbidden(err))
	assert.Equal(t, api.PhasePending, e.Transaction("release").Status.Phase)
	e.Merge("person", harness.TransactionRef+"release", `{"spec":{"cancel":"Rollback"}}`)
	ended := e.Ended("release")
	assert.Equal(t, api.PhaseFailed, ended.Status.Phase)
	assert.Equal(t, "NotApproved", meta.FindStatusCondition(ended.Status.Conditions, api.ConditionApproved).Reason)
	e.NothingLeft("release")
}

// Without the policy anyone could approve anything: the pre-flight says so.
func TestApprovalsThatNobodyGuardsAreRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB + dropped)
	e.Start()
	txn := e.Run("release", approved)
	require.Equal(t, api.PhaseFailed, txn.Status.Phase)
	ready := meta.FindStatusCondition(txn.Status.Conditions, api.ConditionReady)
	assert.Equal(t, errclass.ApprovalUnguarded, ready.Reason)
	assert.Contains(t, ready.Message, "the policy transaction-approvals.backup.janus.io is not in force; install what is in deploy/policies")
	e.NothingLeft("release")
}

// The policy is taken away while a plan stands: an approval that is written then is anyone's.
func TestAnApprovalIsNotBelievedOnceNobodyGuardsIt(t *testing.T) {
	t.Parallel()
	e := guarded(t)
	e.Submit("release", approved)
	txn := e.Standing("release", 1)
	require.NoError(t, e.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), "approvals-"+e.Namespace, metav1.DeleteOptions{}))
	e.Until("approvals are not guarded", func() bool { return !e.ApprovalsGuarded(t.Context(), e.Namespace) })
	e.Approve(txn)
	ended := e.Ended("release")
	assert.Equal(t, api.PhaseFailed, ended.Status.Phase)
	assert.Equal(t, errclass.ApprovalUnguarded, meta.FindStatusCondition(ended.Status.Conditions, api.ConditionReady).Reason)
	e.NothingLeft("release")
}

// A plan that stands for too long ends; the time that it stands is not that of the changes.
func TestHowLongAPlanMayStand(t *testing.T) {
	t.Parallel()
	e := guarded(t)
	e.Submit("late", `{approval: {required: true, timeout: 1s}, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2"}}}]}`)
	txn := e.Ended("late")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase)
	assert.Equal(t, errclass.ApprovalTimeout, meta.FindStatusCondition(txn.Status.Conditions, api.ConditionReady).Reason)
	e.NothingLeft("late")

	e.Submit("slow", `{approval: {required: true}, timeout: 5s, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2"}}}]}`)
	txn = e.Standing("slow", 1)
	time.Sleep(6 * time.Second) // Longer than spec.timeout.
	e.Approve(txn)
	txn = e.Ended("slow")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.GreaterOrEqual(t, txn.Status.Approval.WaitedSeconds, int64(5))
}

// An undo can need an approval too, and a plan alone never does.
func TestWhatElseNeedsApproval(t *testing.T) {
	t.Parallel()
	e := guarded(t)
	plain := e.Run("release", `{revisionHistoryLimit: 10, changes: [{name: patch, target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2"}}}]}`)
	require.Equal(t, api.PhaseCommitted, plain.Status.Phase)
	e.Submit("undo", `{approval: {required: true}, undoOf: {name: release}}`)
	e.Approve(e.Standing("undo", 1))
	require.Equal(t, api.PhaseCommitted, e.Ended("undo").Status.Phase)
	dry := e.Run("dry", `{dryRun: true, approval: {required: true}, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2"}}}]}`)
	assert.Equal(t, api.PhasePlanned, dry.Status.Phase, harness.Describe(dry))
	assert.Nil(t, dry.Status.Approval)
}

// Nothing of a Secret can be told from what is shown or compared.
func TestAnApprovalTellsNothingOfASecret(t *testing.T) {
	t.Parallel()
	e := guarded(t)
	e.Apply(`{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {value: one}}`)
	const spec = `{approval: {required: true}, changes: [{name: key, target: {apiVersion: v1, kind: Secret, name: key}, type: Patch, content: {stringData: {value: two}}}]}`
	e.Submit("release", spec)
	first := e.Standing("release", 1)
	e.Merge("person", "Secret/key", `{"stringData":{"value":"three"}}`)
	e.Approve(first)
	second := e.Standing("release", 2)
	assert.Equal(t, []string{"key"}, second.Status.Approval.Changed, "its resourceVersion tells that it is another one")
	e.Approve(second)
	require.Equal(t, api.PhaseCommitted, e.Ended("release").Status.Phase)
}

// It can be suspended while it stands, deleted, and started again by another process.
func TestAPlanThatStandsOutlivesJanusd(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.GuardApprovals()
	e.Apply(fixture.AB + dropped)
	first := e.Start()
	e.Submit("release", approved)
	txn := e.Standing("release", 1)
	e.Merge("person", harness.TransactionRef+"release", `{"spec":{"suspend":true}}`)
	e.Await("release", "it is suspended", func(t *api.Transaction) bool { return t.Status.SuspendTime != nil })
	first.Stop()
	e.Approve(txn)
	e.Start()
	time.Sleep(2 * time.Second)
	assert.Equal(t, api.PhasePending, e.Transaction("release").Status.Phase, "it is suspended")
	e.Merge("person", harness.TransactionRef+"release", `{"spec":{"suspend":false}}`)
	txn = e.Ended("release")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.EqualValues(t, 1, txn.Status.Approval.Plans)

	e.Submit("gone", `{approval: {required: true}, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "3"}}}]}`)
	e.Standing("gone", 1)
	e.Delete("gone", metav1.DeletePropagationBackground)
	e.Gone("gone")
}
