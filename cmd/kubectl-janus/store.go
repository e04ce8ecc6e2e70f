package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/content"
)

// draft is a Transaction that is to be created.
type draft struct {
	*unstructured.Unstructured
	// hidden are the changes whose content is not to be in the Transaction, which more people
	// may read than the Secrets of the namespace.
	hidden []int
	// secret tells which contents are stored in a Secret, if they are stored beside it.
	secret hider
	// found are the objects that manifests are about, as far as they exist, and looked tells of
	// which it is known whether they do. Both are nil if the Transaction is not made of manifests.
	found  found
	looked map[api.Target]bool
}

// What holds contents.
var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// inlined is how large a content may be that stays in a Transaction which is too large.
const inlined = 512

// contents takes out of a Transaction what is not to be in it, or does not fit, and lays it out
// in objects that are to be stored beside it.
func (d draft) contents(t *api.Transaction) ([]content.Object, error) {
	size, err := expectedBytes(t)
	if err != nil {
		return nil, err
	}
	var moved []int
	var list []content.Content
	for i, c := range t.Spec.Changes {
		confidential := slices.Contains(d.hidden, i)
		if c.Content == nil || !confidential && (size <= plan.MaxBytes || len(c.Content.Raw) <= inlined) {
			continue
		}
		moved = append(moved, i)
		list = append(list, content.Content{Key: plan.ChangeName(i, c), Data: c.Content.Raw, Confidential: confidential || d.secret.hides(c.Target)})
	}
	if len(moved) == 0 {
		return nil, nil
	}
	stored, objects, err := content.Pack(list)
	if err != nil {
		return nil, fmt.Errorf("store the contents of Transaction %s/%s: %w", t.Namespace, t.Name, err)
	}
	changes, _, err := unstructured.NestedSlice(d.Object, "spec", "changes")
	if err != nil {
		return nil, fmt.Errorf("read spec.changes: %w", err)
	}
	for n, at := range stored {
		change, ok := changes[moved[n]].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("spec.changes[%d] is no object", moved[n])
		}
		delete(change, "content")
		ref := "configMapKeyRef"
		if list[n].Confidential {
			ref = "secretKeyRef"
		}
		change["contentFrom"] = map[string]any{
			ref: map[string]any{"name": api.ContentObject(t.Name, at.Object), "key": at.Key}, "digest": at.Digest,
		}
	}
	if err := unstructured.SetNestedSlice(d.Object, changes, "spec", "changes"); err != nil {
		return nil, fmt.Errorf("set spec.changes: %w", err)
	}
	return objects, nil
}

// store creates the objects that hold contents of a Transaction, which owns them. janusd waits
// for all of them. If one cannot be created the Transaction is deleted, and they go with it.
func (s *session) store(ctx context.Context, t *api.Transaction, objects []content.Object) error {
	if len(objects) == 0 {
		return nil
	}
	client, err := s.dynamic()
	for n, o := range objects {
		if err == nil {
			err = storeOne(ctx, client, contentObject(t, n, o), t)
		}
	}
	if err == nil {
		return nil
	}
	s.drop(context.WithoutCancel(ctx), t)
	return fmt.Errorf("store the contents of Transaction %s/%s: %w; it was deleted, and nothing was changed", t.Namespace, t.Name, err)
}

// storeOne creates one object. One of its name may be there: it was created by a request whose
// reply was lost, or belonged to a Transaction of this name that was deleted a moment ago.
func storeOne(ctx context.Context, client dynamic.Interface, u *unstructured.Unstructured, t *api.Transaction) error {
	resources := client.Resource(configMaps).Namespace(t.Namespace)
	if u.GetKind() == "Secret" {
		resources = client.Resource(secrets).Namespace(t.Namespace)
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, last = resources.Create(ctx, u, metav1.CreateOptions{FieldManager: manager})
		if !apierrors.IsAlreadyExists(last) {
			return true, last
		}
		there, err := resources.Get(ctx, u.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err == nil && there.GetLabels()[api.ContentLabel] == string(t.UID) {
			return true, nil
		}
		return false, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil && last != nil {
		err = last
	}
	if err != nil {
		return explain("create "+u.GetKind()+" "+t.Namespace+"/"+u.GetName(), err)
	}
	return nil
}

// contentObject is the manifest of an object that holds contents.
func contentObject(t *api.Transaction, n int, o content.Object) *unstructured.Unstructured {
	data, field, kind := map[string]any{}, "binaryData", "ConfigMap"
	if o.Secret {
		field, kind = "data", "Secret"
	}
	for key, value := range o.Data {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "immutable": true, field: data}}
	u.SetName(api.ContentObject(t.Name, n))
	u.SetNamespace(t.Namespace)
	u.SetLabels(map[string]string{api.ContentLabel: string(t.UID)})
	u.SetOwnerReferences([]metav1.OwnerReference{api.OwnerReference(t.Name, t.UID)})
	return u
}

// taken puts the contents that are stored for a Transaction back into its changes, for a copy
// of it. It returns those of Secrets.
func (s *session) taken(ctx context.Context, t *api.Transaction) (hidden []int, err error) {
	client, err := s.dynamic()
	if err != nil {
		return nil, err
	}
	kept := map[string]*unstructured.Unstructured{}
	for i := range t.Spec.Changes {
		c := &t.Spec.Changes[i]
		from := c.ContentFrom
		if from == nil {
			continue
		}
		resource, ref := configMaps, from.Ref()
		if from.Confidential() {
			resource = secrets
		}
		if !api.IsContentObject(ref.Name, t.Name) {
			continue
		}
		object := kept[resource.Resource+"/"+ref.Name]
		if object == nil {
			object, err = client.Resource(resource).Namespace(t.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
			if err != nil {
				return nil, explain("read the content of "+c.Target.String(), err)
			}
			kept[resource.Resource+"/"+ref.Name] = object
		}
		data, found := content.Value(object, ref.Key)
		if !found {
			return nil, fmt.Errorf("read the content of %s: %s %s/%s has no key %s", c.Target.String(), object.GetKind(), t.Namespace, ref.Name, ref.Key)
		}
		plain, err := content.Unpack(data)
		if err != nil {
			return nil, fmt.Errorf("read the content of %s: %w", c.Target.String(), err)
		}
		c.Content, c.ContentFrom = &runtime.RawExtension{Raw: bytes.TrimSpace(plain)}, nil
		if from.Confidential() {
			hidden = append(hidden, i)
		}
	}
	return hidden, nil
}
