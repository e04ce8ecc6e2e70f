package harness

import (
	"context"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/sharedlease"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/snapshot"
)

// TransactionRef is what Object and Value take, with the name of a Transaction behind it.
const TransactionRef = "backup.janus.io/v1alpha1 Transaction/"

// Apply applies objects as the administrator, and returns when the rights that they
// give count.
func (e *Env) Apply(stream string) {
	e.t.Helper()
	require.NoError(e.t, e.ApplyYAML(e.t.Context(), e.Namespace, stream))
	objects, err := Decode(stream)
	require.NoError(e.t, err)
	e.awaitBindings(objects)
}

// Submit creates a Transaction from the YAML of its changes and of other fields of
// the spec; serviceAccountName defaults to deployer.
func (e *Env) Submit(name, spec string) {
	e.t.Helper()
	require.NoError(e.t, e.TrySubmit(name, spec))
}

// TrySubmit is Submit for Transactions that the API server may refuse.
func (e *Env) TrySubmit(name, spec string) error {
	e.t.Helper()
	objects, err := Decode(spec)
	require.NoError(e.t, err)
	require.Len(e.t, objects, 1)
	content := objects[0].Object
	if _, ok := content["serviceAccountName"]; !ok {
		content["serviceAccountName"] = "deployer"
	}
	txn := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	txn.SetGroupVersionKind(api.Kind)
	txn.SetName(name)
	_, err = e.transactions().Create(e.t.Context(), txn, metav1.CreateOptions{FieldManager: Manager, FieldValidation: metav1.FieldValidationStrict})
	return err
}

func (e *Env) transactions() interface {
	Create(ctx context.Context, obj *unstructured.Unstructured, options metav1.CreateOptions, subresources ...string) (*unstructured.Unstructured, error)
	Get(ctx context.Context, name string, options metav1.GetOptions, subresources ...string) (*unstructured.Unstructured, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions, subresources ...string) error
} {
	return e.Dynamic.Resource(api.Resource).Namespace(e.Namespace)
}

// Transaction reads a Transaction; nil if it does not exist.
func (e *Env) Transaction(name string) *api.Transaction {
	e.t.Helper()
	t, err := e.read(e.t.Context(), name)
	require.NoError(e.t, err)
	return t
}

func (e *Env) read(ctx context.Context, name string) (*api.Transaction, error) {
	return wiring.NewJournal(e.Dynamic).Read(ctx, types.NamespacedName{Namespace: e.Namespace, Name: name})
}

// Await waits until the Transaction is as wanted, and returns it.
func (e *Env) Await(name, what string, wanted func(*api.Transaction) bool) *api.Transaction {
	e.t.Helper()
	var last *api.Transaction
	err := Poll(e.t.Context(), func(ctx context.Context) (_ bool, err error) {
		last, err = e.read(ctx, name)
		return err == nil && last != nil && wanted(last), err
	})
	require.NoError(e.t, err, "Transaction %s was never %s; it is %s", name, what, Describe(last))
	return last
}

// Ended waits until the Transaction has reached a final phase.
func (e *Env) Ended(name string) *api.Transaction {
	e.t.Helper()
	return e.Await(name, "ended", func(t *api.Transaction) bool { return t.Status.Phase.Terminal() })
}

// Run submits a Transaction and waits for its end.
func (e *Env) Run(name, spec string) *api.Transaction {
	e.t.Helper()
	e.Submit(name, spec)
	return e.Ended(name)
}

// Delete deletes a Transaction.
func (e *Env) Delete(name string, propagation metav1.DeletionPropagation) {
	e.t.Helper()
	require.NoError(e.t, e.transactions().Delete(e.t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &propagation}))
}

// Gone waits until a Transaction does not exist any more.
func (e *Env) Gone(name string) {
	e.t.Helper()
	err := Poll(e.t.Context(), func(ctx context.Context) (bool, error) {
		last, err := e.read(ctx, name)
		return last == nil, err
	})
	require.NoError(e.t, err, "Transaction %s is still there", name)
}

