package apisim

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// firstVersion is about where a real server is that has made its own objects.
const firstVersion = 1000

// addNamespace makes a namespace as an administrator would.
func (s *Server) addNamespace(name string) {
	k := s.kinds[namespaces]
	obj, _, err := k.shape.decode([]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"`+name+`"}}`), false)
	if err != nil {
		panic(err)
	}
	r := &request{Server: s, verb: "create", kind: k, name: name, user: administrator, manager: "apisim"}
	if _, err := r.createObject(obj); err != nil {
		panic(err)
	}
}

// addDefinition makes a CustomResourceDefinition whose kind is served already.
func (s *Server) addDefinition(d *Definition) {
	obj := maps.Clone(d.object)
	m := ownMetadata(obj)
	m["uid"], m["creationTimestamp"], m["generation"] = s.uid(), s.timestamp(), int64(1)
	s.starting = true
	r := &request{Server: s, verb: "create", kind: s.kinds[definitions], name: nameOf(obj), user: administrator}
	r.put(obj)
	s.starting = false
}

// addObject stores an object as it is.
func (s *Server) addObject(given *unstructured.Unstructured) {
	k := s.kindOf(given.GroupVersionKind())
	if k == nil {
		panic("apisim does not serve the kind of an object to begin with: " + given.GroupVersionKind().String())
	}
	obj := maps.Clone(given.Object)
	ownMetadata(obj)["uid"] = s.uid()
	r := &request{Server: s, verb: "create", kind: k, namespace: namespaceOf(obj), name: nameOf(obj), user: administrator}
	r.noteOwners(obj)
	r.put(obj)
}

func (s *Server) kindOf(gvk schema.GroupVersionKind) *kind {
	for _, k := range s.kinds {
		if k.gvk == gvk {
			return k
		}
	}
	return nil
}
