package wiring

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/internal/target"
	"janus.io/janus/lockmgr"
)

// staticMapper knows a few kinds.
type staticMapper struct{ *meta.DefaultRESTMapper }

func (staticMapper) Reset() {}

func knownKinds() staticMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	m.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, meta.RESTScopeRoot)
	m.Add(api.Kind, meta.RESTScopeNamespace)
	return staticMapper{m}
}

// contents are ones that decoders and checks stumble over.
var contents = []string{
	`{}`, `null`, `[]`, `"x"`, `7`, `{"metadata":null}`, `{"metadata":[]}`, `{"metadata":{"name":null,"namespace":7}}`, `{"kind":null,"apiVersion":{}}`,
	`{"metadata":{"annotations":null,"labels":[]}}`, `{"data":null,"data":{"a":"b"}}`, `{"a":12345678901234567890,"b":1e308,"c":-0.0,"d":1e999}`,
	`{"metadata":{"managedFields":[],"uid":"","resourceVersion":"0","generateName":""}}`, `{"":{"":null}}`, `{"a":"\ud800\u0000"}`,
	`{"spec":{"group":7,"names":{"kind":{},"plural":[]},"scope":null,"versions":{}}}`,
	`{"spec":{"group":"e.x","names":{"kind":"K","plural":"ks"},"scope":"Namespaced","versions":[null,7,{"name":"v1","served":true},{"name":"","served":true},{"name":"v2"}]}}`,
	`{"spec":{"group":"e.x","names":{"kind":"K","plural":"ks"},"versions":"x"}}`, `{"a":` + strings.Repeat(`[`, 500) + strings.Repeat(`]`, 500) + `}`,
}

// FuzzSpec: whatever a Transaction says, all that is looked at before anyone is
// asked ends in items that can be locked and described, or in an error of a known
// reason that will not heal and that names the target.
func FuzzSpec(f *testing.F) {
	add := func(spec string) {
		f.Add([]byte(`{"metadata":{"name":"t","namespace":"shop","uid":"u"},"spec":` + spec + `}`))
	}
	for _, c := range contents {
		for _, kind := range []string{"Create", "Patch", "Delete"} {
			add(`{"changes":[{"type":"` + kind + `","target":{"apiVersion":"v1","kind":"ConfigMap","name":"a"},"content":` + c + `}]}`)
		}
		add(`{"changes":[{"type":"Create","target":{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","name":"ks.e.x"},"content":` + c + `},
			{"type":"Create","target":{"apiVersion":"e.x/v1","kind":"K","name":"k"},"content":{}}]}`)
	}
	for _, name := range []string{".", "..", "a b", "a:b", "ä", "\\u0000", "\\u202e", "%2e", "a/b", "A.B", "-"} {
		add(`{"lockTimeout":"-1h","timeout":"` + name + `","changes":[{"type":"Update","target":{"apiVersion":"v1","kind":"ConfigMap","name":"` + name + `","namespace":"` + name + `"},"content":{}}]}`)
	}
	for _, version := range []string{"", "/", "v1/", "/v1", "a/b/c", "v0", "V1"} {
		add(`{"changes":[{"type":"Delete","target":{"apiVersion":"` + version + `","kind":"ConfigMap","name":"a"}}]}`)
	}
	add(`{"changes":[{"name":"1","type":"Delete","target":{"apiVersion":"v1","kind":"Namespace","name":"shop"}},{"type":"","target":{}}]}`)
	add(`{"changes":[{"type":"Create","target":{"apiVersion":"v1","kind":"Namespace","name":"n"},"content":{}},{"type":"Patch","target":{"apiVersion":"v1","kind":"ConfigMap","namespace":"n","name":"a"},"content":{"metadata":{"namespace":""}}}]}`)
	add(`{"changes":[{"type":"Delete","target":{"apiVersion":"backup.janus.io/v1alpha1","kind":"Transaction","name":"t"}}]}`)
	add(`null`)
	f.Fuzz(func(t *testing.T, data []byte) {
		obj := &unstructured.Unstructured{}
		if json.Unmarshal(data, &obj.Object) != nil || obj.Object == nil {
			return
		}
		txn, err := FromUnstructured(obj)
		if err != nil {
			if errclass.ClassOf(err) != errclass.Terminal || errclass.ReasonOf(err) != errclass.Invalid {
				t.Fatal(err)
			}
			return
		}
		plan.Timeout(txn)
		if plan.LockTimeout(txn) <= 0 {
			t.Fatalf("a lock lasts %s", plan.LockTimeout(txn))
		}
		validateAlone(t, txn)
	})
}

