package random

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/wiring"
)

// tamperings are what another client may do.
var tamperings = map[string]func(*tampering, *api.Transaction) error{
	"images flipped":   onImages(eachValue(func(text string) string { return flip(text) })),
	"images cut":       onImages(eachValue(func(text string) string { return text[:len(text)/2] })),
	"images emptied":   onImages(eachValue(func(string) string { return "" })),
	"images forged":    onImages(eachValue(func(text string) string { return strings.ReplaceAll(text, `"a":"1"`, `"a":"forged"`) + " " })),
	"images exchanged": onImages(exchange),
	"images without data": onImages(func(x *tampering, txn *api.Transaction, obj *unstructured.Unstructured) {
		x.soil(txn, obj, nil)
		obj.Object["data"] = map[string]any{}
	}),
	"images of another": onImages(func(x *tampering, txn *api.Transaction, obj *unstructured.Unstructured) {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: api.GroupVersion.String(), Kind: "Transaction", Name: "other", UID: "other"}})
		obj.SetLabels(nil)
		eachValue(flip)(x, txn, obj)
	}),
	"images of nobody": onImages(func(_ *tampering, _ *api.Transaction, obj *unstructured.Unstructured) {
		obj.SetOwnerReferences(nil)
		obj.SetLabels(nil)
		obj.SetAnnotations(nil)
	}),
	"images deleted":             onImages(nil),
	"images without labels":      onMetadata(`{"labels":null,"annotations":null}`),
	"images without owners":      onMetadata(`{"ownerReferences":null}`),
	"images without finalizers":  onMetadata(`{"finalizers":null}`),
	"images with a finalizer":    onMetadata(`{"finalizers":["backup.janus.io/before-image","example.com/hold"]}`),
	"owners reset":               onOwners(`[{}]`),
	"owners forged as the item":  onOwners(`[{"manager":"$ITEM","operation":"Apply","apiVersion":"$VERSION","fieldsType":"FieldsV1","fieldsV1":$ALL}]`),
	"owners forged as an update": onOwners(`[{"manager":"$ITEM","operation":"Update","apiVersion":"$VERSION","fieldsType":"FieldsV1","fieldsV1":$ALL}]`),
	"owners forged as janus":     onOwners(`[{"manager":"janus","operation":"Apply","apiVersion":"$VERSION","fieldsType":"FieldsV1","fieldsV1":$ALL}]`),
	"owners of another version":  onOwners(`[{"manager":"kubectl","operation":"Apply","apiVersion":"v9","fieldsType":"FieldsV1","fieldsV1":$ALL}]`),
	"owners of nonsense":         onOwners(`[{"manager":"\u0001","operation":"Update","apiVersion":"$VERSION","fieldsType":"FieldsV1","fieldsV1":{"f:":{},"k:{\"x\":null}":{},"v:1":{},"i:0":{}}}]`),
	"locks deleted":              onLocks(""),
	"locks taken":                onLocks(`{"spec":{"holderIdentity":"somebody","leaseDurationSeconds":3600}}`),
	"locks emptied":              onLocks(`{"spec":{"holderIdentity":null,"leaseDurationSeconds":null,"renewTime":null,"acquireTime":null}}`),
	"locks without labels":       onLocks(`{"metadata":{"labels":null,"annotations":null,"ownerReferences":null}}`),
	"locks of odd numbers":       onLocks(`{"spec":{"leaseDurationSeconds":2147483647,"leaseTransitions":2147483647,"renewTime":"9999-12-31T23:59:59.999999Z"}}`),
	"locks of an odd holder":     onLocks(`{"spec":{"holderIdentity":"\u0000\u001b[31m ä/../"}}`),
}

func flip(text string) string {
	return strings.NewReplacer("0", "1", "1", "0").Replace(text)
}

// eachValue changes every record in an object.
func eachValue(change func(string) string) func(*tampering, *api.Transaction, *unstructured.Unstructured) {
	return func(x *tampering, txn *api.Transaction, obj *unstructured.Unstructured) {
		was := recordsIn(obj)
		x.soil(txn, obj, func(key string) bool { return change(was[key]) != was[key] })
		for key, text := range was {
			setValue(obj, key, change(text))
		}
	}
}

// exchange gives each record the content of the next.
func exchange(x *tampering, txn *api.Transaction, obj *unstructured.Unstructured) {
	was := recordsIn(obj)
	keys := everyKey(was, nil)
	x.soil(txn, obj, func(string) bool { return len(keys) > 1 })
	for i, key := range keys {
		setValue(obj, key, was[keys[(i+1)%len(keys)]])
	}
}

// soil notes the items whose records are in an object, and are changed.
func (x *tampering) soil(txn *api.Transaction, obj *unstructured.Unstructured, changed func(key string) bool) {
	for key := range recordsIn(obj) {
		for i, item := range txn.Status.Items {
			if item.Before != nil && item.Before.Key == key && (changed == nil || changed(key)) {
				x.dirty[i] = true
			}
		}
	}
}

