package apisim

import (
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// lazyTypes converts the document when a type is first asked for.
type lazyTypes struct{ document *document }

func (l lazyTypes) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return l.document.typeConverter().ObjectToTyped(obj, options...)
}

func (l lazyTypes) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return l.document.typeConverter().TypedToObject(value)
}

// fieldManager is the real one for a kind, and what it needs of the server.
type fieldManager struct {
	*managedfields.FieldManager
	kind *kind
	// known are the objects of the call under way, which are of the kind's shape.
	known [2]*unstructured.Unstructured
	// live is the stored object that known[0] is of.
	live *stored
	// fresh is known[1] with its parts told apart.
	fresh *typed.TypedValue
}

// ObjectToTyped tells the parts of an object apart. Those of a stored object are kept
// with it.
func (m *fieldManager) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	switch {
	case obj == runtime.Object(m.known[1]):
		value, err := m.kind.types.ObjectToTyped(obj, options...)
		m.fresh = value
		return value, err
	case m.live == nil || obj != runtime.Object(m.known[0]):
		return m.kind.types.ObjectToTyped(obj, options...)
	}
	if m.live.typed == nil {
		value, err := m.kind.types.ObjectToTyped(obj, options...)
		if err != nil {
			return nil, err
		}
		m.live.typed = value
	}
	return m.live.typed, nil
}

// TypedToObject puts an object together again.
func (m *fieldManager) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return m.kind.types.TypedToObject(value)
}

// managers finds the field manager of a kind and a subresource.
func (s *Server) fieldManager(k *kind, subresource string) *fieldManager {
	key := managerKey{k, subresource}
	if m, ok := s.managers[key]; ok {
		return m
	}
	m := &fieldManager{kind: k}
	real, err := managedfields.NewDefaultCRDFieldManager(m, m, m, m, k.gvk, k.groupVersion(), subresource, k.resetFilter(subresource))
	if err != nil {
		panic(fmt.Sprintf("no field manager for %s: %v", k.gvk, err))
	}
	m.FieldManager = real
	s.managers[key] = m
	return m
}

// resetFilter leaves out what a write drops. A write of the status does so in every
// version of the kind, and another only in its own.
func (k *kind) resetFilter(subresource string) map[fieldpath.APIVersion]fieldpath.Filter {
	reset := map[fieldpath.APIVersion]*fieldpath.Set{}
	note := func(k *kind, set *fieldpath.Set) {
		if set != nil {
			reset[fieldpath.APIVersion(k.groupVersion().String())] = set
		}
	}
	if subresource == "" {
		note(k, k.strategy.reset)
	} else {
		for _, version := range k.siblings() {
			note(version, version.strategy.resetStatus)
		}
	}
	return fieldpath.NewExcludeFilterSetMap(reset)
}

type managerKey struct {
	kind        *kind
	subresource string
}

// begin takes the live object of a call, which may be none.
func (m *fieldManager) begin(live *stored) *unstructured.Unstructured {
	l := &unstructured.Unstructured{}
	if live != nil {
		l.Object = live.content
	} else {
		l.Object = m.blank()
	}
	m.known, m.live, m.fresh = [2]*unstructured.Unstructured{l}, live, nil
	return l
}

// blank is an object without fields that the field manager may write to: what the
// shape gives is shared by all Servers.
func (m *fieldManager) blank() content {
	obj := maps.Clone(m.kind.shape.empty())
	if metadata(obj) != nil {
		ownMetadata(obj)
	}
	return obj
}

// owned returns obj the owners that it has after a write that is no apply. It may change
// obj's metadata.
func (r *request) owned(live *stored, obj content) content {
	if r.ownerless() {
		delete(ownMetadata(obj), "managedFields")
		return obj
	}
	m := r.fieldManager(r.kind, r.subresource)
	out := m.update(live, obj, r.manager)
	r.fresh, r.freshOf = m.fresh, obj
	return out
}

// ownerless reports whether the test wants no managedFields of the object.
func (r *request) ownerless() bool {
	return r.options.Ownerless != nil && r.options.Ownerless(r.kind.groupResource(), r.name)
}

// isSame reports whether two maps are one.
func isSame(a, b content) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }

func (m *fieldManager) update(live *stored, obj content, manager string) content {
	l, o := m.begin(live), &unstructured.Unstructured{Object: obj}
	m.known[1] = o
	return m.UpdateNoErrors(l, o, manager).(*unstructured.Unstructured).Object
}

// apply merges what was applied with the live object.
func (m *fieldManager) apply(live *stored, applied content, manager string, force bool) (content, error) {
	l := m.begin(live)
	obj, err := m.Apply(l, &unstructured.Unstructured{Object: applied}, manager, force)
	if err != nil {
		return nil, err
	}
	return obj.(*unstructured.Unstructured).Object, nil
}

// Convert is not called by a field manager.
func (m *fieldManager) Convert(_, _, _ any) error {
	return fmt.Errorf("a conversion that the model does not know")
}

// ConvertToVersion brings an object that the field manager has put together into
// the shape of its kind, or into another version, where fields that it does not have stay
// as they are.
func (m *fieldManager) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	if gv, ok := to.(schema.GroupVersion); ok && gv != m.kind.groupVersion() {
		if m.kind.knowsVersion(gv) {
			return &unstructured.Unstructured{Object: asVersion(in.(*unstructured.Unstructured).Object, gv)}, nil
		}
		if _, typed := m.kind.shape.(*typedShape); !typed {
			// Here a real server gives up, and the object loses all its managers.
			return nil, fmt.Errorf("request to convert CR to an invalid group/version: %s", gv)
		}
		return nil, runtime.NewNotRegisteredErrForTarget("apisim", nil, to)
	}
	obj := in.(*unstructured.Unstructured)
	if obj == m.known[0] || obj == m.known[1] {
		return obj, nil
	}
	if m.kind.versions != nil {
		return &unstructured.Unstructured{Object: asVersion(obj.Object, m.kind.groupVersion())}, nil
	}
	out, err := m.kind.shape.normalize(obj.Object)
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: out}, nil
}

// ConvertFieldLabel is not called by a field manager.
func (m *fieldManager) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default does something only for a kind of several versions: otherwise shape.normalize has
// set the defaults.
func (m *fieldManager) Default(obj runtime.Object) {
	u := obj.(*unstructured.Unstructured)
	if m.kind.versions == nil || u == m.known[0] || u == m.known[1] {
		return
	}
	if out, err := m.kind.shape.normalize(u.Object); err == nil {
		u.Object = out
	}
}

// New returns an object without fields.
func (m *fieldManager) New(schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{Object: m.blank()}
	m.known[1] = obj
	return obj, nil
}

// sameButTimes compares two objects without the times of managedFields, and reports
// whether those are all that differs.
func sameButTimes(obj, old content) bool {
	mine, theirs := managedFieldsOf(obj), managedFieldsOf(old)
	if len(mine) != len(theirs) || len(mine) == 0 {
		return false
	}
	for i := range mine {
		a, _ := mine[i].(content)
		b, _ := theirs[i].(content)
		if !equalExcept(a, b, "time") {
			return false
		}
	}
	return equalExcept(obj, old, "metadata") && equalExcept(metadata(obj), metadata(old), "managedFields")
}

func managedFieldsOf(obj content) []any {
	list, _ := metadata(obj)["managedFields"].([]any)
	return list
}
