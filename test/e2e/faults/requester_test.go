package faults

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// requester is a user who may create and edit Transactions and make Leases and what looks like records, and with use may
// have Transactions act as the ServiceAccount.
const requester = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: requester}
rules:
  - {apiGroups: [backup.janus.io], resources: [transactions], verbs: [create, patch]}
  - {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
  - {apiGroups: [""], resources: [configmaps], verbs: [create]}
  - {apiGroups: [apps], resources: [controllerrevisions], verbs: [create]}
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
  - {apiGroups: [use.janus.io], resources: [serviceaccounts], resourceNames: [deployer], verbs: [use]}
`

const all = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: requester}
rules:
  - {apiGroups: [backup.janus.io], resources: ["*"], verbs: ["*"]}
`

// The right to create Transactions is not the right to do what a ServiceAccount may.
func TestRequesterMayNotActAsAnyServiceAccount(t *testing.T) {
	w := newWorld(t)
	at, err := w.makePlace("")
	require.NoError(t, err)
	client := w.requester(t, at.namespace, "transaction-identity")
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
	require.NoError(t, w.ApplyYAML(w.ctx, at.namespace, all))
	if err := harness.Poll(w.ctx, func(ctx context.Context) (bool, error) {
		err := create(ctx)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "no more on serviceaccounts.backup.janus.io"), nil
	}); err != nil {
		t.Errorf("%v\n  identity: whoever may do all with Transactions may have them act as any ServiceAccount", err)
	}
	require.NoError(t, w.ApplyYAML(w.ctx, at.namespace, use))
	assert.NoError(t, harness.Poll(w.ctx, func(ctx context.Context) (bool, error) { return create(ctx) == nil, nil }),
		"who may use the ServiceAccount may have a Transaction act as it")
}

// requester is a client of a user with no rights but those of the manifest. The policy is in
// force in the namespace.
func (w *world) requester(t *testing.T, namespace, policy string) dynamic.Interface {
	t.Helper()
	text, err := harness.ReadSource("../../../deploy/policies/" + policy + ".yaml")
	require.NoError(t, err)
	// The names of janusd's own Leases count in its namespace, which this is.
	there := strings.NewReplacer(policy+".backup.janus.io", policy+"."+namespace, ":janus-system:", ":"+namespace+":").Replace(string(text))
	require.NoError(t, w.ApplyYAML(w.ctx, "", there+
		"  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+namespace+"}}}\n"))
	require.NoError(t, w.ApplyYAML(w.ctx, namespace, requester))
	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "requester"}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// The right to edit Transactions is not the right to have a ServiceAccount resume what it was
// stopped in.
func TestRequesterMayNotHaveAnyServiceAccountResume(t *testing.T) {
	w := newWorld(t)
	at, err := w.makePlace("")
	require.NoError(t, err)
	client := w.requester(t, at.namespace, "transaction-identity").Resource(api.Resource).Namespace(at.namespace)
	list, err := workloads(t)[0].transactions(at)
	require.NoError(t, err)
	txn := list[0].DeepCopy()
	require.NoError(t, unstructured.SetNestedField(txn.Object, true, "spec", "suspend"))
	admin, err := dynamic.NewForConfig(w.Config)
	require.NoError(t, err)
	txn, err = admin.Resource(api.Resource).Namespace(at.namespace).Create(w.ctx, txn, metav1.CreateOptions{})
	require.NoError(t, err)
	edit := func(ctx context.Context, spec string) error {
		_, err := client.Patch(ctx, txn.GetName(), types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for _, spec := range []string{`{"suspend":null}`, `{"suspend":false}`, `{"cancel":"Rollback"}`} {
		if err := harness.Poll(w.ctx, func(ctx context.Context) (bool, error) {
			err := edit(ctx, spec)
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "transaction-identity"), nil
		}); err != nil {
			t.Errorf("%v\n  identity: whoever may edit Transactions may have any ServiceAccount act by %s", err, spec)
		}
	}
	require.NoError(t, edit(w.ctx, `{"cancel":"Stop"}`), "whoever may edit a Transaction may stop it")
}

// The right to write Leases is not the right to write the lock that a Transaction holds.
func TestRequesterMayNotWriteTheLockOfATransaction(t *testing.T) {
	w := newWorld(t)
	at, err := w.makePlace("")
	require.NoError(t, err)
	client := w.requester(t, at.namespace, "transaction-locks").
		Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).Namespace(at.namespace)
	create := func(ctx context.Context, holder string) error {
		return createLease(ctx, client, "janus-lock-config", holder, nil)
	}
	if err := harness.Poll(w.ctx, func(ctx context.Context) (bool, error) {
		err := create(ctx, at.namespace+"/release/4711")
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "transaction-locks"), nil
	}); err != nil {
		t.Errorf("%v\n  lock exclusion: whoever may write Leases may write the lock of a Transaction", err)
	}
	require.NoError(t, create(w.ctx, "nightly-backup"), "people take locks of their own")
}

// The right to write Leases is not the right to write those without which janusd stands still.
func TestRequesterMayNotWriteTheLeasesOfJanusd(t *testing.T) {
	w := newWorld(t)
	at, err := w.makePlace("")
	require.NoError(t, err)
	client := w.requester(t, at.namespace, "transaction-locks").
		Resource(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}).Namespace(at.namespace)
	replica := map[string]any{"app.kubernetes.io/name": "janusd", "app.kubernetes.io/component": "replica", "janus.io/shards": "1"}
	for name, labels := range map[string]map[string]any{"janusd-leader": nil, "janusd-shard-0": nil, "janus-package-transactions": nil, "another": replica} {
		if err := harness.Poll(w.ctx, func(ctx context.Context) (bool, error) {
			err := createLease(ctx, client, name, "nobody", labels)
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "transaction-locks"), nil
		}); err != nil {
			t.Fatalf("%v\n  neighbours: whoever may write Leases in the namespace of janusd has it stand still by Lease %s", err, name)
		}
	}
	require.NoError(t, createLease(w.ctx, client, "another", "nobody", nil))
}

// The right to write ConfigMaps and ControllerRevisions is not the right to tell clients how janusd
// runs, nor to use up the numbers of a namespace.
func TestRequesterMayNotWriteTheSettingsOfJanusd(t *testing.T) {
	w := newWorld(t)
	at, err := w.makePlace("")
	require.NoError(t, err)
	client := w.requester(t, at.namespace, "transaction-settings")
	for name, c := range map[string]struct {
		gvr    schema.GroupVersionResource
		object map[string]any
	}{
		"janus-settings":  {schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}},
		"janus-revisions": {schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}, map[string]any{"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": int64(1), "data": map[string]any{}}},
	} {
		create := func(ctx context.Context, name string) error {
			object := &unstructured.Unstructured{Object: c.object}
			object.SetName(name)
			_, err := client.Resource(c.gvr).Namespace(at.namespace).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		if err := harness.Poll(w.ctx, func(ctx context.Context) (bool, error) {
			err := create(ctx, name)
			return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "transaction-settings"), nil
		}); err != nil {
			t.Errorf("%v\n  neighbours: whoever may write such objects may write %s", err, name)
		}
		require.NoError(t, create(w.ctx, "another"))
	}
}

func createLease(ctx context.Context, client dynamic.ResourceInterface, name, holder string, labels map[string]any) error {
	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"holderIdentity": holder},
	}}
	if labels != nil {
		lease.Object["metadata"].(map[string]any)["labels"] = labels
	}
	_, err := client.Create(ctx, lease, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
