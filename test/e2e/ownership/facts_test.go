package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// The tests of files facts_*_test.go are named after the rows of a list of what
// Kubernetes does that a rollback has to get right. Each shows the fact with a
// client of its own, and then that Janus gets it right.

// outsider is an independent client that writes as a manager of its own.
type outsider struct {
	*harness.Env
	t       *testing.T
	manager string
}

func newOutsider(t *testing.T, e *harness.Env, manager string) outsider {
	return outsider{e, t, manager}
}

// parsed reads one object of YAML; integers stay integers.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var out unstructured.Unstructured
	require.NoError(t, out.UnmarshalJSON(data))
	return &out
}

// at returns the way to objects of the kind of obj.
func (o outsider) at(obj *unstructured.Unstructured) dynamic.ResourceInterface {
	o.t.Helper()
	client, err := o.For(obj.GroupVersionKind(), o.Namespace)
	require.NoError(o.t, err)
	return client
}

// make creates an object.
func (o outsider) make(text string) *unstructured.Unstructured {
	o.t.Helper()
	obj, err := o.post(parsed(o.t, text))
	require.NoError(o.t, err)
	return obj
}

func (o outsider) post(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o.t.Helper()
	return o.at(obj).Create(o.t.Context(), obj, metav1.CreateOptions{FieldManager: o.manager})
}

func (o outsider) put(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o.t.Helper()
	return o.at(obj).Update(o.t.Context(), obj, metav1.UpdateOptions{FieldManager: o.manager})
}

// apply sends a server-side apply, forced or not.
func (o outsider) apply(text string, force bool) (*unstructured.Unstructured, error) {
	o.t.Helper()
	return o.applyObject(parsed(o.t, text), force)
}

func (o outsider) applyObject(obj *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	o.t.Helper()
	return o.at(obj).Apply(o.t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: o.manager, Force: force})
}

// scale writes the replicas of webRef as an autoscaler does.
func (o outsider) scale(replicas string) *unstructured.Unstructured {
	o.t.Helper()
	return o.Merge(o.manager, webRef, `{"spec":{"replicas":`+replicas+`}}`, "scale")
}

// remove deletes an object and waits until it is gone.
func (o outsider) remove(obj *unstructured.Unstructured) {
	o.t.Helper()
	err := o.at(obj).Delete(o.t.Context(), obj.GetName(), metav1.DeleteOptions{})
	require.NoError(o.t, err)
	o.Until("it is gone", func() bool { return o.now(obj) == nil })
}

// now reads an object again; nil if it is gone.
func (o outsider) now(obj *unstructured.Unstructured) *unstructured.Unstructured {
	o.t.Helper()
	live, err := o.at(obj).Get(o.t.Context(), obj.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(o.t, err)
	return live
}

// dropWhenDone deletes a cluster-scoped object when the test has ended.
func (o outsider) dropWhenDone(obj *unstructured.Unstructured) {
	o.t.Helper()
	client := o.at(obj)
	o.t.Cleanup(func() { _ = client.Delete(context.Background(), obj.GetName(), metav1.DeleteOptions{}) })
}

// codeOf is the HTTP status of an answer; 200 for any success.
func codeOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return int(status.Status().Code)
	}
	if err != nil {
		return 0
	}
	return http.StatusOK
}

// named leaves of an object what names it.
func named(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(obj.GroupVersionKind())
	out.SetName(obj.GetName())
	return out
}

// field reads a field of an object; "<absent>" if there is none.
func field(t *testing.T, obj *unstructured.Unstructured, path ...string) any {
	t.Helper()
	require.NotNil(t, obj, "it is gone")
	value, ok, err := unstructured.NestedFieldCopy(obj.Object, path...)
	require.NoError(t, err)
	if !ok {
		return "<absent>"
	}
	return value
}

