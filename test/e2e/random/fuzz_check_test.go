package random

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/test/harness"
)

// foul are words that tell a user nothing.
var foul = []string{"%!", "nil", "runtime error", "panic", "map[", "Go value", "0x", "interface {}"}

// serversOwn is what the API server itself says so to anyone who sends it such a value.
var serversOwn = regexp.MustCompile(`json: cannot unmarshal [^;]*|<nil>: Invalid value: null|expected [^,]*, got &.*`)

// checkClear: how a Transaction ended is said, in words, and about an object, a field
// or a person.
func checkClear(t *rapid.T, s *fuzzedSpec, txn *api.Transaction) {
	t.Helper()
	texts := map[string]string{}
	for _, kind := range []string{api.ConditionReady, api.ConditionSucceeded, api.ConditionStalled, api.ConditionRolledBack} {
		status, reason, message := harness.Condition(txn, kind)
		if status == "" || reason == "" || message == "" {
			t.Fatalf("condition %s is %q %q %q", kind, status, reason, message)
		}
		texts[kind] = message
	}
	for _, item := range txn.Status.Items {
		texts["item "+item.Name] = item.Message
		if bad := item.State == api.ItemUnresolved || item.State == api.ItemRejected && item.Reason != ""; bad && (item.Reason == "" || item.Message == "") {
			t.Fatalf("item %s is %s for %q: %q", item.Name, item.State, item.Reason, item.Message)
		}
	}
	for where, text := range texts {
		words := serversOwn.ReplaceAllString(strings.ReplaceAll(text, "%s%d%!v", ""), "")
		for _, word := range foul {
			if strings.Contains(words, word) {
				t.Fatalf("%s says %q: %s", where, word, text)
			}
		}
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("%s cannot be shown: %q", where, text)
		}
	}
	if txn.Status.Phase != api.PhaseCommitted && !names(texts[api.ConditionReady], s, txn) {
		t.Fatalf("the message names no object: %s", texts[api.ConditionReady])
	}
}

// names reports whether a message names a target, a field of the spec, the ServiceAccount, or
// the Transaction itself, as where its plan cannot be approved.
func names(message string, s *fuzzedSpec, txn *api.Transaction) bool {
	for _, c := range txn.Spec.Changes {
		if strings.Contains(message, c.Target.Kind+" ") && strings.Contains(message, printable(c.Target.Name)) {
			return true
		}
	}
	return strings.Contains(message, "ServiceAccount "+s.namespace) || strings.Contains(message, "spec.") ||
		strings.Contains(message, "Transaction "+txn.Namespace+"/"+txn.Name+":")
}

func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, name)
}

