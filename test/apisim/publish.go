package apisim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// publish makes the OpenAPI document of a custom kind.
func publish(gvk schema.GroupVersionKind, raw []byte) (*document, error) {
	var s content
	if err := unmarshal(raw, &s); err != nil {
		return nil, err
	}
	s, _ = undescribed(s).(content)
	properties, _ := s["properties"].(content)
	properties = maps.Clone(properties)
	if properties == nil {
		properties = content{}
	}
	properties["apiVersion"], properties["kind"] = content{"type": "string"}, content{"type": "string"}
	properties["metadata"] = content{"allOf": []any{content{"$ref": "#/components/schemas/" + objectMeta}}}
	s["properties"] = properties
	s["x-kubernetes-group-version-kind"] = []any{content{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}}
	schemas := content{}
	for name, part := range metadataSchemas() {
		schemas[name] = part
	}
	parts := strings.Split(gvk.Group, ".")
	slices.Reverse(parts)
	schemas[strings.Join(append(parts, gvk.Version, gvk.Kind), ".")] = s
	data, err := json.Marshal(content{"components": content{"schemas": schemas}})
	if err != nil {
		return nil, err
	}
	return newDocument(data), nil
}

const (
	metaPrefix = "io.k8s.apimachinery.pkg.apis.meta.v1."
	objectMeta = metaPrefix + "ObjectMeta"
)

// metadataSchemas are the definitions that every kind's metadata are made of.
var metadataSchemas = sync.OnceValue(func() map[string]json.RawMessage {
	var read struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(embeddedDocuments[schema.GroupVersion{Version: "v1"}].data, &read); err != nil {
		panic(err)
	}
	maps.DeleteFunc(read.Components.Schemas, func(name string, _ json.RawMessage) bool { return !strings.HasPrefix(name, metaPrefix) })
	return read.Components.Schemas
})

// undescribed is a schema without what is meant for people. Fields of that name are
// kept.
func undescribed(x any) any {
	switch x := x.(type) {
	case content:
		out := content{}
		for k, v := range x {
			switch k {
			case "description", "x-kubernetes-validations", "pattern":
				if _, isText := v.(string); isText || k == "x-kubernetes-validations" {
					continue
				}
				out[k] = undescribed(v)
			case "default":
				out[k] = v
			case "properties":
				fields := content{}
				for name, field := range v.(content) {
					fields[name] = undescribed(field)
				}
				out[k] = fields
			default:
				out[k] = undescribed(v)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = undescribed(x[i])
		}
		return out
	default:
		return x
	}
}
