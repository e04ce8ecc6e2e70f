package schema

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// schemas compares the schemas of a field, and those below it.
func (c *comparing) schemas(path string, before, after *v1.JSONSchemaProps) {
	if before.Type != after.Type || before.XIntOrString != after.XIntOrString {
		if !widened(before, after) {
			c.add(path, true, "is %s, and was %s", typeOf(after), typeOf(before))
			return
		}
		c.add(path, false, "is %s, and was %s", typeOf(after), typeOf(before))
	}
	c.values(path, before, after)
	c.bounds(path, before, after)
	c.rules(path, before, after)
	c.properties(path, before, after)
	c.items(path, before, after)
}

// widened reports whether the type takes all that it took.
func widened(before, after *v1.JSONSchemaProps) bool {
	return before.Type == "integer" && !before.XIntOrString && (after.Type == "number" || after.XIntOrString) ||
		before.Type == "string" && after.XIntOrString
}

func typeOf(s *v1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.Type == "":
		return "of any type"
	default:
		return s.Type
	}
}

func (c *comparing) values(path string, before, after *v1.JSONSchemaProps) {
	if before.Nullable && !after.Nullable {
		c.add(path, true, "may not be null any more")
	}
	if len(after.Enum) > 0 {
		if len(before.Enum) == 0 {
			c.add(path, true, "takes only some values now")
		}
		for _, v := range before.Enum {
			if !slices.ContainsFunc(after.Enum, func(o v1.JSON) bool { return reflect.DeepEqual(o, v) }) {
				c.add(path, true, "does not take %s any more", v.Raw)
			}
		}
	}
	if after.Format != "" && after.Format != before.Format {
		c.add(path, true, "has the format %s now", after.Format)
	}
	if after.Pattern != "" && after.Pattern != before.Pattern {
		c.add(path, true, "has to match %s now", after.Pattern)
	}
	switch was, is := rawOf(before.Default), rawOf(after.Default); {
	case was == is:
	case is == "":
		c.add(path, false, "has no default any more")
	default:
		c.add(path, false, "has the default %s now", is)
	}
}

func rawOf(v *v1.JSON) string {
	if v == nil {
		return ""
	}
	return string(v.Raw)
}

// bounds compares limits.
func (c *comparing) bounds(path string, before, after *v1.JSONSchemaProps) {
	for _, most := range []struct {
		what    string
		was, is *int64
	}{
		{"characters", before.MaxLength, after.MaxLength}, {"items", before.MaxItems, after.MaxItems}, {"properties", before.MaxProperties, after.MaxProperties},
	} {
		if most.is != nil && (most.was == nil || *most.is < *most.was) {
			c.add(path, true, "has at most %d %s now", *most.is, most.what)
		}
	}
	for _, least := range []struct {
		what    string
		was, is *int64
	}{
		{"characters", before.MinLength, after.MinLength}, {"items", before.MinItems, after.MinItems}, {"properties", before.MinProperties, after.MinProperties},
	} {
		if least.is != nil && *least.is > 0 && (least.was == nil || *least.is > *least.was) {
			c.add(path, true, "has at least %d %s now", *least.is, least.what)
		}
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	if m := after.Maximum; m != nil && (before.Maximum == nil || *m < *before.Maximum || *m == *before.Maximum && after.ExclusiveMaximum && !before.ExclusiveMaximum) {
		c.add(path, true, "has the maximum %s now", number(*m))
	}
	if m := after.Minimum; m != nil && (before.Minimum == nil || *m > *before.Minimum || *m == *before.Minimum && after.ExclusiveMinimum && !before.ExclusiveMinimum) {
		c.add(path, true, "has the minimum %s now", number(*m))
	}
	if m := after.MultipleOf; m != nil && (before.MultipleOf == nil || *m != *before.MultipleOf) {
		c.add(path, true, "has to be a multiple of %s now", number(*m))
	}
	if after.UniqueItems && !before.UniqueItems {
		c.add(path, true, "has to have unique items now")
	}
}

// rules compares what is beyond values: CEL rules, and schemas that are joined.
func (c *comparing) rules(path string, before, after *v1.JSONSchemaProps) {
	for _, rule := range after.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(o v1.ValidationRule) bool { return o.Rule == rule.Rule }) {
			c.add(path, true, "has a new rule: %s", rule.Rule)
		}
	}
	for _, joined := range []struct {
		what    string
		was, is any
		none    bool
	}{
		{"allOf", before.AllOf, after.AllOf, len(after.AllOf) == 0}, {"oneOf", before.OneOf, after.OneOf, len(after.OneOf) == 0},
		{"anyOf", before.AnyOf, after.AnyOf, len(after.AnyOf) == 0}, {"not", before.Not, after.Not, after.Not == nil},
	} {
		if !joined.none && !reflect.DeepEqual(joined.was, joined.is) {
			c.add(path, true, "has another %s", joined.what)
		}
	}
}

// properties compares the fields of an object.
func (c *comparing) properties(path string, before, after *v1.JSONSchemaProps) {
	open := after.XPreserveUnknownFields != nil && *after.XPreserveUnknownFields
	if was := before.XPreserveUnknownFields != nil && *before.XPreserveUnknownFields; was && !open {
		c.add(path, true, "drops unknown fields now")
	}
	for _, name := range after.Required {
		if slices.Contains(before.Required, name) {
			continue
		}
		if p, ok := after.Properties[name]; ok && p.Default != nil {
			continue
		}
		c.add(below(path, name), true, "is required now")
	}
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		old, at := before.Properties[name], below(path, name)
		is, ok := after.Properties[name]
		switch values := after.AdditionalProperties; {
		case ok:
			c.schemas(at, &old, &is)
		case values != nil && values.Schema != nil:
			c.schemas(at, &old, values.Schema)
		case !open && (values == nil || !values.Allows):
			c.add(at, true, "is gone: its value is dropped")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.Properties)) {
		if _, ok := before.Properties[name]; !ok {
			c.add(below(path, name), false, "is new")
		}
	}
	c.additional(path, before, after, open)
}

func (c *comparing) additional(path string, before, after *v1.JSONSchemaProps, open bool) {
	was, is := before.AdditionalProperties, after.AdditionalProperties
	switch {
	case was == nil || was.Schema == nil && !was.Allows:
	case is == nil && !open, is != nil && is.Schema == nil && !is.Allows:
		c.add(path, true, "takes no other keys any more")
	case is != nil && is.Schema != nil && was.Schema != nil:
		c.schemas(path+"[*]", was.Schema, is.Schema)
	case is != nil && is.Schema != nil:
		c.add(path, true, "takes only some values for other keys now")
	}
}

// items compares those of a list.
func (c *comparing) items(path string, before, after *v1.JSONSchemaProps) {
	if before.Items != nil && before.Items.Schema != nil && after.Items != nil && after.Items.Schema != nil {
		c.schemas(path+"[]", before.Items.Schema, after.Items.Schema)
	}
	was, is := "atomic", "atomic"
	if before.XListType != nil {
		was = *before.XListType
	}
	if after.XListType != nil {
		is = *after.XListType
	}
	switch {
	case was != is:
		c.add(path, is != "atomic", "is a list of type %s, and was %s", is, was)
	case is == "map" && !slices.Equal(before.XListMapKeys, after.XListMapKeys):
		c.add(path, true, "is a map by other keys")
	}
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
