package mutate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// dependant is a ConfigMap shop/NAME, whose uid is its name, and which has owners.
func dependant(name string, owners ...metav1.OwnerReference) Dependant {
	return Dependant{
		GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		PartialObjectMetadata: &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID(name), OwnerReferences: owners, CreationTimestamp: at(0)},
		},
	}
}

// at is a time in seconds.
func at(second int64) metav1.Time { return metav1.Unix(second, 0) }

func owner(name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: types.UID(name)}
}

func TestTheGarbageCollectorTakesWhatHasLostAllOfItsOwners(t *testing.T) {
	deleted := dependant("other")
	deleted.DeletionTimestamp = &metav1.Time{}
	elsewhere := dependant("other")
	elsewhere.Namespace = "elsewhere"
	cluster := dependant("other")
	cluster.Namespace = ""
	younger, asOld := dependant("other"), dependant("other")
	younger.CreationTimestamp, asOld.CreationTimestamp = at(11), at(10)
	misnamed, ofAnotherKind, ofAnotherGroup := owner("other"), owner("other"), owner("other")
	misnamed.Name, ofAnotherKind.Kind, ofAnotherGroup.APIVersion = "another", "Secret", "example.com/v1"
	for name, c := range map[string]struct {
		all  []Dependant
		want []string
	}{
		"one owner":                           {[]Dependant{dependant("a", owner("root"))}, []string{"a"}},
		"a chain, in any order":               {[]Dependant{dependant("b", owner("a")), dependant("a", owner("root"))}, []string{"a", "b"}},
		"an owner that stays":                 {[]Dependant{dependant("a", owner("root"), owner("other")), dependant("other")}, nil},
		"what that owns":                      {[]Dependant{dependant("b", owner("a")), dependant("a", owner("root"), owner("other")), dependant("other")}, nil},
		"an owner that is gone":               {[]Dependant{dependant("a", owner("gone"), owner("root"))}, []string{"a"}},
		"an owner that is being deleted":      {[]Dependant{dependant("a", owner("root"), owner("other")), deleted}, []string{"a"}},
		"an owner that goes too":              {[]Dependant{dependant("b", owner("root"), owner("a")), dependant("a", owner("root"))}, []string{"a", "b"}},
		"an owner that came later":            {[]Dependant{dependant("a", owner("root"), owner("other")), younger}, []string{"a"}},
		"an owner of the same second":         {[]Dependant{dependant("a", owner("root"), owner("other")), asOld}, []string{"a"}},
		"an owner in another namespace":       {[]Dependant{dependant("a", owner("root"), owner("other")), elsewhere}, []string{"a"}},
		"an owner of the cluster":             {[]Dependant{dependant("a", owner("root"), owner("other")), cluster}, nil},
		"a reference with another name":       {[]Dependant{dependant("a", owner("root"), misnamed), dependant("other")}, []string{"a"}},
		"a reference with another kind":       {[]Dependant{dependant("a", owner("root"), ofAnotherKind), dependant("other")}, []string{"a"}},
		"a reference with another group":      {[]Dependant{dependant("a", owner("root"), ofAnotherGroup), dependant("other")}, []string{"a"}},
		"an object that others own":           {[]Dependant{dependant("a", owner("other")), dependant("other")}, nil},
		"two that own each other and no root": {[]Dependant{dependant("a", owner("b")), dependant("b", owner("a"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range allBelow(&metav1.ObjectMeta{UID: "root", CreationTimestamp: at(10)}, c.all) {
				got = append(got, d.Name)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// Whichever of them is asked about, the last owner is not taken for one that stays, though all are
// deleted side by side.
func TestOfSeveralOwnersOneHasNoOtherToRelyOn(t *testing.T) {
	owned := dependant("data", owner("a"), owner("b"), owner("c"))
	of := map[string]Dependant{"a": dependant("a"), "b": dependant("b"), "c": dependant("c")}
	for name, d := range of {
		d.CreationTimestamp = at(int64(name[0]))
	}
	take := 0
	for _, root := range of {
		take += len(allBelow(root, []Dependant{of["a"], owned, of["b"], of["c"]}))
	}
	assert.Equal(t, 1, take)
}
