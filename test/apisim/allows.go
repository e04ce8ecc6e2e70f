package apisim

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// allowance is a schema compiled to say yes quickly. Where it does not, the library
// that servers use is asked, which may still say yes, and returns the errors.
type allowance struct {
	kinds      []string
	nullable   bool
	properties map[string]*allowance
	additional *allowance
	items      *allowance
	required   []string
	enum       []string
	pattern    *regexp.Regexp
	format     string
	// bounds are the least and the most of a number, a length or a count.
	least, most float64
	// hard marks what is left to the library.
	hard bool
}

func compileAllowance(s *spec.Schema) *allowance {
	if s == nil {
		return nil
	}
	a := &allowance{
		kinds: s.Type, nullable: s.Nullable, required: s.Required, format: s.Format,
		least: math.Inf(-1), most: math.Inf(1),
		hard: len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 || s.Not != nil || s.MultipleOf != nil || s.UniqueItems || s.ExclusiveMaximum || s.ExclusiveMinimum || len(s.PatternProperties) > 0,
	}
	a.bound(s)
	for _, v := range s.Enum {
		text, ok := v.(string)
		a.hard = a.hard || !ok
		a.enum = append(a.enum, text)
	}
	if s.Pattern != "" {
		compiled, err := regexp.Compile(s.Pattern)
		a.pattern, a.hard = compiled, a.hard || err != nil
	}
	a.properties = make(map[string]*allowance, len(s.Properties))
	for name, field := range s.Properties {
		a.properties[name] = compileAllowance(&field)
	}
	if s.Items != nil {
		a.items = compileAllowance(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		a.additional = compileAllowance(s.AdditionalProperties.Schema)
		if a.additional == nil {
			a.additional = &allowance{least: math.Inf(-1), most: math.Inf(1), hard: !s.AdditionalProperties.Allows}
		}
	}
	return a
}

// bound takes the bounds over: of a schema of one type only one pair can be meant.
func (a *allowance) bound(s *spec.Schema) {
	for _, least := range []*int64{s.MinLength, s.MinItems, s.MinProperties} {
		if least != nil {
			a.least = float64(*least)
		}
	}
	for _, most := range []*int64{s.MaxLength, s.MaxItems, s.MaxProperties} {
		if most != nil {
			a.most = float64(*most)
		}
	}
	if s.Minimum != nil {
		a.least = *s.Minimum
	}
	if s.Maximum != nil {
		a.most = *s.Maximum
	}
	a.hard = a.hard || len(s.Type) > 1 && (!math.IsInf(a.least, 0) || !math.IsInf(a.most, 0))
}

func (a *allowance) within(n float64) bool { return a.least <= n && n <= a.most }

func (a *allowance) is(kind string) bool { return len(a.kinds) == 0 || slices.Contains(a.kinds, kind) }

// allows reports whether a value is certainly valid.
func (a *allowance) allows(x any) bool {
	if a == nil {
		return true
	}
	if a.hard {
		return false
	}
	switch x := x.(type) {
	case nil:
		return a.nullable
	case string:
		return a.allowsText(x)
	case bool:
		return a.is("boolean") && a.enum == nil
	case int64:
		return (a.is("integer") || a.is("number")) && a.within(float64(x)) && a.enum == nil && (a.format != "int32" || int64(int32(x)) == x) //nolint:gosec // that it may not fit is what is asked
	case float64:
		return a.is("number") && a.within(x) && a.enum == nil
	case []any:
		if !a.is("array") || !a.within(float64(len(x))) {
			return false
		}
		for _, v := range x {
			if !a.items.allows(v) {
				return false
			}
		}
		return true
	case content:
		return a.allowsMap(x)
	case json.Number:
		return false
	default:
		return false
	}
}

func (a *allowance) allowsText(x string) bool {
	if !a.is("string") || !a.within(float64(utf8.RuneCountInString(x))) {
		return false
	}
	if a.enum != nil && !slices.Contains(a.enum, x) || a.pattern != nil && !a.pattern.MatchString(x) {
		return false
	}
	return a.format == "" || strfmt.Default.Validates(a.format, x)
}

func (a *allowance) allowsMap(x content) bool {
	if !a.is("object") || !a.within(float64(len(x))) {
		return false
	}
	for _, name := range a.required {
		if _, ok := x[name]; !ok {
			return false
		}
	}
	for k, v := range x {
		at, ok := a.properties[k]
		if !ok {
			at = a.additional
		}
		if !at.allows(v) {
			return false
		}
	}
	return true
}
