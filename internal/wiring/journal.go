package wiring

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Journal keeps the state of a Transaction in the Transaction.
type Journal struct {
	client dynamic.NamespaceableResourceInterface
}

// NewJournal makes a Journal that writes with the controller's own identity.
func NewJournal(client dynamic.Interface) *Journal {
	return &Journal{client: client.Resource(api.Resource)}
}

// Read gets a Transaction from the API server, nil if it does not exist.
func (j *Journal) Read(ctx context.Context, name types.NamespacedName) (*api.Transaction, error) {
	obj, err := j.find(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, errclass.Wrap(err, "read", "Transaction "+name.String(), false)
	}
	return FromUnstructured(obj)
}

// eachAtOnce is how many Transactions are in memory at a time: one may have more than a megabyte.
const eachAtOnce = 20

// Each calls do for every Transaction of a namespace.
func (j *Journal) Each(ctx context.Context, namespace string, do func(*api.Transaction)) error {
	options := metav1.ListOptions{Limit: eachAtOnce}
	for {
		page, err := j.client.Namespace(namespace).List(ctx, options)
		if err != nil {
			return errclass.Wrap(err, "list the Transactions of", "namespace "+namespace, false)
		}
		for i := range page.Items {
			t, err := FromUnstructured(&page.Items[i])
			if err != nil {
				return err
			}
			do(t)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// find gets a Transaction, or the API server's own error.
func (j *Journal) find(ctx context.Context, name types.NamespacedName) (*unstructured.Unstructured, error) {
	return j.client.Namespace(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
}

// Checkpoint writes the status. The resourceVersion of t makes the write fail if
// anyone has written the Transaction since.
func (j *Journal) Checkpoint(ctx context.Context, t *api.Transaction) (*api.Transaction, error) {
	stored := *t
	stored.Underive()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&stored)
	if err != nil {
		return nil, fmt.Errorf("encode Transaction %s/%s: %w", t.Namespace, t.Name, err)
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(api.Kind)
	obj.SetManagedFields(nil)
	obj, err = j.client.Namespace(t.Namespace).UpdateStatus(ctx, obj, metav1.UpdateOptions{FieldManager: Manager})
	if err != nil {
		return nil, errclass.Wrap(err, "write the status of", describe(t), false)
	}
	return FromUnstructured(obj)
}

// Unwritten reads the Transaction.
func (j *Journal) Unwritten(ctx context.Context, t *api.Transaction) error {
	now, err := j.Read(ctx, types.NamespacedName{Namespace: t.Namespace, Name: t.Name})
	if err != nil {
		return err
	}
	if now == nil || now.UID != t.UID || now.ResourceVersion != t.ResourceVersion {
		return overtaken(t)
	}
	return nil
}

// NotOvertaken fails if another process may have gone on with the Transaction: if it is
// there, and not as t. Nobody relies on the leftovers of one that is gone.
func (j *Journal) NotOvertaken(ctx context.Context, t *api.Transaction) error {
	now, err := j.Read(ctx, types.NamespacedName{Namespace: t.Namespace, Name: t.Name})
	if err != nil || now == nil || now.UID != t.UID || now.ResourceVersion == t.ResourceVersion {
		return err
	}
	return overtaken(t)
}

// Manager is the field manager of the controller's own writes.
const Manager = "janusd"

// AddFinalizer adds the finalizer by a patch of that list alone: writing the
// whole object could rewrite what the user wrote.
func (j *Journal) AddFinalizer(ctx context.Context, t *api.Transaction) (*api.Transaction, error) {
	return j.setFinalizers(ctx, t, append(slices.Clone(t.Finalizers), api.Finalizer))
}

// RemoveFinalizer removes the finalizer. A Transaction that is gone is fine.
func (j *Journal) RemoveFinalizer(ctx context.Context, t *api.Transaction) (*api.Transaction, error) {
	rest := slices.DeleteFunc(slices.Clone(t.Finalizers), func(f string) bool { return f == api.Finalizer })
	stored, err := j.setFinalizers(ctx, t, rest)
	if errclass.Is(err, errclass.NotFound) {
		return t, nil
	}
	return stored, err
}

// Delete deletes the Transaction as it was read: not one that another client has written
// since, for instance to have something rolled back, nor another of its name.
func (j *Journal) Delete(ctx context.Context, t *api.Transaction) error {
	err := j.client.Namespace(t.Namespace).Delete(ctx, t.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &t.UID, ResourceVersion: &t.ResourceVersion},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return errclass.Wrap(err, "delete", describe(t), false)
}

func (j *Journal) setFinalizers(ctx context.Context, t *api.Transaction, finalizers []string) (*api.Transaction, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": finalizers, "uid": t.UID, "resourceVersion": t.ResourceVersion,
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the finalizers of %s: %w", describe(t), err)
	}
	stored, err := j.client.Namespace(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Manager})
	if err != nil {
		return nil, errclass.Wrap(err, "write the finalizers of", describe(t), false)
	}
	return FromUnstructured(stored)
}

// FromUnstructured reads a Transaction out of what the dynamic client returns. One that
// undoes another has the changes that follow from that.
func FromUnstructured(obj *unstructured.Unstructured) (*api.Transaction, error) {
	t := &api.Transaction{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, t); err != nil {
		return nil, errclass.New(errclass.Terminal, errclass.Invalid, "decode", "Transaction "+obj.GetNamespace()+"/"+obj.GetName(), "%w", err)
	}
	t.Derive()
	return t, nil
}

func describe(t *api.Transaction) string {
	return "Transaction " + t.Namespace + "/" + t.Name
}
