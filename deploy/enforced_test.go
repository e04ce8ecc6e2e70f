package deploy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// policies are those that deploy installs.
var policies = []string{"approvals", "contents", "deletion", "identity", "locks", "records", "spec", "status", "targets"}

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	leases     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	revisions  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
)

// A scene is a namespace under the policies, with a Janus that runs its Transactions as
// the ServiceAccount that deploy gives it, and with just the rights that it has there.
type scene struct {
	*harness.Env
	in installation
	t  *testing.T
	// admin may do anything in the namespace, and nothing else.
	admin dynamic.Interface
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{in: install(t), Env: harness.New(t), t: t}
	bind(t, s.in, s.Namespace, "cluster-admin", "admin-of-"+s.Namespace)
	s.admin = s.in.as(t, "admin-of-"+s.Namespace)
	awaitPolicies(t, s.in, s.Namespace)
	s.awaitEnforced()
	return s
}

// of is the same scene in a part of its test.
func (s *scene) of(t *testing.T) *scene {
	part := *s
	part.t = t
	return &part
}

// run starts Janus, which acts as janusd until the test ends.
func (s *scene) run() {
	s.t.Helper()
	config, err := s.AsJanusd(s.t.Context())
	require.NoError(s.t, err)
	config.WarningHandler = rest.NoWarnings{}
	j, err := harness.Launch(config, s.Namespace, zaptest.NewLogger(s.t))
	require.NoError(s.t, err)
	s.t.Cleanup(j.Stop)
}

// awaitEnforced waits until each policy refuses what it forbids, and the user may do but
// for that.
func (s *scene) awaitEnforced() {
	s.t.Helper()
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for _, policy := range []string{"records", "locks", "targets"} {
		gvr, obj := forbidden(policy)
		require.Eventually(s.t, func() bool {
			err := s.create(gvr, obj.DeepCopy(), dryRun)
			return err != nil && strings.Contains(err.Error(), named(policy))
		}, settle, 5*poll, "the policy %s is enforced", policy)
	}
}

// forbidden is something whose creation a policy refuses, no matter who asks.
func forbidden(policy string) (schema.GroupVersionResource, *unstructured.Unstructured) {
	switch policy {
	case "records":
		return configMaps, record("ConfigMap", "probe")
	case "locks":
		return leases, lock("probe", "a/b/c")
	default:
		return api.Resource, targeting("probe", target("v1", "ConfigMap", ownNamespace, "a"))
	}
}

// named is how a refusal names its policy.
func named(policy string) string {
	return "ValidatingAdmissionPolicy 'transaction-" + policy + ".backup.janus.io'"
}

func (s *scene) create(gvr schema.GroupVersionResource, obj *unstructured.Unstructured, options metav1.CreateOptions) error {
	_, err := s.admin.Resource(gvr).Namespace(s.Namespace).Create(s.t.Context(), obj, options)
	return err
}

// refused wants a refusal by a policy that says all these words.
func (s *scene) refused(err error, policy string, words ...string) {
	s.t.Helper()
	require.True(s.t, apierrors.IsForbidden(err), "got %v", err)
	require.ErrorContains(s.t, err, named(policy))
	for _, word := range words {
		require.ErrorContains(s.t, err, word)
	}
}

// ours are the labels of what Janus makes for itself.
func ours(transaction string) map[string]string {
	return map[string]string{"app.kubernetes.io/managed-by": "janus", "janus.io/transaction": transaction}
}

// record is an object that looks like a record of Janus. Its owner does not exist, so that
// the garbage collector would delete it.
func record(kind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	if kind == "ControllerRevision" {
		obj.Object["apiVersion"], obj.Object["revision"], obj.Object["data"] = "apps/v1", int64(1), map[string]any{"a": "b"}
	}
	obj.SetName(name)
	obj.SetLabels(ours("somebody"))
	obj.SetOwnerReferences(ofATransaction)
	return obj
}

// ofATransaction is the owner of a record.
var ofATransaction = []metav1.OwnerReference{{
	APIVersion: api.GroupVersion.String(), Kind: api.Kind.Kind, Name: "somebody", UID: "e9b9c7a0-0000-4000-8000-000000000000",
}}

// lock is a Lease with the labels of a lock.
func lock(name, holder string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"spec": map[string]any{"leaseDurationSeconds": int64(300), "renewTime": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")},
	}}
	if holder != "" {
		obj.Object["spec"].(map[string]any)["holderIdentity"] = holder
	}
	obj.SetName(name)
	obj.SetLabels(ours("somebody"))
	return obj
}

// targeting is a Transaction with one deletion for each target.
func targeting(name string, targets ...map[string]any) *unstructured.Unstructured {
	txn := transaction("default")
	txn.SetGenerateName("")
	txn.SetName(name)
	var changes []any
	for _, target := range targets {
		changes = append(changes, map[string]any{"type": "Delete", "target": target, "acceptLoss": true})
	}
	txn.Object["spec"].(map[string]any)["changes"] = changes
	return txn
}
