package faults

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// requester is a user who may create Transactions, and with use may have them act as
// the ServiceAccount.
const requester = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: requester}
rules: [{apiGroups: [backup.janus.io], resources: [transactions], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: requester}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: requester}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: requester}]
`

const use = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: requester}
rules:
  - {apiGroups: [backup.janus.io], resources: [transactions], verbs: [create]}
  - {apiGroups: [backup.janus.io], resources: [serviceaccounts], resourceNames: [deployer], verbs: [use]}
`

// The right to create Transactions is not the right to do what a ServiceAccount may.
func TestRequesterMayNotActAsAnyServiceAccount(t *testing.T) {
	w := newWorld(t)
	at, err := w.makePlace("")
	require.NoError(t, err)
	policy, err := harness.ReadSource("../../../deploy/policies/transaction-identity.yaml")
	require.NoError(t, err)
	require.NoError(t, w.ApplyYAML(w.ctx, "", string(policy)))
	require.NoError(t, w.ApplyYAML(w.ctx, at.namespace, requester))

	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "requester"}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	list, err := workloads(t)[0].transactions(at)
	require.NoError(t, err)
	txn := list[0]
	create := func(ctx context.Context) error {
		_, err := client.Resource(api.Resource).Namespace(at.namespace).Create(ctx, txn, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	// Both the right to create and the policy take a moment to count.
	refused := func(ctx context.Context) (bool, error) {
		err := create(ctx)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "transaction-identity"), nil
	}
	if err := harness.Poll(w.ctx, refused); err != nil {
		t.Errorf("%v\n  identity: whoever may create Transactions may have them act as any ServiceAccount", err)
	}
	require.NoError(t, w.ApplyYAML(w.ctx, at.namespace, use))
	assert.NoError(t, harness.Poll(w.ctx, func(ctx context.Context) (bool, error) { return create(ctx) == nil, nil }),
		"who may use the ServiceAccount may have a Transaction act as it")
}