// validateAlone makes the checks of Validate that ask nobody.
func validateAlone(t *testing.T, txn *api.Transaction) {
	t.Helper()
	v := validation{content: func(i int) (map[string]any, error) { return contentOf(txn.Spec.Changes[i]) }, definitions: map[string]map[string]any{}, live: func(target.Ref) (map[string]any, error) { return nil, nil }, resolver: target.NewResolver(knownKinds(), nil), activated: func(api.Target, *api.Activation) (bool, error) { return true, nil }, namespaces: map[string]bool{}, names: map[string]bool{}, txn: txn}
	txn.Status.Items = make([]api.Item, len(txn.Spec.Changes))
	var problems []error
	for i, change := range txn.Spec.Changes {
		item, err := v.begin(i, change)
		if err == nil && item.State != api.ItemSkipped {
			err = v.item(&item, i, change)
		}
		txn.Status.Items[i] = item
		if err != nil {
			checkProblem(t, err, change.Target)
			problems = append(problems, err)
			continue
		}
		checkItem(t, txn, item, change)
	}
	if len(problems) > 0 {
		checkSaid(t, first(problems))
		return
	}
	if err := fits(txn); err != nil && errclass.ReasonOf(err) != errclass.TooLarge {
		t.Fatal(err)
	}
	if _, _, err := keysOf(txn); err != nil {
		t.Fatal(err)
	}
	if _, err := chainsOf(txn); err != nil {
		t.Fatal(err)
	}
	holderOf(txn)
}

func checkItem(t *testing.T, txn *api.Transaction, item api.Item, change api.Change) {
	t.Helper()
	ref, err := refOf(item)
	if err != nil {
		t.Fatal(err)
	}
	if item.Name == "" || item.Resource == "" || ref.Name != change.Target.Name || ref.GVK.Kind != change.Target.Kind {
		t.Fatalf("%+v is made of %+v", item, change)
	}
	if ref.Name == "" || ref.Name == "." || ref.Name == ".." || strings.ContainsAny(ref.Name+ref.Namespace, "/%") {
		t.Fatalf("no request can be made for %q in %q", ref.Name, ref.Namespace)
	}
	content, err := contentOf(change)
	if err != nil || (content == nil) != (change.Type == api.Delete) {
		t.Fatalf("content %v, %v", content, err)
	}
	name, _, _ := unstructured.NestedString(content, "metadata", "name")
	namespace, _, _ := unstructured.NestedString(content, "metadata", "namespace")
	if name != "" && name != ref.Name || namespace != "" && namespace != ref.Namespace {
		t.Fatalf("content is of %s/%s, the target is %s", namespace, name, ref)
	}
	if change.Type == api.Delete && txn.Name == ref.Name && txn.Namespace == ref.Namespace && ref.GVK.GroupKind() == api.Kind.GroupKind() {
		t.Fatal("a Transaction may delete itself")
	}
}

func checkProblem(t *testing.T, err error, of api.Target) {
	t.Helper()
	if errclass.ClassOf(err) != errclass.Terminal {
		t.Fatalf("%s: %v", errclass.ClassOf(err), err)
	}
	switch errclass.ReasonOf(err) {
	case errclass.Invalid, errclass.KindNotFound, errclass.Irreversible:
	default:
		t.Fatalf("%s: %v", errclass.ReasonOf(err), err)
	}
	if len(of.Kind+of.Name) < 300 && !strings.Contains(errclass.Message(err), errclass.Printable(of.Name)) {
		t.Fatalf("%v does not name %s", err, of.Name)
	}
	checkSaid(t, err)
}

// checkSaid: a message is for people.
func checkSaid(t *testing.T, err error) {
	t.Helper()
	message := errclass.Message(err)
	for _, word := range []string{"%!", "<nil>", "runtime error", "panic", "map[string]interface", "map[string]any", "Go value", "Go struct"} {
		if strings.Contains(message, word) {
			t.Fatalf("%q has %q in it", message, word)
		}
	}
}

// FuzzLockErrors: what is said of a lock that has a holder names the target and
// can be shown, no matter who holds it.
func FuzzLockErrors(f *testing.F) {
	f.Add("shop/a/u", "web", "shop/janus-lock-x")
	f.Add("", "web", "shop/janus-lock-x")
	f.Add("\x00\x1b[2J\n", "ä", "")
	f.Fuzz(func(t *testing.T, holder, name, lease string) {
		key := lockmgr.Key{ID: objectid.ID{Resource: "configmaps", Namespace: "shop", Name: name}, Kind: "ConfigMap"}
		for _, err := range []error{
			&lockmgr.HeldError{Key: key, Lease: lease, Holder: holder},
			&lockmgr.LostError{Lock: lockmgr.Lock{Key: key, Namespace: "shop", Name: lease}, Holder: holder},
			&lockmgr.NamespaceTerminatingError{Key: key, Namespace: "shop"},
		} {
			got := explainLock(err)
			message := errclass.Message(got)
			unnamed := holder == "" && (strings.Contains(message, "held by ;") || strings.Contains(message, "passed to ;"))
			if !strings.Contains(got.Error(), name) || unnamed {
				t.Fatalf("%q of %s", message, name)
			}
			checkSaid(t, got)
		}
	})
}
