package fieldmerge

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ownedThing is a thing with managers that own fields at its top level, each written as
// "manager: one two".
func ownedThing(t testing.TB, content string, owners ...string) *unstructured.Unstructured {
	t.Helper()
	out := thingOf(t, content)
	var list []metav1.ManagedFieldsEntry
	for _, of := range owners {
		manager, fields, _ := strings.Cut(of, ": ")
		entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}}
		entry.FieldsV1.SetRawBytes([]byte(`{"f:` + strings.Join(strings.Fields(fields), `":{},"f:`) + `":{}}`))
		list = append(list, entry)
	}
	out.SetManagedFields(list)
	return out
}

// After a commit the fields are with those who had owned them before, by our own hand. That
// they own them says nothing; another value does, and another owner.
func TestRestoreAfterTheFieldsWereHandedOver(t *testing.T) {
	t.Parallel()
	before := ownedThing(t, `{"a":1,"b":1}`, "kubectl: a b")
	after := thingOf(t, `{"a":2,"b":1,"c":2}`)
	for _, c := range []struct {
		name, live string
		owners     []string
		want       string
		conflicts  []string
	}{
		{"nobody has written it", `{"a":2,"b":1,"c":2}`, []string{"kubectl: a b", "janus: c"}, `{"a":1,"b":1}`, nil},
		{"what others have set besides is kept", `{"a":2,"b":5,"c":2,"d":5}`, []string{"kubectl: a b", "janus: c", "person: d"}, `{"a":1,"b":5,"d":5}`, nil},
		{"its owner has written it since", `{"a":3,"b":1,"c":2}`, []string{"kubectl: a b", "janus: c"}, `{"a":3,"b":1}`, []string{".a"}},
		{"a later Transaction has written what nobody owned", `{"a":2,"b":1,"c":3}`, []string{"kubectl: a b", "janus: c"}, `{"a":1,"b":1,"c":3}`, []string{".c"}},
		{"another client wants the same value", `{"a":2,"b":1,"c":2}`, []string{"kubectl: a b", "janus: c", "person: a"}, `{"a":2,"b":1}`, []string{".a"}},
		{"another client has removed it", `{"b":1,"c":2}`, []string{"kubectl: b", "janus: c"}, `{"b":1}`, []string{".a"}},
		{"another client has put it back", `{"a":1,"b":1,"c":2}`, []string{"kubectl: a b", "janus: c"}, `{"a":1,"b":1}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := ownedThing(t, c.live, c.owners...)
			images := Images{Before: before, After: after, Live: live, HandedOver: true, Ours: func(manager string) bool { return manager == "janus" }}
			restored := images.Restore()
			assert.Equal(t, Strip(thingOf(t, c.want)).Object, Strip(restored.Desired).Object)
			assert.Equal(t, c.conflicts, conflictsOf(restored))
			assert.Empty(t, restored.Reclaimed)

			images.Force = true
			forced := images.Restore()
			assert.Equal(t, c.conflicts, conflictsOf(forced))
			value, there := forced.Desired.Object["a"]
			assert.True(t, there)
			assert.EqualValues(t, 1, value)
			assert.NotContains(t, forced.Desired.Object, "c")
		})
	}
}

// Of several changes of one object, each was made to what the one before had left: who
// owned the fields before all of them owns them after the commit.
func TestFormerOwnersAreThoseBeforeTheFirstChange(t *testing.T) {
	t.Parallel()
	first := ownedThing(t, `{"a":1}`, "kubectl: a")
	second := ownedThing(t, `{"a":2}`, "janus-7f3a0000-0: a")
	live := ownedThing(t, `{"a":3}`, "kubectl: a")
	images := Images{Before: second, After: thingOf(t, `{"a":3}`), Live: live, HandedOver: true, Ours: nobodys}
	assert.Equal(t, []string{".a"}, conflictsOf(images.Restore()), "an owner that it did not have")
	images.Former = first
	assert.Empty(t, images.Restore().Conflicts)
	assert.EqualValues(t, 2, images.Restore().Desired.Object["a"])
}

// The control plane writes some fields together with others, and goes on to write them: it owned
// the field before the change, and owns it now.
func TestAnUndoReversesWhatTheControlPlaneHasAddedTo(t *testing.T) {
	t.Parallel()
	before := ownedThing(t, `{"a":1}`, "kube-controller-manager: a")
	live := ownedThing(t, `{"a":3}`, "kube-controller-manager: a")
	images := Images{Before: before, After: thingOf(t, `{"a":2}`), Live: live, HandedOver: true, Ours: func(manager string) bool { return manager == "janus" }}
	restored := images.Restore()
	assert.Equal(t, Strip(thingOf(t, `{"a":1}`)).Object, Strip(restored.Desired).Object)
	assert.Empty(t, restored.Conflicts)
}
