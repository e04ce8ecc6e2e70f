package deploy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

const (
	enforceLabel   = "janus.io/enforce-locks"
	enforcedPolicy = "ValidatingAdmissionPolicy 'enforced-locks.backup.janus.io'"
)

var services = schema.GroupVersionResource{Version: "v1", Resource: "services"}

// enforcedScene is a scene on a cluster with the component of enforced locks. The policy is
// known to be evaluated, and the namespace is not labelled yet.
func enforcedScene(t *testing.T) *scene {
	t.Helper()
	in := installed(t, withComponent(t, ".", "enforced"))
	s := &scene{in: in, Env: harness.New(t), t: t}
	bind(t, in, s.Namespace, "cluster-admin", "admin-of-"+s.Namespace)
	s.admin = in.as(t, "admin-of-"+s.Namespace)
	awaitPolicies(t, in, s.Namespace)
	return s
}

// enforce labels the namespace and waits until a lock of it is enforced.
func (s *scene) enforce() {
	s.t.Helper()
	enforceIn(s.t, s.in, s.Namespace)
}

func enforceIn(t testing.TB, in installation, namespace string) {
	t.Helper()
	_, err := in.client.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+enforceLabel+`":"true"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	enterLocks(t, in, namespace, map[string]string{"configmaps/probe": "a/b/c"})
	require.Eventually(t, func() bool {
		_, err := in.dynamic.Resource(configMaps).Namespace(namespace).Create(t.Context(), bare("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), enforcedPolicy)
	}, settle, poll, "the policy is enforced")
	enterLocks(t, in, namespace, map[string]string{})
}

// enter makes the table of the namespace say what it is to say.
func (s *scene) enter(locks map[string]string) {
	s.t.Helper()
	enterLocks(s.t, s.in, s.Namespace, locks)
}

// enterLocks makes a table say what it is to say, whatever it says now.
func enterLocks(t testing.TB, in installation, namespace string, locks map[string]string) {
	t.Helper()
	tables := in.dynamic.Resource(api.LockTableResource).Namespace(namespace)
	require.Eventually(t, func() bool {
		table, err := tables.Get(t.Context(), api.LockTableName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			table = &unstructured.Unstructured{Object: map[string]any{}}
			table.SetGroupVersionKind(api.LockTableKind)
			table.SetName(api.LockTableName)
			table, err = tables.Create(t.Context(), table, metav1.CreateOptions{})
		}
		if err != nil || unstructured.SetNestedStringMap(table.Object, locks, "locks") != nil {
			return false
		}
		_, err = tables.Update(t.Context(), table, metav1.UpdateOptions{})
		return err == nil
	}, settle, poll, "the table is written")
}

// entries are the locks in the table.
func (s *scene) entries() map[string]string {
	s.t.Helper()
	table, err := s.in.dynamic.Resource(api.LockTableResource).Namespace(s.Namespace).Get(s.t.Context(), api.LockTableName, metav1.GetOptions{})
	require.NoError(s.t, err)
	locks, _, err := unstructured.NestedStringMap(table.Object, "locks")
	require.NoError(s.t, err)
	return locks
}

// runEnforcing starts Janus with the rights that the component gives it.
func (s *scene) runEnforcing(options ...harness.Option) *harness.Janus {
	s.t.Helper()
	config, err := s.AsJanusd(s.t.Context())
	require.NoError(s.t, err)
	j, err := harness.Launch(config, s.Namespace, zaptest.NewLogger(s.t), append(options, harness.EnforcingLocks())...)
	require.NoError(s.t, err)
	s.t.Cleanup(j.Stop)
	return j
}

// shop has a Service whose status nobody else writes, so that a change of it is ready when
// the test says so.
const shop = `
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: old}, data: {a: b}}
`

// waiting has changed the Service, and waits for its status before it does the rest.
const waiting = `{changes: [
  {target: {apiVersion: v1, kind: Service, name: web}, type: Patch, content: {metadata: {labels: {version: "2"}}},
   readyWhen: {expression: "object.status.?loadBalancer.?ingress.hasValue()"}},
  {target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Create, content: {data: {version: "2"}}},
  {target: {apiVersion: v1, kind: ConfigMap, name: old}, type: Delete}]}`

// midway waits until the first change of waiting has landed.
func (s *scene) midway(name string) *api.Transaction {
	s.t.Helper()
	return s.Await(name, "waiting for its first change", func(t *api.Transaction) bool { return t.Status.Progress == "1/3" })
}

// open has the first change of waiting be ready. It writes a subresource of a locked object.
func (s *scene) open() {
	s.t.Helper()
	_, err := s.admin.Resource(services).Namespace(s.Namespace).Patch(s.t.Context(), "web", types.MergePatchType,
		[]byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`), metav1.PatchOptions{}, "status")
	require.NoError(s.t, err, "the status of a locked object can be written")
}