// recordsIn returns the records in an object; those of a Secret too.
func recordsIn(obj *unstructured.Unstructured) map[string]string {
	out, _, _ := unstructured.NestedStringMap(obj.Object, "data")
	if obj.GetKind() == "Secret" {
		for key, coded := range out {
			var text []byte
			_ = json.Unmarshal([]byte(encoded(coded)), &text)
			out[key] = string(text)
		}
	}
	return out
}

func setValue(obj *unstructured.Unstructured, key, text string) {
	data := obj.Object["data"].(map[string]any)
	data[key] = text
	if obj.GetKind() == "Secret" {
		data[key] = decoded(encoded([]byte(text)))
	}
}

// images gives the objects that hold before-images, with the clients to them.
func (x *tampering) images(txn *api.Transaction, do func(dynamic.ResourceInterface, *unstructured.Unstructured) error) error {
	if txn.Status.RollbackRef == nil {
		return nil
	}
	for _, entry := range txn.Status.RollbackRef.Objects {
		kind, name, _ := strings.Cut(entry, "/")
		client := x.w.Dynamic.Resource(inventoried["v1 "+kind]).Namespace(x.w.Namespace)
		obj, err := client.Get(context.Background(), name, metav1.GetOptions{})
		if err == nil {
			err = do(client, obj)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// onImages deletes the objects and puts others in their place, or none.
func onImages(change func(*tampering, *api.Transaction, *unstructured.Unstructured)) func(*tampering, *api.Transaction) error {
	return func(x *tampering, txn *api.Transaction) error {
		return x.images(txn, func(client dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
			ctx := context.Background()
			if _, err := client.Patch(ctx, obj.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
				return err
			}
			if err := client.Delete(ctx, obj.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
			if change == nil {
				x.soil(txn, obj, nil)
				return nil
			}
			change(x, txn, obj)
			obj.SetResourceVersion("")
			obj.SetUID("")
			obj.SetManagedFields(nil)
			if x.pick%2 == 0 {
				obj.SetFinalizers(nil)
			}
			_, err := client.Create(ctx, obj, metav1.CreateOptions{})
			return err
		})
	}
}

// onMetadata patches the metadata of the objects, which are immutable but for that.
func onMetadata(metadata string) func(*tampering, *api.Transaction) error {
	return func(x *tampering, txn *api.Transaction) error {
		return x.images(txn, func(client dynamic.ResourceInterface, obj *unstructured.Unstructured) error {
			_, err := client.Patch(context.Background(), obj.GetName(), types.MergePatchType, []byte(`{"metadata":`+metadata+`}`), metav1.PatchOptions{})
			return err
		})
	}
}

// onOwners writes the managedFields of a target.
func onOwners(list string) func(*tampering, *api.Transaction) error {
	return func(x *tampering, txn *api.Transaction) error {
		if len(txn.Status.Items) == 0 {
			return nil
		}
		i := x.pick % len(txn.Status.Items)
		item := txn.Status.Items[i]
		gvk := schema.FromAPIVersionAndKind(item.Target.APIVersion, item.Target.Kind)
		client, err := x.w.For(gvk, item.Target.Namespace)
		if err != nil {
			return err
		}
		ctx := context.Background()
		live, err := client.Get(ctx, item.Target.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		all := "{}"
		if owners := live.GetManagedFields(); len(owners) > 0 && owners[0].FieldsV1 != nil {
			all = string(owners[0].FieldsV1.GetRawBytes())
		}
		text := strings.NewReplacer("$ITEM", fmt.Sprintf("janus-%s-%d", string(txn.UID)[:8], i), "$VERSION", item.Target.APIVersion, "$ALL", all).Replace(list)
		_, err = client.Patch(ctx, item.Target.Name, types.MergePatchType, []byte(`{"metadata":{"managedFields":`+text+`}}`), metav1.PatchOptions{FieldManager: "somebody"})
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			return nil
		}
		return err
	}
}

// onLocks patches the Leases of a Transaction, or deletes them.
func onLocks(patch string) func(*tampering, *api.Transaction) error {
	return func(x *tampering, txn *api.Transaction) error {
		for _, item := range txn.Status.Items {
			namespace, name, _ := strings.Cut(item.LockLease, "/")
			if name == "" {
				continue
			}
			client := x.w.Dynamic.Resource(inventoried["coordination.k8s.io/v1 Lease"]).Namespace(namespace)
			var err error
			if patch == "" {
				err = client.Delete(context.Background(), name, metav1.DeleteOptions{})
			} else {
				_, err = client.Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	}
}

// read returns a Transaction, nil if it does not exist.
func (w *fuzzWorld) read(ctx context.Context, name string) (*api.Transaction, error) {
	return wiring.NewJournal(w.Dynamic).Read(ctx, types.NamespacedName{Namespace: w.Namespace, Name: name})
}
