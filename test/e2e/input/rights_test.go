package input

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

func TestWhatTheServiceAccountMayNotDoDoesNotHappen(t *testing.T) {
	t.Parallel()
	runAll(t, []badInput{
		{
			name: "the ServiceAccount does not exist", setup: fixture.ConfigMap,
			spec: "serviceAccountName: nobody\n" + fixture.OneChange("Patch", "{data: {a: b}}"), same: []string{"ConfigMap/app"},
			ends: harness.Ending{Reason: "ServiceAccountGone", Says: []string{"ServiceAccount $NS/nobody", "does not exist", "create it, with the rights"}},
		},
		denied("read a target", "patch", "Patch", "{data: {a: b}}", "get", "making item 0 needs it"),
		denied("patch a target", "get", "Patch", "{data: {a: b}}", "patch", "making item 0 needs it"),
		denied("update a target", "get, patch", "Update", "{data: {a: b}}", "update", "making item 0 needs it"),
		denied("undo an Update", "get, update", "Update", "{data: {a: b}}", "patch", "rolling back item 0 needs it"),
		deniedNew("create a target", "get, delete", "create", "making item 0 needs it"),
		deniedNew("undo a Create", "get, create, patch", "delete", "rolling back item 0 needs it"),
		deniedDelete("delete a target", "get, create, patch", "delete", "making item 0 needs it"),
		deniedDelete("undo a Delete", "get, delete, patch", "create", "rolling back item 0 needs it"),
		deniedDelete("give the fields of a deleted target back to their owners", "get, delete, create", "patch", "rolling back item 0 needs it"),
		{
			name: "it may only touch another object", setup: fixture.ConfigMap + fixture.LimitedTo(`get, patch], resourceNames: [other`),
			spec: "serviceAccountName: limited\n" + fixture.OneChange("Patch", "{data: {a: b}}"), same: []string{"ConfigMap/app"},
			ends: harness.Ending{Reason: "AccessDenied", Says: []string{"may not get and patch ConfigMap $NS/app", "grant it get and patch on configmaps"}},
		},
		{
			name: "the target is in a namespace where it has no rights",
			spec: `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app, namespace: kube-system}, type: Create, content: {data: {a: b}}}]`,
			ends: harness.Ending{Reason: "AccessDenied", Says: []string{"ConfigMap kube-system/app", "ServiceAccount $NS/deployer may not get, create and delete", "grant it get, create and delete on configmaps"}},
		},
		{
			name: "the target is cluster-scoped and it has rights in its namespace alone",
			spec: `changes: [{target: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: "input:$NS"}, type: Create, content: {rules: []}}]`,
			ends: harness.Ending{Reason: "AccessDenied", Says: []string{"ClusterRole input:$NS", "grant it get, create and delete on clusterroles.rbac.authorization.k8s.io"}},
		},
		{
			name: "it would grant more than it has", setup: fixture.LimitedTo("get") + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: roles}
rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [get, create, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: roles}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: roles}
subjects: [{kind: ServiceAccount, name: limited, namespace: $NS}]
`,
			spec: `
serviceAccountName: limited
changes: [{target: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: more}, type: Create, content: {rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}}]`,
			same: []string{"rbac.authorization.k8s.io/v1 Role/more"},
			ends: harness.Ending{Reason: "Rejected", Says: []string{"Role $NS/more", "attempting to grant", "bind or escalate on the role"}},
		},
	})
}

func denied(what, verbs, kind, content, missing, why string) badInput {
	return badInput{
		name:  "it may not " + what,
		setup: fixture.ConfigMap + fixture.LimitedTo(verbs), same: []string{"ConfigMap/app"},
		spec: "serviceAccountName: limited\n" + fixture.OneChange(kind, content),
		ends: harness.Ending{Reason: "AccessDenied", Says: []string{
			missing + " ConfigMap $NS/app", "ServiceAccount $NS/limited may not", why, "grant it " + missing + " on configmaps"}},
	}
}

func deniedNew(what, verbs, missing, why string) badInput {
	row := denied(what, verbs, "Create", "{data: {a: b}}", missing, why)
	row.setup = fixture.LimitedTo(verbs)
	return row
}

func deniedDelete(what, verbs, missing, why string) badInput {
	row := denied(what, verbs, "Delete", "", missing, why)
	row.spec = "serviceAccountName: limited\nchanges: [{target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Delete}]"
	return row
}

func TestATransactionCannotActAsJanusItself(t *testing.T) {
	t.Parallel()
	e := harness.New(t).In(harness.SystemNamespace)
	e.Start()

	txn := e.Run("as-janus", `
serviceAccountName: janusd
changes: [{target: {apiVersion: v1, kind: ConfigMap, name: of-janus}, type: Create, content: {data: {a: b}}}]`)

	harness.Ending{Reason: "AccessDenied", Says: []string{
		"ServiceAccount janus-system/janusd", "the identity of Janus itself", "name a ServiceAccount that may do just what"}}.Check(t, e, txn)
	e.Same(nil, "ConfigMap/of-janus")
	e.NothingLeft("as-janus")
}

// losing is an Env whose ServiceAccount is deleted just before the second change
// is made, for the first time that is.
func losing(t *testing.T, policy plan.Policy) *harness.Env {
	t.Helper()
	e := harness.New(t)
	e.Apply(fixture.TwoConfigMaps)
	var once sync.Once
	e.Start(harness.WithPolicy(policy), harness.Acting(harness.Around{Do: func(_ string, item int) {
		if item == 1 {
			once.Do(func() {
				assert.NoError(t, e.Kube.CoreV1().ServiceAccounts(e.Namespace).Delete(context.Background(), "deployer", metav1.DeleteOptions{}))
			})
		}
	}}))
	return e
}

func TestATransactionWhoseServiceAccountIsDeletedMidwayEndsAndClaimsNoRollback(t *testing.T) {
	t.Parallel()
	policy := harness.FastPolicy
	policy.RecoveryDelay = 50 * time.Millisecond
	e := losing(t, policy)
	second := e.Object("ConfigMap/app-2")

	e.Submit("orphan", fixture.TwoPatches)
	txn := e.Await("orphan", "given up", func(txn *api.Transaction) bool {
		return txn.Status.Phase == api.PhaseFailed && txn.Status.Recoveries == policy.Recoveries
	})

	harness.Ending{Reason: "RollbackIncomplete", Cause: "ServiceAccountGone", Validated: metav1.ConditionTrue, Says: []string{
		"item 0 (ConfigMap " + e.Namespace + "/app)", "ServiceAccount " + e.Namespace + "/deployer", "create it, with the rights"}}.Check(t, e, txn)
	assert.Equal(t, "2.0", e.Value("ConfigMap/app", "data", "version"), "it is not rolled back, and nobody says so")
	e.Same(second, "ConfigMap/app-2")
	e.NothingLeft("orphan")
	// Validated, prepared, two intents, turned, and for the first attempt and each
	// recovery at most three.
	assert.LessOrEqual(t, txn.Status.Version, int64(6+3*(1+policy.Recoveries)), "status writes")
	quiet := e.Transaction("orphan").ResourceVersion
	time.Sleep(500 * time.Millisecond)
	assert.Equal(t, quiet, e.Transaction("orphan").ResourceVersion, "it is still being written")
	assert.NotEmpty(t, txn.Status.RollbackRef, "the before-images are kept")
}

func TestATransactionIsRolledBackOnceItsServiceAccountIsThereAgain(t *testing.T) {
	t.Parallel()
	policy := harness.FastPolicy
	policy.RecoveryDelay = 2 * time.Second
	e := losing(t, policy)
	first, second := e.Object("ConfigMap/app"), e.Object("ConfigMap/app-2")

	txn := e.Run("orphan", fixture.TwoPatches)
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	e.Apply(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: deployer}}`)

	txn = e.Await("orphan", "rolled back", func(txn *api.Transaction) bool { return txn.Status.Phase == api.PhaseRolledBack })
	harness.Ending{Phase: api.PhaseRolledBack, Reason: "ServiceAccountGone", Validated: metav1.ConditionTrue, Says: []string{
		"item 1", "ServiceAccount " + e.Namespace + "/deployer", "create it, with the rights"}}.Check(t, e, txn)
	e.Same(first, "ConfigMap/app")
	e.Same(second, "ConfigMap/app-2")
	e.NothingLeft("orphan")
}

