package apisim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

func unmarshal(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

// customShape is the shape of a custom kind: that of the schema in its CRD.
type customShape struct {
	gvk    schema.GroupVersionKind
	schema *structural
	blank  content
}

func newCustomShape(gvk schema.GroupVersionKind, s *structural) *customShape {
	return &customShape{gvk: gvk, schema: s, blank: content{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind}}
}

func (s *customShape) empty() content { return s.blank }

func (s *customShape) decode(body []byte, strict bool) (content, []error, error) {
	obj, strictErrors, err := decodeObject(body, strict)
	if err != nil {
		return nil, nil, &decodeError{&s.gvk, err}
	}
	if text(obj, "kind") == "" {
		gvk := s.gvk
		if is := text(obj, "apiVersion"); is != "" {
			gvk = schema.FromAPIVersionAndKind(is, gvk.Kind)
		}
		return nil, nil, &decodeError{&gvk, runtime.NewMissingKindErr(string(body))}
	}
	unknown, err := s.coerce(obj, strict)
	if err != nil {
		gvk := schema.FromAPIVersionAndKind(text(obj, "apiVersion"), text(obj, "kind"))
		return nil, nil, &decodeError{&gvk, err}
	}
	if s.describes(obj) && lacksDefaults(obj, s.schema) {
		setDefaults(obj, s.schema)
	}
	for _, path := range unknown {
		strictErrors = append(strictErrors, fmt.Errorf("unknown field %q", path))
	}
	return obj, strictErrors, nil
}

// decodeObject reads an object that is of no Go type. The strict errors are keys that
// repeat.
func decodeObject(body []byte, strict bool) (obj content, strictErrors []error, err error) {
	if obj, ok := parsed(body); ok {
		return obj, nil, nil
	}
	obj = content{}
	if strict {
		strictErrors, err = kjson.UnmarshalStrict(body, &obj)
	} else {
		err = unmarshal(body, &obj)
	}
	return obj, strictErrors, err
}

func (s *customShape) adopt(obj content) (content, bool) {
	if !s.describes(obj) || !tidy(metadata(obj)) || !s.fits(obj) {
		return nil, false
	}
	return obj, true
}

// fits reports whether nothing would be dropped from an object, and no default set.
func (s *customShape) fits(obj content) bool {
	return knows(s.schema, obj, true) && !lacksDefaults(obj, s.schema)
}

// describes reports whether the schema is that of an object.
func (s *customShape) describes(obj content) bool {
	return text(obj, "kind") == s.gvk.Kind && text(obj, "apiVersion") == s.gvk.GroupVersion().String()
}

func (s *customShape) normalize(obj content) (content, error) {
	if lacksDefaults(obj, s.schema) {
		obj = runtime.DeepCopyJSON(obj)
		setDefaults(obj, s.schema)
	}
	return obj, nil
}

func (s *customShape) reread(obj content, applied bool) content {
	if !applied && !lacksDefaults(obj, s.schema) {
		return obj
	}
	obj = runtime.DeepCopyJSON(obj)
	if applied {
		if _, err := s.coerce(obj, false); err != nil {
			panic("an object that was validated cannot be read: " + err.Error())
		}
	}
	setDefaults(obj, s.schema)
	return obj
}

// coerce does to a custom object what decoding into a Go type does to others.
func (s *customShape) coerce(obj content, strict bool) ([]string, error) {
	m, unknown, err := coerceMetadata(obj, strict)
	if err != nil {
		return nil, err
	}
	p := &pruner{note: strict}
	if s.describes(obj) && !knows(s.schema, obj, true) {
		p.prune(obj, s.schema, true)
		dropNulls(obj, s.schema)
	}
	if m != nil {
		obj["metadata"] = m
	}
	slices.Sort(p.unknown)
	return append(unknown, p.unknown...), nil
}

// coerceMetadata brings metadata into the form that their Go type gives them.
func coerceMetadata(obj content, strict bool) (m content, unknown []string, err error) {
	raw, ok := obj["metadata"]
	if !ok {
		return nil, nil, nil
	}
	if m, ok := raw.(content); ok && tidy(m) {
		return m, nil, nil
	}
	data, err := json.Marshal(raw)
	if err != nil {
		return nil, nil, err
	}
	var typed metav1.ObjectMeta
	if !strict {
		err = unmarshal(data, &typed)
	} else {
		var found []error
		found, err = kjson.UnmarshalStrict(data, &typed)
		for _, e := range found {
			if at, ok := e.(kjson.FieldError); ok { //nolint:errorlint // the library wraps nothing here
				unknown = append(unknown, "metadata."+at.FieldPath())
			}
		}
	}
	if err != nil {
		return nil, nil, err
	}
	m, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
	return m, unknown, err
}

// prepareCustom are the parts of a custom kind's strategy that have to do with its
// status and its generation.
func prepareCustom(status bool) strategy {
	s := strategy{
		prepareCreate: func(obj content) {
			if status {
				delete(obj, "status")
			}
			metadata(obj)["generation"] = int64(1)
		},
		prepareUpdate: func(obj, old content) {
			if status {
				setOrDrop(obj, "status", old)
			}
			if !equalExcept(obj, old, "metadata") {
				metadata(obj)["generation"] = generationOf(old) + 1
			}
		},
	}
	if status {
		s.prepareStatus = func(obj, old content) {
			state, ok := obj["status"]
			fields := managedFieldsOf(obj)
			clear(obj)
			maps.Copy(obj, old)
			if ok {
				obj["status"] = state
			} else {
				delete(obj, "status")
			}
			m := ownMetadata(obj)
			delete(m, "managedFields")
			if len(fields) > 0 {
				m["managedFields"] = fields
			}
		}
	}
	return s
}
