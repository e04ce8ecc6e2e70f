package apisim

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// crdShape is the shape of CustomResourceDefinitions. Unknown fields are kept.
type crdShape struct{}

var blankCRD = content{"apiVersion": crdKind.GroupVersion().String(), "kind": crdKind.Kind}

func (crdShape) empty() content { return blankCRD }

func (crdShape) reread(obj content, _ bool) content { return obj }

func (crdShape) adopt(content) (content, bool) { return nil, false }

func (s crdShape) decode(body []byte, strict bool) (content, []error, error) {
	obj, strictErrors, err := (&customShape{gvk: crdKind, schema: &structural{Preserve: true}}).decode(body, strict)
	if err != nil {
		return nil, nil, err
	}
	obj, err = s.normalize(obj)
	return obj, strictErrors, err
}

func (crdShape) normalize(obj content) (content, error) {
	obj = runtime.DeepCopyJSON(obj)
	m, _, err := coerceMetadata(obj, false)
	if err != nil {
		return nil, err
	}
	if m != nil {
		obj["metadata"] = m
	}
	spec, _ := obj["spec"].(content)
	if spec == nil {
		return obj, nil
	}
	if _, ok := spec["conversion"]; !ok {
		spec["conversion"] = content{"strategy": "None"}
	}
	names, _ := spec["names"].(content)
	if kind := text(names, "kind"); kind != "" {
		if text(names, "singular") == "" {
			names["singular"] = strings.ToLower(kind)
		}
		if text(names, "listKind") == "" {
			names["listKind"] = kind + "List"
		}
	}
	return obj, nil
}
