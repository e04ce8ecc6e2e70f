package openapi

import (
	"sigs.k8s.io/structured-merge-diff/v4/schema"
	newer "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// converter turns what kube-openapi makes, a schema of structured-merge-diff v6,
// into the same schema of v4. The types are the same but for their packages and
// their caches. Unions are left out: nothing that is published makes any.
type converter struct {
	// mentioned are the names of types that were come across.
	mentioned []string
	// overrides are the references that change the type that they name.
	overrides []schema.TypeRef
}

func (c *converter) atom(a newer.Atom) schema.Atom {
	return schema.Atom{Scalar: (*schema.Scalar)(a.Scalar), List: c.list(a.List), Map: c.object(a.Map)}
}

func (c *converter) list(l *newer.List) *schema.List {
	if l == nil {
		return nil
	}
	return &schema.List{
		ElementType:         c.ref(l.ElementType),
		ElementRelationship: schema.ElementRelationship(l.ElementRelationship),
		Keys:                l.Keys,
	}
}

func (c *converter) object(m *newer.Map) *schema.Map {
	if m == nil {
		return nil
	}
	out := &schema.Map{
		ElementType:         c.ref(m.ElementType),
		ElementRelationship: schema.ElementRelationship(m.ElementRelationship),
	}
	for _, f := range m.Fields {
		out.Fields = append(out.Fields, schema.StructField{Name: f.Name, Type: c.ref(f.Type), Default: f.Default})
	}
	return out
}

func (c *converter) ref(r newer.TypeRef) schema.TypeRef {
	out := schema.TypeRef{
		NamedType:           r.NamedType,
		Inlined:             c.atom(r.Inlined),
		ElementRelationship: (*schema.ElementRelationship)(r.ElementRelationship),
	}
	if out.NamedType != nil {
		c.mentioned = append(c.mentioned, *out.NamedType)
	}
	if out.ElementRelationship != nil {
		c.overrides = append(c.overrides, out)
	}
	return out
}
