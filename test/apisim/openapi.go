package apisim

import (
	"crypto/sha512"
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// The documents are those of a real API server, less descriptions, paths, and what
// belongs to kinds that are not modelled: TestTheSchemasAreThoseOfTheRealServer makes
// them with -update.
//
//go:embed schemas/*.json
var schemaFiles embed.FS

// document is the OpenAPI document of a group and version.
type document struct {
	data []byte
	hash string

	once      sync.Once
	converter managedfields.TypeConverter
}

var embeddedDocuments = map[schema.GroupVersion]*document{}

// embedded returns the document of a built-in group and version. It is called only
// while the package is initialized.
func embedded(gv schema.GroupVersion) *document {
	if d, ok := embeddedDocuments[gv]; ok {
		return d
	}
	group := gv.Group
	if group == "" {
		group = "core"
	}
	data, err := schemaFiles.ReadFile("schemas/" + group + "_" + gv.Version + ".json")
	if err != nil {
		panic(fmt.Sprintf("no schema of %s: %v", gv, err))
	}
	d := newDocument(data)
	embeddedDocuments[gv] = d
	return d
}

func newDocument(data []byte) *document {
	return &document{data: data, hash: strings.ToUpper(fmt.Sprintf("%x", sha512.Sum512(data)))}
}

// components decodes the definitions of a document.
func (d *document) components() map[string]*spec.Schema {
	var read struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(d.data, &read); err != nil {
		panic(fmt.Sprintf("a schema cannot be decoded: %v", err))
	}
	return read.Components.Schemas
}

// types returns what tells the parts of an object apart: made when first needed, and
// kept, since it takes milliseconds.
func (d *document) types() managedfields.TypeConverter { return lazyTypes{d} }

func (d *document) typeConverter() managedfields.TypeConverter {
	d.once.Do(func() {
		converter, err := managedfields.NewTypeConverter(d.components(), false)
		if err != nil {
			panic(fmt.Sprintf("a schema cannot be converted: %v", err))
		}
		d.converter = converter
	})
	return d.converter
}

// pathOf is what the index calls a group and version.
func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}
