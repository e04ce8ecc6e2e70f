package apisim

import (
	"bytes"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
)

// typedShape is the shape of a built-in kind: that of its Go type.
type typedShape struct {
	gvk      schema.GroupVersionKind
	defaults func(runtime.Object)
	blank    content
}

var (
	lenientJSON = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
	strictJSON  = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Strict: true})
)

// wire reads what the typed clients send.
var wire = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

func isProtobuf(body []byte) bool { return bytes.HasPrefix(body, []byte("k8s\x00")) }

// decodeInto reads a body that is no object to be stored.
func decodeInto(body []byte, into runtime.Object) error {
	if isProtobuf(body) {
		_, _, err := wire.Decode(body, nil, into)
		return err
	}
	return unmarshal(body, into)
}

func newTypedShape(gvk schema.GroupVersionKind, defaults func(runtime.Object)) *typedShape {
	s := &typedShape{gvk: gvk, defaults: defaults}
	blank, err := s.convert(s.zero())
	if err != nil {
		panic(fmt.Sprintf("the type of %s cannot be converted: %v", gvk, err))
	}
	s.blank = blank
	return s
}

func (s *typedShape) zero() runtime.Object {
	obj, err := scheme.Scheme.New(s.gvk)
	if err != nil {
		panic(fmt.Sprintf("client-go does not know %s: %v", s.gvk, err))
	}
	return obj
}

func (s *typedShape) empty() content { return s.blank }

// reread makes null bytes empty ones, as etcd does.
func (s *typedShape) reread(obj content, _ bool) content {
	for _, field := range []string{"data", "binaryData"} {
		data, _ := obj[field].(content)
		for key, value := range data {
			if value != nil {
				continue
			}
			data = maps.Clone(data)
			data[key] = ""
			obj = maps.Clone(obj)
			obj[field] = data
		}
	}
	return obj
}

func (s *typedShape) convert(obj runtime.Object) (content, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", s.gvk.Kind, err)
	}
	out["apiVersion"], out["kind"] = s.gvk.GroupVersion().String(), s.gvk.Kind
	return out, nil
}

func (s *typedShape) decode(body []byte, strict bool) (content, []error, error) {
	if obj, ok := s.decodeQuickly(body, strict); ok {
		out, err := s.complete(obj)
		return out, nil, err
	}
	var serializer runtime.Decoder = lenientJSON
	switch {
	case isProtobuf(body):
		serializer = wire
	case strict:
		serializer = strictJSON
	}
	var strictErrors []error
	obj, gvk, err := serializer.Decode(body, &s.gvk, s.zero())
	if e, ok := runtime.AsStrictDecodingError(err); ok && obj != nil {
		strictErrors = e.Errors()
	} else if err != nil {
		return nil, nil, &decodeError{gvk, err}
	}
	if *gvk != s.gvk {
		return content{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind}, nil, nil
	}
	out, err := s.complete(obj)
	return out, strictErrors, err
}

// decodeQuickly reads a body that has nothing wrong with it.
func (s *typedShape) decodeQuickly(body []byte, strict bool) (runtime.Object, bool) {
	if isProtobuf(body) {
		return nil, false
	}
	obj := s.zero()
	if strict {
		found, err := kjson.UnmarshalStrict(body, obj)
		return obj, err == nil && len(found) == 0 && obj.GetObjectKind().GroupVersionKind() == s.gvk
	}
	return obj, unmarshal(body, obj) == nil && obj.GetObjectKind().GroupVersionKind() == s.gvk
}

// complete sets defaults and returns the content of an object.
func (s *typedShape) complete(obj runtime.Object) (content, error) {
	if s.defaults != nil {
		s.defaults(obj)
	}
	out, err := s.convert(obj)
	if m, e := meta.Accessor(obj); err == nil && e == nil && m.GetManagedFields() != nil && len(m.GetManagedFields()) == 0 {
		// An empty list means more than none.
		metadata(out)["managedFields"] = []any{}
	}
	return out, err
}

func (s *typedShape) adopt(obj content) (content, bool) {
	typed := s.zero()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj, typed, true); err != nil {
		return nil, false
	}
	if s.defaults != nil {
		s.defaults(typed)
	}
	out, err := s.convert(typed)
	return out, err == nil && text(obj, "kind") == s.gvk.Kind && text(obj, "apiVersion") == s.gvk.GroupVersion().String()
}

func (s *typedShape) normalize(obj content) (content, error) {
	typed := s.zero()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, typed); err != nil {
		return nil, fmt.Errorf("unable to convert unstructured object to %v: %w", s.gvk, err)
	}
	if s.defaults != nil {
		s.defaults(typed)
	}
	return s.convert(typed)
}

// decodeError is that of a body that does not fit its kind.
type decodeError struct {
	gvk *schema.GroupVersionKind
	err error
}

func (e *decodeError) Error() string { return e.err.Error() }

func (e *decodeError) Unwrap() error { return e.err }
