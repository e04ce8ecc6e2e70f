package random

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// in makes the write in a namespace. It reports false if the object is not there.
func (w foreignWrite) in(e *harness.Env, c *randomCase) (bool, error) {
	ctx := e.Context()
	o := c.objects[w.object]
	client, err := e.For(schema.FromAPIVersionAndKind(o.apiVersion, o.kind.name), e.Namespace)
	if err != nil {
		return false, err
	}
	switch w.how {
	case "create":
		_, err = client.Create(ctx, o.object(o.content(w.values, true)), metav1.CreateOptions{FieldManager: w.manager})
	case "scale":
		var body []byte
		body, err = json.Marshal(o.content(w.values, false))
		if err == nil {
			_, err = client.Patch(ctx, o.name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: w.manager}, "scale")
		}
	case "apply":
		first := w.manager == "m0"
		if _, missing := client.Get(ctx, o.name, metav1.GetOptions{}); !first && apierrors.IsNotFound(missing) {
			return false, nil
		}
		_, err = client.Apply(ctx, o.name, o.object(o.content(w.values, first)), metav1.ApplyOptions{FieldManager: w.manager, Force: true})
	default:
		idle := false
		err = harness.Poll(e.Context(), func(ctx context.Context) (bool, error) {
			live, err := client.Get(ctx, o.name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			if idle = !w.edit(o, live); idle {
				return true, nil
			}
			_, err = client.Update(ctx, live, metav1.UpdateOptions{FieldManager: w.manager})
			if apierrors.IsConflict(err) {
				return false, nil
			}
			return err == nil, err
		})
		if idle {
			return false, err
		}
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", w.describe(c), err)
	}
	return err == nil, err
}

// edit makes the write in an object. It reports false if there is nothing to do.
func (w foreignWrite) edit(o randomObject, live *unstructured.Unstructured) bool {
	if w.how != "remove" {
		o.fill(live.Object, w.values)
		return true
	}
	for f := range w.values {
		return o.fields[f].remove(live)
	}
	return false
}

// plainly makes the change of an item as a client without Janus would.
func (c *randomCase) plainly(e *harness.Env, n int) error {
	ctx := e.Context()
	item := c.items[n]
	o := c.objects[item.object]
	client, err := e.For(schema.FromAPIVersionAndKind(o.apiVersion, o.kind.name), e.Namespace)
	if err != nil {
		return err
	}
	manager := fmt.Sprint("plain-", n)
	obj := o.object(o.content(item.values, item.kind != api.Patch))
	switch item.kind {
	case api.Create:
		_, err = client.Create(ctx, obj, metav1.CreateOptions{FieldManager: manager})
	case api.Patch:
		_, err = client.Apply(ctx, o.name, obj, metav1.ApplyOptions{FieldManager: manager, Force: true})
	case api.Update:
		err = harness.Poll(e.Context(), func(ctx context.Context) (bool, error) {
			live, err := client.Get(ctx, o.name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			obj.SetResourceVersion(live.GetResourceVersion())
			_, err = client.Update(ctx, obj, metav1.UpdateOptions{FieldManager: manager})
			if apierrors.IsConflict(err) {
				return false, nil
			}
			return err == nil, err
		})
	case api.Delete:
		err = client.Delete(ctx, o.name, metav1.DeleteOptions{})
	}
	return err
}