// managersOf lists who has an entry in managedFields, the status left out.
func managersOf(obj *unstructured.Unstructured) []string {
	var out []string
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource != "status" {
			out = append(out, strings.TrimSpace(entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource))
		}
	}
	slices.Sort(out)
	return out
}

// justBefore does something just before Janus makes the change with the given index.
func justBefore(item int, act func()) harness.Option {
	return harness.Acting(harness.Around{Do: func(_ string, i int) {
		if i == item {
			act()
		}
	}})
}

// rolledBack asserts that a Transaction ended so, because an item met a reason.
func rolledBack(t *testing.T, txn *api.Transaction, item int, reason string) {
	t.Helper()
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, reason, txn.Status.Items[item].Reason, harness.Describe(txn))
}

// committedAll asserts that a Transaction committed.
func committedAll(t *testing.T, txn *api.Transaction) {
	t.Helper()
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
}

// refusedBefore asserts that a Transaction failed before anything was done, for a
// reason, and said so in the given words.
func refusedBefore(t *testing.T, txn *api.Transaction, reason string, says ...string) {
	t.Helper()
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	status, got, message := harness.Condition(txn, api.ConditionReady)
	assert.Equal(t, "False", status)
	assert.Equal(t, reason, got, message)
	for _, word := range says {
		assert.Contains(t, message, word)
	}
	for _, item := range txn.Status.Items {
		assert.False(t, item.Committed || item.RolledBack, "item %s was begun", item.Name)
	}
}

// terminal asserts what Janus makes of an error of the API server.
func terminal(t *testing.T, err error, reason string) {
	t.Helper()
	class, got := errclass.Classify(err)
	assert.Equal(t, errclass.Terminal.String(), class.String(), "class of: %v", err)
	assert.Equal(t, reason, got, "reason of: %v", err)
}

// kubectl runs the real one in the Env's namespace.
func kubectl(t *testing.T, e *harness.Env, stdin string, args ...string) (string, error) {
	t.Helper()
	return testcluster.Shared(t).Kubectl(t.Context(), stdin, append([]string{"--namespace=" + e.Namespace}, args...)...)
}

// kubectlApply applies a file and returns what kubectl says.
func kubectlApply(t *testing.T, e *harness.Env, file string, args ...string) string {
	t.Helper()
	said, err := kubectl(t, e, file, append([]string{"apply", "-f", "-"}, args...)...)
	require.NoError(t, err)
	return strings.TrimSpace(said)
}

// longAgo is when the fields of an aged object were written.
var longAgo = metav1.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)

// age makes all entries of managedFields old, so that an owner that is given back
// with another time shows. It takes two writes: the API server leaves out one that
// changes nothing but times.
func (o outsider) age(obj *unstructured.Unstructured) *unstructured.Unstructured {
	o.t.Helper()
	entries := o.now(obj).GetManagedFields()
	for i := range entries {
		entries[i].Time = &longAgo
	}
	passing := metav1.ManagedFieldsEntry{
		Manager: "passing", Operation: metav1.ManagedFieldsOperationApply, APIVersion: obj.GetAPIVersion(),
		Time: &longAgo, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:passing":{}}}}`),
	}
	o.own(obj, append(slices.Clone(entries), passing))
	aged := o.own(obj, entries)
	for _, entry := range aged.GetManagedFields() {
		require.True(o.t, entry.Time.Equal(&longAgo), "%s has not aged", entry.Manager)
	}
	return aged
}

// own writes managedFields.
func (o outsider) own(obj *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	o.t.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": entries}})
	require.NoError(o.t, err)
	return o.patch(obj, types.MergePatchType, string(body))
}

func (o outsider) patch(obj *unstructured.Unstructured, kind types.PatchType, body string) *unstructured.Unstructured {
	o.t.Helper()
	got, err := o.at(obj).Patch(o.t.Context(), obj.GetName(), kind, []byte(body), metav1.PatchOptions{FieldManager: o.manager})
	require.NoError(o.t, err)
	return got
}
