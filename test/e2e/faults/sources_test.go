package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
)

// sourceSuffix ends the names of the objects from which changes take their content.
const sourceSuffix = "-source"

func isSource(name string) bool { return strings.HasSuffix(name, sourceSuffix) }

// nearSource reports whether an act on the sources before a call is worth a run: before each of
// their reads, and before every write that lasts. What is changed before it is read first is
// accepted, and is no fault.
func nearSource(a act, call faultinject.Call, of workload) bool {
	first := call.Nth == 0 && (isSource(call.Name) || call.Resource == "transactions" && call.Method == "PATCH")
	if a.name == "sources-changed" && first {
		return false
	}
	lasting := call.Kind == faultinject.Write && !call.DryRun && call.Resource != "leases"
	for _, change := range of.Changes {
		if change["contentFrom"] != nil {
			return lasting || isSource(call.Name)
		}
	}
	return false
}

// eachSource does something to each object from which a change takes its content.
func (r *run) eachSource(do func(obj *unstructured.Unstructured) error) error {
	objects, err := decode[[]map[string]any](r.Objects, r.at)
	if err != nil {
		return err
	}
	for _, content := range objects {
		if obj := (&unstructured.Unstructured{Object: content}); isSource(obj.GetName()) {
			if err := do(obj); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeSources has other content in the sources. It could be applied as well.
func changeSources(ctx context.Context, r *run, _ target) error {
	return r.eachSource(func(obj *unstructured.Unstructured) error {
		client, err := r.client(obj.GroupVersionKind(), "")
		if err != nil {
			return err
		}
		patch := `{"data":{"patch":"{\"data\": {\"version\": \"3\"}}"}}`
		if obj.GetKind() == "Secret" {
			patch = `{"stringData":{"key":"{\"stringData\": {\"key\": \"other\"}}"}}`
		}
		_, err = client.Patch(ctx, obj.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: somebody})
		return ignoreMissing(err)
	})
}

// recreateSources deletes the sources, and makes them again a little later, as they were.
func recreateSources(ctx context.Context, r *run, _ target) error {
	err := r.eachSource(func(obj *unstructured.Unstructured) error {
		client, err := r.client(obj.GroupVersionKind(), "")
		if err != nil {
			return err
		}
		return ignoreMissing(client.Delete(ctx, obj.GetName(), metav1.DeleteOptions{}))
	})
	r.all.Go(func() {
		time.Sleep(again)
		err := r.eachSource(func(obj *unstructured.Unstructured) error {
			client, err := r.client(obj.GroupVersionKind(), "")
			if err != nil {
				return err
			}
			_, err = client.Create(ctx, obj, metav1.CreateOptions{FieldManager: harness.Manager})
			return err
		})
		if err != nil {
			r.say("make the sources again: %v", err)
		}
	})
	return err
}

// withContents is a Transaction with the contents of its sources in its changes, as they were
// before: nothing else may be applied.
func (r *run) withContents(t api.Transaction) (api.Transaction, error) {
	t.Spec = *t.Spec.DeepCopy()
	err := r.eachSource(func(obj *unstructured.Unstructured) error {
		for i := range t.Spec.Changes {
			c := &t.Spec.Changes[i]
			if c.ContentFrom == nil {
				continue
			}
			ref, field := c.ContentFrom.ConfigMapKeyRef, "data"
			if c.ContentFrom.Confidential() {
				ref, field = c.ContentFrom.SecretKeyRef, "stringData"
			}
			text, found, err := unstructured.NestedString(obj.Object, field, ref.Key)
			if err != nil || !found || ref.Name != obj.GetName() {
				continue
			}
			if !json.Valid([]byte(text)) {
				return fmt.Errorf("the content of change %d is no JSON", i)
			}
			c.Content = &runtime.RawExtension{Raw: []byte(text)}
		}
		return nil
	})
	return t, err
}
