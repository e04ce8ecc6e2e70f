package concurrency

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authzv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

const limited = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: limited}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: limited}
rules:
  - {apiGroups: [""], resources: [configmaps, services], verbs: [get, create, update, patch, delete]}
`

const limitedBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: limited}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: limited}
subjects: [{kind: ServiceAccount, name: limited}]
`

const limitedSpec = `
serviceAccountName: limited
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: patched}
    type: Patch
    content: {data: {version: "2"}}
` + fixture.RefusedAtCommit

// grant gives ServiceAccount limited its rights, or takes them, and waits until the
// API server knows.
func grant(t *testing.T, e *harness.Env, give bool) {
	t.Helper()
	if give {
		e.Apply(limitedBinding)
	} else {
		require.NoError(t, e.Kube.RbacV1().RoleBindings(e.Namespace).Delete(context.Background(), "limited", metav1.DeleteOptions{}))
	}
	e.Until("the rights are as wanted", func() bool {
		review, err := e.Kube.AuthorizationV1().SubjectAccessReviews().Create(context.Background(), &authzv1.SubjectAccessReview{
			Spec: authzv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + e.Namespace + ":limited",
				ResourceAttributes: &authzv1.ResourceAttributes{Verb: "patch", Resource: "configmaps", Version: "v1", Namespace: e.Namespace},
			},
		}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed == give
	})
}

// runUntilDenied runs a Transaction whose rights are taken away when its rollback
// begins.
func runUntilDenied(t *testing.T, policy plan.Policy) *harness.Env {
	t.Helper()
	e := harness.New(t)
	e.Apply(fixture.FourObjects)
	e.Apply(limited)
	grant(t, e, true)
	e.Refuse()
	taken := false
	e.Start(harness.WithPolicy(policy), harness.Recording(harness.Journaling{After: func(txn *api.Transaction) {
		if !taken && txn.Status.Phase == api.PhaseRollingBack {
			taken = true
			grant(t, e, false)
		}
	}}))
	e.Submit("txn", limitedSpec)
	return e
}

func TestRightsTakenAwayDuringTheRollbackAndNeverGivenBackEndFailedAfterABoundedNumberOfWrites(t *testing.T) {
	t.Parallel()
	policy := harness.FastPolicy
	e := runUntilDenied(t, policy)

	txn := e.Await("txn", "Failed for good", func(txn *api.Transaction) bool {
		return txn.Status.Phase == api.PhaseFailed && txn.Status.Recoveries == policy.Recoveries
	})

	assert.Equal(t, plan.Nothing, plan.Decide(txn, plan.InFlight{}, time.Now().Add(24*time.Hour), policy).Verb, "nothing more is ever done")
	assert.Equal(t, errclass.AccessDenied, txn.Status.Items[0].Reason)
	assert.Contains(t, txn.Status.Items[0].Message, "limited\" cannot get resource \"configmaps\"")
	assert.Equal(t, "2", e.Value("ConfigMap/patched", "data", "version"))
	e.NothingLeft("txn")
	// Validated, prepared, begun, two committed, one refused, one set aside, two undone or
	// not, and the end; then each recovery has its begin, what it sets aside and the items it
	// may heal, and its end.
	writes := testcluster.Filter(e.Audit(), testcluster.InNamespace(e.Namespace), testcluster.Persisted,
		func(r testcluster.AuditEvent) bool { return r.Resource == "transactions" && r.Subresource == "status" })
	assert.LessOrEqual(t, len(writes), 11+5*int(policy.Recoveries))
	assert.Len(t, writes, int(txn.Status.Version), "every status write is a checkpoint")
}

func TestRightsTakenAwayDuringTheRollbackAndGivenBackEndRolledBack(t *testing.T) {
	t.Parallel()
	e := runUntilDenied(t, plan.Policy{Recoveries: 6, RecoveryDelay: 100 * time.Millisecond, SettleTime: 100 * time.Millisecond})
	before := "1"
	e.Await("txn", "Failed", func(txn *api.Transaction) bool { return txn.Status.Phase == api.PhaseFailed })

	grant(t, e, true)

	txn := e.Await("txn", "RolledBack", func(txn *api.Transaction) bool { return txn.Status.Phase == api.PhaseRolledBack })
	assert.Equal(t, before, e.Value("ConfigMap/patched", "data", "version"), harness.Describe(txn))
	assert.Nil(t, e.Object("Service/a"))
	e.NothingLeft("txn")
}
