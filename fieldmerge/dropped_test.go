package fieldmerge

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cupOf is a custom resource with this spec, and entries of managedFields: each is a manager, its
// operation, and the fields of the spec that it owns.
func cupOf(t *testing.T, spec string, entries ...string) *unstructured.Unstructured {
	t.Helper()
	var managed []string
	for _, e := range entries {
		words := strings.Fields(e)
		var fields []string
		for _, f := range words[2:] {
			fields = append(fields, `"f:`+f+`":{}`)
		}
		managed = append(managed, `{"manager":"`+words[0]+`","operation":"`+words[1]+`","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{`+strings.Join(fields, ",")+`}}}`)
	}
	cup := thingOf(t, `{"metadata":{"managedFields":[`+strings.Join(managed, ",")+`]},"spec":`+spec+`}`)
	cup.SetAPIVersion("example.com/v1")
	cup.SetKind("Cup")
	return cup
}

func janusOwn(manager string) bool { return strings.HasPrefix(manager, "janus-") }

// A field that the API server drops keeps its owner, and one that a client removes does not.
func TestAFieldThatTheAPIServerHasDroppedIsPutBack(t *testing.T) {
	t.Parallel()
	before := cupOf(t, `{"a":"1","b":"keep"}`, "tester Apply a b")
	after := cupOf(t, `{"a":"2","b":"keep"}`, "tester Apply b", "janus-x-0 Apply a")
	for _, c := range []struct {
		name string
		live *unstructured.Unstructured
		// handedOver is set for an undo.
		handedOver bool
		want       map[string]any
	}{
		{"dropped", cupOf(t, `{"a":"2"}`, "tester Apply b", "janus-x-0 Apply a"), false, map[string]any{"a": "1", "b": "keep"}},
		{"removed by its owner", cupOf(t, `{"a":"2"}`, "janus-x-0 Apply a"), false, map[string]any{"a": "1"}},
		{"changed by another client", cupOf(t, `{"a":"2","b":"theirs"}`, "person Update b", "janus-x-0 Apply a"), false, map[string]any{"a": "1", "b": "theirs"}},
		{"dropped before an undo", cupOf(t, `{"a":"2"}`, "tester Apply a b"), true, map[string]any{"a": "1"}},
	} {
		got := Images{Before: before, After: after, Live: c.live, Ours: janusOwn, HandedOver: c.handedOver}.Restore().Desired.Object["spec"]
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// What is put back was written by the rollback, which then owns it alone.
func TestAFieldThatIsPutBackGetsItsOwnerBack(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"Apply", "Update"} {
		before := cupOf(t, `{"a":"1","b":"keep"}`, "tester "+operation+" a b")
		after := cupOf(t, `{"a":"2","b":"keep"}`, "tester "+operation+" b", "janus-x-0 Apply a")
		live := cupOf(t, `{"a":"1","b":"keep"}`, "janus-x-0 Update a b")
		got, _, err := Images{Before: before, After: after, Live: live, Ours: janusOwn}.RestoreOwners()
		if err != nil || !SameOwners(got, before.GetManagedFields()) {
			t.Errorf("%s: got %v, %v", operation, got, err)
		}
	}
}
