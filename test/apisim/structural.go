package apisim

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// structural is the schema of a custom kind as far as it decides which fields are
// kept and which are set.
type structural struct {
	Properties           map[string]*structural `json:"properties,omitempty"`
	AdditionalProperties *additional            `json:"additionalProperties,omitempty"`
	Items                *structural            `json:"items,omitempty"`
	Default              any                    `json:"default,omitempty"`
	Nullable             bool                   `json:"nullable,omitempty"`
	Preserve             bool                   `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	Embedded             bool                   `json:"x-kubernetes-embedded-resource,omitempty"`
	ListType             string                 `json:"x-kubernetes-list-type,omitempty"`
	ListMapKeys          []string               `json:"x-kubernetes-list-map-keys,omitempty"`

	// keyed says that there are sets or maps by a key somewhere in it.
	keyed bool
}

// findKeyed sets keyed, here and below.
func (s *structural) findKeyed() bool {
	if s == nil {
		return false
	}
	s.keyed = s.ListType == "set" || s.ListType == "map"
	for _, field := range s.Properties {
		s.keyed = field.findKeyed() || s.keyed
	}
	if s.AdditionalProperties != nil {
		s.keyed = s.AdditionalProperties.findKeyed() || s.keyed
	}
	s.keyed = s.Items.findKeyed() || s.keyed
	return s.keyed
}

// additional is the schema of the values of a map; it may be a mere true.
type additional struct{ *structural }

// UnmarshalJSON reads a schema or a boolean.
func (a *additional) UnmarshalJSON(data []byte) error {
	if s := string(data); s == "true" || s == "false" {
		return nil
	}
	a.structural = &structural{}
	return unmarshal(data, a.structural)
}

var metaFields = map[string]bool{"apiVersion": true, "kind": true, "metadata": true}

// pruner drops the fields that a schema does not know, and notes them if asked.
type pruner struct {
	note    bool
	path    []string
	unknown []string
}

func (p *pruner) drop(key string) {
	if p.note {
		p.unknown = append(p.unknown, strings.TrimPrefix(strings.Join(append(slices.Clone(p.path), "."+key), ""), "."))
	}
}

func (p *pruner) under(step string, do func()) {
	if !p.note {
		do()
		return
	}
	p.path = append(p.path, step)
	do()
	p.path = p.path[:len(p.path)-1]
}

func (p *pruner) prune(x any, s *structural, root bool) {
	switch x := x.(type) {
	case content:
		p.pruneMap(x, s, root)
	case []any:
		for i, v := range x {
			var items *structural
			if s != nil {
				items = s.Items
			}
			if s != nil && s.Preserve && items == nil {
				return
			}
			p.under("["+strconv.Itoa(i)+"]", func() { p.prune(v, items, false) })
		}
	}
}

func (p *pruner) pruneMap(x content, s *structural, root bool) {
	for k, v := range x {
		if (root || s != nil && s.Embedded) && metaFields[k] {
			continue
		}
		switch {
		case s != nil && s.Properties[k] != nil:
			p.under("."+k, func() { p.prune(v, s.Properties[k], false) })
		case s != nil && s.AdditionalProperties != nil:
			p.under("."+k, func() { p.prune(v, s.AdditionalProperties.structural, false) })
		case s != nil && s.Preserve:
		default:
			p.drop(k)
			delete(x, k)
		}
	}
}

// knows reports whether every field of an object is in the schema, and no null is
// where it would be dropped.
func knows(s *structural, x any, root bool) bool {
	switch x := x.(type) {
	case content:
		for k, v := range x {
			if (root || s != nil && s.Embedded) && metaFields[k] {
				continue
			}
			at := s.field(k)
			switch {
			case at == nil && (s == nil || !s.Preserve):
				return false
			case v == nil && at != nil && !at.Nullable:
				return false
			case at != nil && !knows(at, v, false):
				return false
			}
		}
	case []any:
		if s == nil || s.Items == nil {
			return s != nil && s.Preserve
		}
		for _, v := range x {
			if !knows(s.Items, v, false) {
				return false
			}
		}
	}
	return true
}

// field returns the schema of a field.
func (s *structural) field(name string) *structural {
	switch {
	case s == nil:
		return nil
	case s.Properties[name] != nil:
		return s.Properties[name]
	case s.AdditionalProperties != nil:
		return s.AdditionalProperties.structural
	default:
		return nil
	}
}

// dropNulls removes nulls where the schema has none and no default either.
func dropNulls(x any, s *structural) {
	switch x := x.(type) {
	case content:
		for k, v := range x {
			at := s.field(k)
			if v == nil && at != nil && !at.Nullable && at.Default == nil {
				delete(x, k)
			} else {
				dropNulls(v, at)
			}
		}
	case []any:
		if s == nil {
			return
		}
		for _, v := range x {
			dropNulls(v, s.Items)
		}
	}
}

// lacksDefaults reports whether setDefaults would change anything.
func lacksDefaults(x any, s *structural) bool {
	if s == nil {
		return false
	}
	switch x := x.(type) {
	case content:
		for k, at := range s.Properties {
			if v, there := x[k]; at.Default != nil && isMissing(v, there, at) {
				return true
			}
		}
		for k, v := range x {
			at := s.field(k)
			if at != nil && s.Properties[k] == nil && isMissing(v, true, at) || lacksDefaults(v, at) {
				return true
			}
		}
	case []any:
		for _, v := range x {
			if s.Items != nil && isMissing(v, true, s.Items) || lacksDefaults(v, s.Items) {
				return true
			}
		}
	}
	return false
}

func isMissing(v any, there bool, s *structural) bool { return !there || v == nil && !s.Nullable }

// setDefaults sets what is missing, and what is null and must not be.
func setDefaults(x any, s *structural) {
	if s == nil {
		return
	}
	switch x := x.(type) {
	case content:
		for k, at := range s.Properties {
			if v, there := x[k]; at.Default != nil && isMissing(v, there, at) {
				x[k] = runtime.DeepCopyJSONValue(at.Default)
			}
		}
		for k, v := range x {
			at := s.field(k)
			if at != nil && s.Properties[k] == nil && isMissing(v, true, at) {
				x[k] = runtime.DeepCopyJSONValue(at.Default)
			}
			setDefaults(x[k], at)
		}
	case []any:
		for i := range x {
			if s.Items != nil && isMissing(x[i], true, s.Items) {
				x[i] = runtime.DeepCopyJSONValue(s.Items.Default)
			}
			setDefaults(x[i], s.Items)
		}
	}
}
