package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	merging "sigs.k8s.io/structured-merge-diff/v4/typed"
	"sigs.k8s.io/structured-merge-diff/v4/value"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/readiness"
	"janus.io/janus/internal/target"
)

// found are the objects that a draft would change, as they were found, by their identities.
type found map[api.Target]*unstructured.Unstructured

// nothingToChange reports whether all objects are what a draft would make of them, and ready if it
// would wait for that. It is looked at here, with what was read before, so that a run that
// changes nothing takes no Transaction. What cannot be told is not the same.
func (s *session) nothingToChange(ctx context.Context, d draft) bool {
	t, err := typed(d.DeepCopy())
	if err != nil || d.found == nil || len(t.Spec.Changes) == 0 {
		return false
	}
	client, err := s.kube()
	if err != nil {
		return false
	}
	types := openapi.New(client.Discovery().OpenAPIV3(), clock.RealClock{}, zap.NewNop(), 0)
	for _, c := range t.Spec.Changes {
		live := d.found[c.Target.Identity()]
		same := false
		switch {
		case c.Type == api.Delete:
			same = live == nil && d.looked[c.Target.Identity()]
		case live == nil || live.GetDeletionTimestamp() != nil:
		case c.Type == api.Await:
			state, err := readiness.Of(live, true, readiness.Wait{})
			same = err == nil && state.Ready
		case c.Type == api.Patch && c.Content != nil:
			kind, err := types.Of(ctx, live.GroupVersionKind())
			same = err == nil && leavesAsIs(kind, live, c.Content.Raw)
		}
		if !same {
			return false
		}
	}
	return true
}

// leavesAsIs reports whether an object has all that a content sets, in the same order.
func leavesAsIs(kind merging.ParseableType, live *unstructured.Unstructured, raw []byte) bool {
	content := &unstructured.Unstructured{}
	if err := content.UnmarshalJSON(raw); err != nil {
		return false
	}
	if content.GroupVersionKind().GroupKind() == target.SecretKind {
		storeText(content.Object)
	}
	live = live.DeepCopy()
	live.SetManagedFields(nil)
	custom := fieldmerge.Custom(content.GroupVersionKind().GroupKind()) // Of these, amounts are as they were given.
	asked, _ := asWritten(content.Object, live.Object, !custom, false).(map[string]any)
	is, err := kind.FromUnstructured(live.Object, merging.AllowDuplicates)
	if err != nil {
		return false
	}
	change, err := kind.FromUnstructured(asked)
	if err != nil {
		return false
	}
	merged, err := is.Merge(change)
	return err == nil && value.Equals(is.AsValue(), merged.AsValue())
}

// storeText puts the text of a Secret where the API server stores it.
func storeText(content map[string]any) {
	text, _ := content["stringData"].(map[string]any)
	data, _ := content["data"].(map[string]any)
	if text == nil {
		return
	}
	if data = maps.Clone(data); data == nil {
		data = map[string]any{}
	}
	for key, v := range text {
		data[key] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(v)))
	}
	content["data"] = data
	delete(content, "stringData")
}

// amounts are the fields below which the API server writes amounts in a form of its own.
var amounts = []string{"limits", "requests", "hard", "capacity", "allocatable", "sizeLimit", "default", "defaultRequest", "max", "min"}

// asWritten brings what is asked for into the form of what is there: a null for what is not there is
// left out, and an amount such as 1000m is the 1 that the API server has made of it.
func asWritten(asked, is any, builtIn, amount bool) any {
	switch asked := asked.(type) {
	case map[string]any:
		object, _ := is.(map[string]any)
		out := map[string]any{}
		for key, v := range asked {
			was, there := object[key]
			if v != nil || there {
				out[key] = asWritten(v, was, builtIn, amount || builtIn && slices.Contains(amounts, key))
			}
		}
		return out
	case []any:
		list, _ := is.([]any)
		out := make([]any, len(asked))
		for i, v := range asked {
			out[i] = asWritten(v, counterpart(v, i, list), builtIn, amount)
		}
		return out
	}
	if amount && sameAmount(asked, is) {
		return is
	}
	return asked
}

// counterpart is the item of a list that has the same name, or else the same place.
func counterpart(item any, at int, list []any) any {
	object, _ := item.(map[string]any)
	if name, named := object["name"]; named {
		for _, other := range list {
			if o, _ := other.(map[string]any); o["name"] == name {
				return other
			}
		}
		return nil
	}
	if at < len(list) {
		return list[at]
	}
	return nil
}

// sameAmount reports whether two values are the same amount.
func sameAmount(a, b any) bool {
	if a == nil || b == nil {
		return false
	}
	x, err1 := resource.ParseQuantity(fmt.Sprint(a))
	y, err2 := resource.ParseQuantity(fmt.Sprint(b))
	return err1 == nil && err2 == nil && x.Cmp(y) == 0
}
