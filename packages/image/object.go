package image

import (
	"bytes"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
	nodes "sigs.k8s.io/yaml/goyaml.v3"

	"janus.io/janus/internal/content"
)

// maxObject is how many bytes of YAML one object may have. The API server takes 1.5 MiB of JSON.
const maxObject = 4 << 20

// Object is an object that Crossplane makes for a package. It is kept as text, because decoded the
// definitions of a large provider take several times as much memory.
type Object struct {
	schema.GroupVersionKind

	Name string
	text []byte
}

// Decode returns what the object consists of.
func (o Object) Decode() (*unstructured.Unstructured, error) {
	decoded, err := decode(o.text)
	if err != nil {
		return nil, fmt.Errorf("%s %s %w", o.Kind, o.Name, err)
	}
	return &unstructured.Unstructured{Object: decoded}, nil
}

// decode decodes a document of a package.
func decode(text []byte) (map[string]any, error) {
	if len(text) > maxObject {
		return nil, fmt.Errorf("takes more than %d bytes", maxObject)
	}
	if content.Values(text) > content.MaxValues {
		return nil, fmt.Errorf("has more than %d values", content.MaxValues)
	}
	if err := unaliased(text); err != nil {
		return nil, err
	}
	decoded := map[string]any{}
	if err := yaml.Unmarshal(text, &decoded); err != nil {
		return nil, fmt.Errorf("is no YAML: %w", err)
	}
	return decoded, nil
}

// errAlias is the error of a document with an alias, which stands for as much as its author likes.
var errAlias = errors.New("has a YAML alias, which is not supported")

func unaliased(text []byte) error {
	if !bytes.ContainsRune(text, '&') || !bytes.ContainsRune(text, '*') {
		return nil
	}
	var top nodes.Node
	if err := nodes.Unmarshal(text, &top); err != nil {
		return fmt.Errorf("is no YAML: %w", err)
	}
	return search(&top)
}

func search(n *nodes.Node) error {
	if n.Kind == nodes.AliasNode {
		return errAlias
	}
	for _, child := range n.Content {
		if err := search(child); err != nil {
			return err
		}
	}
	return nil
}
