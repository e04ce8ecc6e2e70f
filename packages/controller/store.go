package controller

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

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/packages/controller/progress"
)

// manager is the field manager of the writes.
const manager = "janusd"

// store reads and writes PackageTransactions and their Transactions.
type store struct{ own dynamic.Interface }

func decoded(u *unstructured.Unstructured) (*api.PackageTransaction, error) {
	p := &api.PackageTransaction{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
		return nil, fmt.Errorf("decode PackageTransaction %s: %w", u.GetName(), err)
	}
	return p, nil
}

// confirmed reads an object, and once more if it does not exist: the lock is given to another,
// or an attempt counted as failed, because an object is gone, and an API server that starts may
// deny for a moment what is there.
func confirmed(ctx context.Context, client dynamic.ResourceInterface, name string) (*unstructured.Unstructured, error) {
	u, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return client.Get(ctx, name, metav1.GetOptions{})
	}
	return u, err
}

// read gets a PackageTransaction; nil if there is none.
func (s store) read(ctx context.Context, name string) (*api.PackageTransaction, error) {
	u, err := confirmed(ctx, s.own.Resource(api.Resource), name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read PackageTransaction %s: %w", name, err)
	}
	return decoded(u)
}

// record writes the status, unless another client has written the object since it was read.
func (s store) record(ctx context.Context, p *api.PackageTransaction) (*api.PackageTransaction, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	if err != nil {
		return p, fmt.Errorf("encode %s: %w", describe(p), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(api.Kind)
	u.SetManagedFields(nil)
	stored, err := s.own.Resource(api.Resource).UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: manager})
	if err != nil {
		return p, fmt.Errorf("write the status: %w", err)
	}
	return decoded(stored)
}

// hold puts the finalizer on.
func (s store) hold(ctx context.Context, p *api.PackageTransaction) (*api.PackageTransaction, error) {
	if slices.Contains(p.Finalizers, api.Finalizer) {
		return p, nil
	}
	u, err := s.finalizers(ctx, s.own.Resource(api.Resource), p.ObjectMeta, append(slices.Clone(p.Finalizers), api.Finalizer))
	if err != nil {
		return p, err
	}
	return decoded(u)
}

// letGo takes the finalizer off.
func (s store) letGo(ctx context.Context, p *api.PackageTransaction) error {
	if !slices.Contains(p.Finalizers, api.Finalizer) {
		return nil
	}
	_, err := s.finalizers(ctx, s.own.Resource(api.Resource), p.ObjectMeta, without(p.Finalizers, api.Finalizer))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(f string) bool { return f == one })
}

// finalizers writes that list alone, unless another client has written the object since it was read.
func (s store) finalizers(ctx context.Context, client dynamic.ResourceInterface, of metav1.ObjectMeta, finalizers []string) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers, "uid": of.UID, "resourceVersion": of.ResourceVersion}})
	if err != nil {
		return nil, fmt.Errorf("encode finalizers: %w", err)
	}
	u, err := client.Patch(ctx, of.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return nil, fmt.Errorf("write the finalizers of %s: %w", of.Name, err)
	}
	return u, nil
}

// delete deletes a PackageTransaction as it was read.
func (s store) delete(ctx context.Context, p *api.PackageTransaction) error {
	err := s.own.Resource(api.Resource).Delete(ctx, p.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &p.UID, ResourceVersion: &p.ResourceVersion},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // It is gone, or the watch is behind.
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", describe(p), err)
	}
	return nil
}

func (s store) transactions(p *api.PackageTransaction) dynamic.ResourceInterface {
	return s.own.Resource(txn.Resource).Namespace(p.Spec.ServiceAccountRef.Namespace)
}

// transaction gets the Transaction of the attempt that is under way; nil if there is none.
// foreign says that the name is taken by another.
func (s store) transaction(ctx context.Context, p *api.PackageTransaction) (t *txn.Transaction, foreign bool, err error) {
	return s.named(ctx, p, progress.Name(p))
}

func (s store) named(ctx context.Context, p *api.PackageTransaction, name string) (t *txn.Transaction, foreign bool, err error) {
	u, err := confirmed(ctx, s.transactions(p), name)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read Transaction %s: %w", name, err)
	}
	t = &txn.Transaction{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, t); err != nil {
		return nil, false, fmt.Errorf("decode Transaction %s: %w", name, err)
	}
	if !slices.ContainsFunc(t.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == p.UID }) {
		return nil, true, nil
	}
	return t, false, nil
}

// create makes the Transaction of an attempt. That there is one of its name is no error: it is
// looked at next.
func (s store) create(ctx context.Context, p *api.PackageTransaction, t *txn.Transaction) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	if err != nil {
		return fmt.Errorf("encode Transaction %s: %w", t.Name, err)
	}
	delete(content, "status")
	_, err = s.transactions(p).Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// abort deletes a Transaction, which has it rolled back.
func (s store) abort(ctx context.Context, t *txn.Transaction) error {
	err := s.own.Resource(txn.Resource).Namespace(t.Namespace).Delete(ctx, t.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &t.UID}, PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Transaction %s: %w", t.Name, err)
	}
	return nil
}

// letGoOf takes the finalizer off a Transaction whose outcome is recorded.
func (s store) letGoOf(ctx context.Context, p *api.PackageTransaction, name string) error {
	t, _, err := s.named(ctx, p, name)
	if err != nil || t == nil || !slices.Contains(t.Finalizers, api.OutcomeFinalizer) {
		return err
	}
	_, err = s.finalizers(ctx, s.transactions(p), t.ObjectMeta, without(t.Finalizers, api.OutcomeFinalizer))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