func TestAServiceAccountThatIsReplacedMidwayIsNotUsedToGoOn(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.TwoConfigMaps)
	first, second := e.Object("ConfigMap/app"), e.Object("ConfigMap/app-2")
	e.Start(harness.Acting(harness.Around{Do: func(_ string, item int) {
		if item == 1 {
			if assert.NoError(t, e.Kube.CoreV1().ServiceAccounts(e.Namespace).Delete(context.Background(), "deployer", metav1.DeleteOptions{})) {
				e.Apply(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: deployer}}`)
			}
		}
	}}))

	txn := e.Run("replaced", fixture.TwoPatches)

	harness.Ending{Phase: api.PhaseRolledBack, Reason: "ServiceAccountGone", Validated: metav1.ConditionTrue, Says: []string{
		"ServiceAccount " + e.Namespace + "/deployer", "deleted and re-created while the Transaction ran", "create the Transaction again"}}.Check(t, e, txn)
	e.Same(first, "ConfigMap/app")
	e.Same(second, "ConfigMap/app-2")
	e.NothingLeft("replaced")
}

func TestRightsThatAreTakenAwayMidway(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.TwoConfigMaps)
	second := e.Object("ConfigMap/app-2")
	policy := harness.FastPolicy
	policy.Recoveries = 1
	e.Start(harness.WithPolicy(policy), harness.Acting(harness.Around{Do: func(_ string, item int) {
		if item == 1 {
			if assert.NoError(t, e.Kube.RbacV1().RoleBindings(e.Namespace).Delete(context.Background(), "deployer", metav1.DeleteOptions{})) {
				awaitDenied(t, e)
			}
		}
	}}))

	e.Submit("stripped", fixture.TwoPatches)
	txn := e.Await("stripped", "given up", func(txn *api.Transaction) bool {
		return txn.Status.Phase == api.PhaseFailed && txn.Status.Recoveries == policy.Recoveries
	})

	harness.Ending{Reason: "RollbackIncomplete", Cause: "AccessDenied", Validated: metav1.ConditionTrue, Says: []string{
		"ConfigMap " + e.Namespace + "/app", "forbidden", "grant ServiceAccount " + e.Namespace + "/deployer"}}.Check(t, e, txn)
	e.Same(second, "ConfigMap/app-2")
	e.NothingLeft("stripped")
}

// awaitDenied waits until the API server has noticed that deployer has no rights.
func awaitDenied(t *testing.T, e *harness.Env) {
	config := *e.Config
	config.Impersonate.UserName = "system:serviceaccount:" + e.Namespace + ":deployer"
	client, err := harness.NewClient(&config)
	if !assert.NoError(t, err) {
		return
	}
	assert.NoError(t, harness.Poll(context.Background(), func(ctx context.Context) (bool, error) {
		_, err := client.Kube.CoreV1().ConfigMaps(e.Namespace).Get(ctx, "app", metav1.GetOptions{})
		return err != nil, nil
	}))
}

func TestATargetInAnotherNamespaceWhereTheServiceAccountHasRights(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	other := otherNamespace(t, e)
	other.Apply(fixture.ConfigMap + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deployer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: ` + e.Namespace + `}]
`)
	app := other.Object("ConfigMap/app")
	e.Start(failingAt(1)(e)...)
	patch := "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app, namespace: " + other.Namespace + "}, type: Patch, content: {data: {version: \"2.0\"}}}]"

	txn := e.Run("back", patchThenLate(patch))
	lateExists.In(e).Check(t, e, txn)
	other.Same(app, "ConfigMap/app")
	e.NothingLeft("back")

	txn = e.Run("forward", patch)
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "2.0", other.Value("ConfigMap/app", "data", "version"))
	e.NothingLeft("forward")
}