// inventoried are the kinds of which an inventory is made.
var inventoried = map[string]schema.GroupVersionResource{
	"v1 ConfigMap": {Version: "v1", Resource: "configmaps"}, "v1 Secret": {Version: "v1", Resource: "secrets"}, "v1 Service": {Version: "v1", Resource: "services"},
	"v1 ServiceAccount": {Version: "v1", Resource: "serviceaccounts"}, "apps/v1 Deployment": {Group: "apps", Version: "v1", Resource: "deployments"},
	"example.com/v1 Widget": {Group: "example.com", Version: "v1", Resource: "widgets"}, "coordination.k8s.io/v1 Lease": {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	"v1 Namespace": {Version: "v1", Resource: "namespaces"}, "rbac.authorization.k8s.io/v1 ClusterRole": {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
}

func inventoryKey(apiVersion, kind, namespace, name string) string {
	if kind == "Namespace" || kind == "ClusterRole" {
		namespace = ""
	}
	return apiVersion + " " + kind + "/" + namespace + "/" + name
}

// inventory is every object of the inventoried kinds that is in one of the namespaces, or
// in none and has a name of ours. What Janus keeps for itself is left out.
func (w *fuzzWorld) inventory() map[string]*unstructured.Unstructured {
	w.t.Helper()
	out := map[string]*unstructured.Unstructured{}
	for _, kind := range everyKey(inventoried, nil) {
		apiVersion, kindName, _ := strings.Cut(kind, " ")
		cluster := kindName == "Namespace" || kindName == "ClusterRole"
		namespaces := []string{w.Namespace, w.other.Namespace}
		if cluster {
			namespaces = []string{metav1.NamespaceAll}
		}
		for _, namespace := range namespaces {
			list, err := w.Dynamic.Resource(inventoried[kind]).Namespace(namespace).List(w.Context(), metav1.ListOptions{})
			if err != nil {
				w.t.Errorf("list %s: %v", kind, err)
				continue
			}
			for i := range list.Items {
				obj := &list.Items[i]
				ours := strings.HasSuffix(obj.GetName(), fmt.Sprint("-", w.cases))
				if obj.GetLabels()["app.kubernetes.io/managed-by"] != "janus" && (!cluster || ours) {
					out[inventoryKey(apiVersion, kindName, obj.GetNamespace(), obj.GetName())] = obj
				}
			}
		}
	}
	return out
}

// essence is an object as others see it.
func essence(obj *unstructured.Unstructured) string {
	if obj == nil {
		return "absent"
	}
	out, err := json.Marshal(fieldmerge.Strip(obj).Object)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// checkBystanders: what the Transaction does not name is as it was.
func (w *fuzzWorld) checkBystanders(t *rapid.T, s *fuzzedSpec, before, after map[string]*unstructured.Unstructured) {
	t.Helper()
	for _, key := range everyKey(before, after) {
		if s.named[key] || strings.Contains(key, s.transaction()+"-rollback") {
			continue
		}
		if was, is := before[key], after[key]; essence(was) != essence(is) || was != nil && was.GetUID() != is.GetUID() {
			t.Fatalf("%s is not named, and has changed from\n%s to\n%s", key, cut(essence(was)), cut(essence(is)))
		}
	}
}

func everyKey[V any](some, more map[string]V) []string {
	var keys []string
	for key := range some {
		keys = append(keys, key)
	}
	for key := range more {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// checkAllOrNothing: a Transaction that nobody disturbs and that has not committed
// leaves its targets as they were, but for those that it says it cannot restore.
func checkAllOrNothing(t *rapid.T, s *fuzzedSpec, txn *api.Transaction, before, after map[string]*unstructured.Unstructured) {
	t.Helper()
	unresolved := map[string]bool{}
	for _, item := range txn.Status.Items {
		done := item.State == api.ItemCommitted
		if txn.Status.Phase == api.PhaseCommitted != done && len(txn.Status.Items) > 0 {
			t.Fatalf("%s, and item %s is %s", txn.Status.Phase, item.Name, item.State)
		}
		if item.State == api.ItemUnresolved || item.Reason == "Restored" || item.Reason == "Reclaimed" {
			key := inventoryKey(item.Target.APIVersion, item.Target.Kind, item.Target.Namespace, item.Target.Name)
			unresolved[key] = true
		}
	}
	if txn.Status.Phase == api.PhaseCommitted {
		return
	}
	for _, key := range everyKey(s.named, nil) {
		if was, is := before[key], after[key]; !unresolved[key] && essence(was) != essence(is) {
			t.Fatalf("%s, and %s has changed from\n%s to\n%s", txn.Status.Phase, key, cut(essence(was)), cut(essence(is)))
		}
	}
}

// clear removes what a case has left, whatever keeps it.
func (w *fuzzWorld) clear(s *fuzzedSpec) {
	ctx := context.Background()
	_ = w.Dynamic.Resource(api.Resource).Namespace(w.Namespace).Delete(ctx, s.transaction(), metav1.DeleteOptions{})
	for key, obj := range w.inventory() {
		kind, _, _ := strings.Cut(key, "/"+obj.GetNamespace()+"/"+obj.GetName())
		client := w.Dynamic.Resource(inventoried[kind]).Namespace(obj.GetNamespace())
		if isBystander(obj) {
			continue
		}
		if len(obj.GetFinalizers()) > 0 {
			_, _ = client.Patch(ctx, obj.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
		_ = client.Delete(ctx, obj.GetName(), metav1.DeleteOptions{})
	}
	w.Apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: deployer}}")
}

// isBystander reports whether an object is there for all cases.
func isBystander(obj *unstructured.Unstructured) bool {
	name := obj.GetName()
	return strings.HasSuffix(name, "-0") || name == "kube-root-ca.crt" || obj.GetKind() == "ServiceAccount" && (name == "default" || name == "deployer")
}