// acting returns a client of a user with these groups besides that of everybody.
func (s *scene) acting(user string, groups ...string) dynamic.Interface {
	s.t.Helper()
	config := rest.CopyConfig(s.in.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	client, err := dynamic.NewForConfig(config)
	require.NoError(s.t, err)
	return client
}

// writes tries each way of writing what waiting has locked.
func (s *scene) writes(client dynamic.Interface) map[string]error {
	s.t.Helper()
	out := map[string]error{}
	maps := client.Resource(configMaps).Namespace(s.Namespace)
	_, out["patch Service web"] = client.Resource(services).Namespace(s.Namespace).
		Patch(s.t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`), metav1.PatchOptions{})
	_, out["apply Service web"] = client.Resource(services).Namespace(s.Namespace).
		Patch(s.t.Context(), "web", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","annotations":{"a":"b"}}}`), metav1.PatchOptions{FieldManager: "somebody"})
	out["delete Service web"] = client.Resource(services).Namespace(s.Namespace).Delete(s.t.Context(), "web", metav1.DeleteOptions{})
	_, out["create ConfigMap made"] = maps.Create(s.t.Context(), bare("made"), metav1.CreateOptions{})
	out["delete ConfigMap old"] = maps.Delete(s.t.Context(), "old", metav1.DeleteOptions{})
	out["delete all ConfigMaps"] = maps.DeleteCollection(s.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=old"})
	_, out["try ConfigMap old"] = maps.Patch(s.t.Context(), "old", types.MergePatchType, []byte(`{"data":{"a":"c"}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return out
}

// TestWhatIsLockedIsRefusedToOthers goes through one Transaction in a namespace where locks
// are enforced.
func TestWhatIsLockedIsRefusedToOthers(t *testing.T) {
	s := enforcedScene(t)
	s.enforce()
	_, failed := s.evaluations()
	s.runEnforcing()
	s.Apply(shop)
	s.Submit("release", waiting)
	txn := s.midway("release")
	holder := s.Namespace + "/release/" + string(txn.UID)
	require.Equal(t, map[string]string{"services/web": holder, "configmaps/made": holder, "configmaps/old": holder}, s.entries())

	for who, client := range map[string]dynamic.Interface{
		"somebody who may do all in the namespace": s.admin,
		"an administrator of the cluster":          s.in.dynamic,
		"the same ServiceAccount, without Janus":   s.acting("system:serviceaccount:" + s.Namespace + ":deployer"),
		"janusd itself, not as the ServiceAccount": s.acting(janusd.User, append(janusd.Groups, "system:masters")...),
	} {
		for what, err := range s.writes(client) {
			require.ErrorContains(t, err, enforcedPolicy, "%s: %s", who, what)
			require.True(t, apierrors.IsForbidden(err), "%s: %s: %v", who, what, err)
		}
	}
	_, err := s.admin.Resource(services).Namespace(s.Namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"type":"ClusterIP"}}`), metav1.PatchOptions{})
	require.ErrorContains(t, err, "Service "+s.Namespace+"/web is locked by Transaction "+s.Namespace+"/release"+
		", which changes it: wait until that has ended, or end it with kubectl janus cancel release -n "+s.Namespace+
		"; in an emergency, take the label janus.io/enforce-locks off Namespace "+s.Namespace)

	// What nobody has locked is anyone's, and the control plane goes on.
	require.NoError(t, s.create(configMaps, bare("other"), metav1.CreateOptions{}))
	unnamed := bare("")
	unnamed.SetGenerateName("made-")
	require.NoError(t, s.create(configMaps, unnamed, metav1.CreateOptions{}))
	_, err = s.acting("system:serviceaccount:kube-system:service-controller", "system:masters", "system:serviceaccounts:kube-system").
		Resource(services).Namespace(s.Namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"annotations":{"cloud":"yes"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)

	s.open()
	txn = s.Ended("release")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "2", s.Value("ConfigMap/made", "data", "version"))
	s.NothingLeft("release")
	require.Empty(t, s.entries())
	s.free("ConfigMap/made")
	denied, now := s.evaluations()
	require.NotEmpty(t, denied)
	require.Equal(t, failed, now, "an error of the policy would go unnoticed, because it lets pass then")
}

// evaluations are what the API server has counted of the policy. What was let pass is counted
// only if that was because of an error.
func (s *scene) evaluations() (denied, failed []string) {
	s.t.Helper()
	text, err := s.in.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(s.t.Context())
	require.NoError(s.t, err)
	for line := range strings.Lines(string(text)) {
		switch {
		case !strings.HasPrefix(line, "apiserver_validating_admission_policy_check_total{") || !strings.Contains(line, `policy="enforced-locks.backup.janus.io"`):
		case strings.Contains(line, `enforcement_action="deny"`):
			denied = append(denied, line)
		default:
			failed = append(failed, line)
		}
	}
	return denied, failed
}

// bare is a ConfigMap with nothing in it.
func bare(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
}

// free waits until a ConfigMap can be written: the API server hears of the table by a watch.
func (s *scene) free(ref string) {
	s.t.Helper()
	name := strings.TrimPrefix(ref, "ConfigMap/")
	require.Eventually(s.t, func() bool {
		_, err := s.admin.Resource(configMaps).Namespace(s.Namespace).Patch(s.t.Context(), name, types.MergePatchType, []byte(`{"data":{"free":"yes"}}`), metav1.PatchOptions{})
		return err == nil
	}, settle, poll, "%s can be written again", ref)
}

// TestEachNamespaceDecides runs one Transaction in two namespaces, of which one has the label.
func TestEachNamespaceDecides(t *testing.T) {
	s := enforcedScene(t)
	s.enforce()
	other := s.In(testcluster.Namespace(t))
	bind(t, s.in, other.Namespace, "cluster-admin", "system:serviceaccount:"+s.Namespace+":deployer")
	s.runEnforcing()
	s.Apply(shop)
	other.Apply(shop)
	s.Submit("release", strings.Replace(waiting, "]}", `,
	  {target: {apiVersion: v1, kind: ConfigMap, name: old, namespace: `+other.Namespace+`}, type: Patch, content: {data: {a: "2"}}}]}`, 1))
	s.Await("release", "waiting for its first change", func(t *api.Transaction) bool { return t.Status.Progress == "1/4" })
	there := s.in.dynamic.Resource(configMaps).Namespace(other.Namespace)
	table, err := s.in.dynamic.Resource(api.LockTableResource).Namespace(other.Namespace).Get(t.Context(), api.LockTableName, metav1.GetOptions{})
	require.NoError(t, err)
	locks, _, err := unstructured.NestedStringMap(table.Object, "locks")
	require.NoError(t, err)
	require.Contains(t, locks, "configmaps/old")

	for what, err := range s.writes(s.in.dynamic) {
		require.ErrorContains(t, err, enforcedPolicy, "%s", what)
	}
	_, err = there.Patch(t.Context(), "old", types.MergePatchType, []byte(`{"data":{"theirs":"yes"}}`), metav1.PatchOptions{})
	require.NoError(t, err, "a namespace without the label is as it was")

	// Janus notices, as it does without enforced locks, and rolls back the rest.
	s.open()
	txn := s.Ended("release")
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	require.Empty(t, s.entries())
	assert.Equal(t, "b", other.Value("ConfigMap/old", "data", "a"))
	assert.Equal(t, "yes", other.Value("ConfigMap/old", "data", "theirs"))
}