// Object reads an object, given as "ConfigMap/name" or "apps/v1 Deployment/name";
// nil if it does not exist.
func (e *Env) Object(ref string) *unstructured.Unstructured {
	e.t.Helper()
	gvk, name := parseRef(e, ref)
	client, err := e.For(gvk, e.Namespace)
	if meta.IsNoMatchError(err) {
		return nil
	}
	require.NoError(e.t, err)
	obj, err := client.Get(e.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(e.t, err)
	return obj
}

func parseRef(e *Env, ref string) (schema.GroupVersionKind, string) {
	e.t.Helper()
	version := "v1"
	if before, after, ok := strings.Cut(ref, " "); ok {
		version, ref = before, after
	}
	kind, name, ok := strings.Cut(ref, "/")
	require.True(e.t, ok, "want Kind/name, got %q", ref)
	gv, err := schema.ParseGroupVersion(version)
	require.NoError(e.t, err)
	return gv.WithKind(kind), name
}

// Value reads one field of an object as text; "<absent>" if there is none.
func (e *Env) Value(ref string, path ...string) string {
	e.t.Helper()
	obj := e.Object(ref)
	if obj == nil {
		return "<absent>"
	}
	value, ok, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	require.NoError(e.t, err)
	if !ok {
		return "<absent>"
	}
	text, isText := value.(string)
	require.True(e.t, isText, "%s of %s is not text", strings.Join(path, "."), ref)
	return text
}

// Merge writes fields of an object as another client would.
func (e *Env) Merge(manager, ref, patch string, subresource ...string) *unstructured.Unstructured {
	e.t.Helper()
	gvk, name := parseRef(e, ref)
	client, err := e.For(gvk, e.Namespace)
	require.NoError(e.t, err)
	obj, err := client.Patch(e.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresource...)
	require.NoError(e.t, err)
	return obj
}

// Same asserts that an object is as it was before: every field but what the server
// sets, and the owners of the fields with their times.
func (e *Env) Same(before *unstructured.Unstructured, ref string) {
	e.t.Helper()
	now := e.Object(ref)
	if before == nil {
		assert.Nil(e.t, now, "%s exists", ref)
		return
	}
	if !assert.NotNil(e.t, now, "%s is gone", ref) {
		return
	}
	assert.Equal(e.t, Settled(before).Object, Settled(now).Object, "%s", ref)
	assert.Equal(e.t, owners(before), owners(now), "owners of %s", ref)
}

// Settled is an object without what the server and the Deployment controller set:
// the controller counts a rollback as one more revision.
func Settled(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := fieldmerge.Strip(obj)
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	return out
}

// owners returns the entries of managedFields that are not of the status.
func owners(obj *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource == "" {
			out = append(out, entry)
		}
	}
	return out
}

// NothingLeft asserts that an ended Transaction has left no lock, no finalizer, and
// no before-image but those kept on purpose.
func (e *Env) NothingLeft(name string) {
	e.t.Helper()
	t := e.Transaction(name)
	if t != nil {
		assert.Empty(e.t, t.Finalizers, "finalizers of %s", name)
	}
	locks, err := e.locks(e.t.Context(), name)
	require.NoError(e.t, err)
	assert.Empty(e.t, locks, "locks are left")
	e.imagesLeft(t, selectorOf(name))
}

// ClearedUp waits until a committed Transaction holds no lock and has no
// before-image, but those with which it is remembered. Where two Janus work on one
// Transaction, the one that is late lets go of what it took and saved when it sees
// the end.
func (e *Env) ClearedUp(name string) {
	e.t.Helper()
	t := e.Transaction(name)
	err := Poll(e.t.Context(), func(ctx context.Context) (bool, error) {
		locks, err := e.locks(ctx, name)
		if err != nil || len(locks) > 0 {
			return false, err
		}
		images, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).List(ctx, selectorOf(name))
		if err != nil {
			return false, err
		}
		for _, image := range images.Items {
			if t.Status.Revision == 0 || !slices.Contains(t.Status.RollbackRef.Objects, "ConfigMap/"+image.Name) {
				return false, nil
			}
		}
		return true, nil
	})
	require.NoError(e.t, err, "locks or before-images of %s are left", name)
}

// locks names the Leases that a Transaction holds, alone or with others, or is the next to hold.
func (e *Env) locks(ctx context.Context, name string) ([]string, error) {
	var out []string
	for _, namespace := range []string{e.Namespace, SystemNamespace} {
		leases, err := e.Kube.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=janus"})
		if err != nil {
			return nil, err
		}
		for _, lease := range leases.Items {
			holders := append(sharedlease.Holders(&lease), sharedlease.NextOf(&lease))
			if slices.ContainsFunc(holders, func(holder string) bool { return strings.HasPrefix(holder, e.Namespace+"/"+name+"/") }) {
				out = append(out, namespace+"/"+lease.Name)
			}
		}
	}
	return out, nil
}

func selectorOf(name string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels.Set(snapshot.Labels(name)).String()}
}

func (e *Env) imagesLeft(t *api.Transaction, selector metav1.ListOptions) {
	e.t.Helper()
	kept := t != nil && t.Status.RollbackRef != nil && (t.Status.Phase != api.PhaseCommitted || t.Status.Revision > 0)
	configMaps, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).List(e.t.Context(), selector)
	require.NoError(e.t, err)
	secrets, err := e.Kube.CoreV1().Secrets(e.Namespace).List(e.t.Context(), selector)
	require.NoError(e.t, err)
	if !kept {
		assert.Empty(e.t, configMaps.Items, "before-images in ConfigMaps are left")
		assert.Empty(e.t, secrets.Items, "before-images in Secrets are left")
	}
	for _, c := range configMaps.Items {
		assert.Empty(e.t, c.Finalizers, "finalizers of ConfigMap %s", c.Name)
	}
	for _, s := range secrets.Items {
		assert.Empty(e.t, s.Finalizers, "finalizers of Secret %s", s.Name)
	}
}

// DeleteNamespace deletes a namespace that a Transaction made; for use in a
// cleanup.
func (e *Env) DeleteNamespace(name string) {
	err := e.Kube.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		e.t.Logf("delete namespace %s: %v", name, err)
	}
}
