package apisim

import (
	"encoding/json"
	"errors"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

func newValidators(whole *spec.Schema) validators {
	spellOut(whole)
	v := validators{whole: newChecker(whole)}
	if status, ok := whole.Properties["status"]; ok {
		v.status = newChecker(&status)
	}
	return v
}

// checker checks values by a schema.
type checker struct {
	quick   *allowance
	careful *validate.SchemaValidator
}

func newChecker(s *spec.Schema) *checker {
	return &checker{compileAllowance(s), validate.NewSchemaValidator(s, nil, "", strfmt.Default)}
}

func (c *checker) check(at *field.Path, x any) field.ErrorList {
	if c.quick.allows(x) {
		return nil
	}
	return fieldErrors(at, c.careful.Validate(x))
}

// spellOut returns the types of what may be an integer or a string.
func spellOut(s *spec.Schema) {
	if s == nil {
		return
	}
	if either, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); either {
		s.Type = spec.StringOrArray{"integer", "string"}
	}
	for name, field := range s.Properties {
		spellOut(&field)
		s.Properties[name] = field
	}
	if s.Items != nil {
		spellOut(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		spellOut(s.AdditionalProperties.Schema)
	}
}

// withSchema adds to the strategy of a custom kind what its schema demands.
func withSchema(k *kind, s *structural, v validators) strategy {
	out := k.strategy
	out.validate = func(obj content) field.ErrorList {
		if errs := wrongKind(k, obj); len(errs) > 0 {
			return append(errs, uniqueItems(nil, s, obj)...)
		}
		m := typedMeta(obj)
		errs := apivalidation.ValidateObjectMetaAccessor(m, k.namespaced, apivalidation.NameIsDNSSubdomain, metadataPath)
		errs = append(errs, v.whole.check(nil, obj)...)
		if errs = append(errs, uniqueItems(nil, s, obj)...); len(errs) > 0 {
			return append(errs, v.unchecked(errs)...)
		}
		return apivalidation.ValidateObjectMetaAccessor(m, k.namespaced, pathSegment, metadataPath)
	}
	update := func(obj, old content) field.ErrorList {
		if untouched(obj, old) {
			return wrongKind(k, obj)
		}
		m, before := typedMeta(obj), typedMeta(old)
		errs := apivalidation.ValidateObjectMetaAccessor(m, k.namespaced, pathSegment, metadataPath)
		errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(m, before, metadataPath)...)
		if wrong := wrongKind(k, obj); len(wrong) > 0 {
			return append(errs, wrong...)
		}
		return append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(m, before, metadataPath)...)
	}
	out.validateNew = func(obj, old content) field.ErrorList {
		errs := update(obj, old)
		if equalExcept(obj, old, "metadata") {
			return errs
		}
		if len(wrongKind(k, obj)) == 0 {
			errs = append(errs, v.whole.check(nil, obj)...)
		}
		if len(uniqueItems(nil, s, old)) == 0 {
			errs = append(errs, uniqueItems(nil, s, obj)...)
		}
		if unchecked := v.unchecked(errs); len(unchecked) > 0 {
			return append(errs, unchecked...)
		}
		return append(errs, frozenSpec(k, obj, old)...)
	}
	out.validateState = func(obj, old content) field.ErrorList {
		errs := update(obj, old)
		if status, ok := obj["status"]; ok && v.status != nil && !equal(status, old["status"]) {
			errs = append(errs, v.status.check(field.NewPath("status"), status)...)
			if len(uniqueItems(nil, s, old)) == 0 {
				errs = append(errs, uniqueItems(nil, s, obj)...)
			}
		}
		return append(errs, v.unchecked(errs)...)
	}
	return out
}

func wrongKind(k *kind, obj content) field.ErrorList {
	var errs field.ErrorList
	if is := text(obj, "kind"); is != k.gvk.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), is, "must be "+k.gvk.Kind))
	}
	if is, must := text(obj, "apiVersion"), k.groupVersion().String(); is != must {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), is, "must be "+must))
	}
	return errs
}

// unchecked says that rules in CEL were not looked at, because of other errors.
func (v validators) unchecked(found field.ErrorList) field.ErrorList {
	for _, e := range found {
		switch e.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			if v.rules {
				return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")}
			}
		}
	}
	return nil
}

// fieldErrors says what a schema does not allow in the words of the API server.
func fieldErrors(at *field.Path, result *validate.Result) field.ErrorList {
	var errs field.ErrorList
	for _, err := range result.Errors {
		var invalid *openapierrors.Validation
		if !errors.As(err, &invalid) {
			errs = append(errs, field.Invalid(at, "", err.Error()))
			continue
		}
		where := at
		if invalid.Name != "" && invalid.Name != "." {
			where = where.Child(strings.TrimPrefix(invalid.Name, "."))
		}
		errs = append(errs, fieldError(where, invalid))
	}
	return errs
}

func fieldError(at *field.Path, e *openapierrors.Validation) *field.Error {
	number := func(v any) int {
		if n, ok := v.(int64); ok {
			return int(n)
		}
		return -1
	}
	value := e.Value
	if value == nil {
		value = ""
	}
	switch e.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(at, "")
	case openapierrors.EnumFailCode:
		var allowed []string
		for _, v := range e.Values {
			if s, ok := v.(string); ok {
				allowed = append(allowed, s)
			} else {
				data, _ := json.Marshal(v)
				allowed = append(allowed, string(data))
			}
		}
		return field.NotSupported(at, e.Value, allowed)
	case openapierrors.TooLongFailCode:
		return field.TooLong(at, "", number(e.Valid))
	case openapierrors.MaxItemsFailCode, openapierrors.TooManyPropertiesCode:
		return field.TooMany(at, number(e.Value), number(e.Valid))
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(at, value, e.Error())
	default:
		return field.Invalid(at, value, e.Error())
	}
}

// uniqueItems checks that sets have no item twice, and maps no key.
func uniqueItems(at *field.Path, s *structural, x any) field.ErrorList {
	if !s.keyed {
		return nil
	}
	var errs field.ErrorList
	switch x := x.(type) {
	case content:
		for k, v := range x {
			if part := s.field(k); part != nil {
				where := at.Child(k)
				if s.Properties[k] == nil {
					where = at.Key(k)
				}
				errs = append(errs, uniqueItems(where, part, v)...)
			}
		}
	case []any:
		switch s.ListType {
		case "set":
			errs = duplicates(at, x)
		case "map":
			keys := make([]any, len(x))
			for i, item := range x {
				if _, ok := item.(content); item != nil && !ok {
					return field.ErrorList{field.Invalid(at.Index(i), item, "must be an object for an array of list-type map")}
				}
				keys[i] = s.keyOf(item)
			}
			errs = duplicates(at, keys)
		}
		if s.Items != nil {
			for i, v := range x {
				errs = append(errs, uniqueItems(at.Index(i), s.Items, v)...)
			}
		}
	}
	return errs
}

// keyOf returns the fields by which an item of a map is known.
func (s *structural) keyOf(item any) content {
	key := content{}
	fields, _ := item.(content)
	for _, name := range s.ListMapKeys {
		if v, ok := fields[name]; ok {
			key[name] = v
		}
	}
	return key
}

func duplicates(at *field.Path, list []any) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]int{}
	for i, v := range list {
		data, _ := json.Marshal(v)
		if seen[string(data)]++; seen[string(data)] == 2 {
			errs = append(errs, field.Duplicate(at.Index(i), v))
		}
	}
	return errs
}
