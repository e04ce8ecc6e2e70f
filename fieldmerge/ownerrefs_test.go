package fieldmerge

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

func ownedObject() *unstructured.Unstructured {
	field := func(manager, fields string) any {
		return map[string]any{"manager": manager, "operation": "Apply", "apiVersion": "v1", "time": "2020-01-02T03:04:05Z",
			"fieldsType": "FieldsV1", "fieldsV1": parsedFields(fields)}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": "a",
			"ownerReferences": []any{
				map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "old-x", "blockOwnerDeletion": true},
				map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "y", "uid": "old-y"},
			},
			"managedFields": []any{
				field("both", `{"f:data":{"f:a":{}},"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"old-x\"}":{}}}}`),
				field("adopter", `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"old-y\"}":{}}}}`),
			},
		},
		"data": map[string]any{"a": "b"},
	}}
}

func parsedFields(text string) map[string]any {
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return out
}

func TestReownMovesReferencesAndThoseWhoOwnThem(t *testing.T) {
	t.Parallel()
	obj := ownedObject()
	before := obj.DeepCopy()
	for name, c := range map[string]struct {
		to         map[types.UID]types.UID
		references string
		entries    []string
	}{
		"all stay":   {map[types.UID]types.UID{"old-x": "old-x", "old-y": "old-y"}, "old-x old-y", []string{"both .data.a .metadata.ownerReferences .metadata.ownerReferences[uid=\"old-x\"]", "adopter .metadata.ownerReferences[uid=\"old-y\"]"}},
		"one moves":  {map[types.UID]types.UID{"old-x": "new-x", "old-y": "old-y"}, "new-x old-y", []string{"both .data.a .metadata.ownerReferences .metadata.ownerReferences[uid=\"new-x\"]", "adopter .metadata.ownerReferences[uid=\"old-y\"]"}},
		"one is out": {map[types.UID]types.UID{"old-x": "new-x"}, "new-x", []string{"both .data.a .metadata.ownerReferences .metadata.ownerReferences[uid=\"new-x\"]"}},
		"all out":    {nil, "", []string{"both .data.a"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Reown(obj, func(uid types.UID) types.UID { return c.to[uid] })
			if err != nil {
				t.Fatal(err)
			}
			var references []string
			for _, owner := range got.GetOwnerReferences() {
				references = append(references, string(owner.UID))
			}
			if all := strings.Join(references, " "); all != c.references {
				t.Errorf("it has the owners %q", all)
			}
			if found := described(t, got); strings.Join(found, "\n") != strings.Join(c.entries, "\n") {
				t.Errorf("managedFields are %q", found)
			}
			if strings.Join(described(t, obj), " ") != strings.Join(described(t, before), " ") || len(obj.GetOwnerReferences()) != 2 {
				t.Error("the argument was changed")
			}
		})
	}
}

// described lists the entries of managedFields with their paths.
func described(t *testing.T, obj *unstructured.Unstructured) []string {
	t.Helper()
	list, err := entriesOf(obj)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		var paths []string
		e.set.Iterate(func(p fieldpath.Path) { paths = append(paths, p.String()) })
		out = append(out, e.Manager+" "+strings.Join(paths, " "))
	}
	return out
}

func TestReownRefusesManagedFieldsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	obj := ownedObject()
	entries := obj.GetManagedFields()
	entries[0].FieldsV1.SetRawBytes([]byte(`{"k:nonsense":{}}`))
	obj.SetManagedFields(entries)
	if _, err := Reown(obj, func(uid types.UID) types.UID { return uid }); err == nil {
		t.Error("it was taken")
	}
	if _, err := Foreign(obj, nobodys); err == nil {
		t.Error("it was taken")
	}
}

func TestForeignListsFieldsOnceWithAllWhoOwnThem(t *testing.T) {
	t.Parallel()
	obj := ownedObject()
	found, err := Foreign(obj, func(manager string) bool { return manager == "adopter" })
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].Path != ".data.a" || found[0].Now != "b" || found[1].Path != `.metadata.ownerReferences[uid="old-x"]` {
		t.Errorf("found %v", found)
	}
	owners := NewOwners(obj, nil, func(manager string) bool { return manager == "both" })
	if len(owners) != 1 || owners[0].String() != `.metadata.ownerReferences[uid="old-y"] (now of adopter)` {
		t.Errorf("new owners are %v", owners)
	}
	if owners := NewOwners(obj, obj, nobodys); len(owners) != 0 {
		t.Errorf("new owners are %v", owners)
	}
}

func TestKindsOfKubernetesAreNotCustom(t *testing.T) {
	t.Parallel()
	for kind, want := range map[schema.GroupKind]bool{
		{Kind: "Pod"}:                                                                 false,
		{Group: "apps", Kind: "Deployment"}:                                           false,
		{Group: "apps", Kind: "Unheard"}:                                              false,
		{Group: "example.com", Kind: "Pod"}:                                           true,
		{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}:                    true,
		{Group: "apiregistration.k8s.io", Kind: "APIService"}:                         false,
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:             false,
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                     false,
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}: false,
	} {
		if got := Custom(kind); got != want {
			t.Errorf("%s: %t", kind, got)
		}
	}
}
