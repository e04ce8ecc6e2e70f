package schema

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Judge tells what a definition makes of custom resources, by the API server's own code.
type Judge struct {
	schema    *structural.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
	preserves bool
}

// Effect is what happens to one custom resource.
type Effect struct {
	// Dropped are the fields that would be lost.
	Dropped []string
	// Invalid says what would be refused, at its next write.
	Invalid []string
}

// Harmless reports whether nothing becomes of it.
func (e Effect) Harmless() bool { return len(e.Dropped) == 0 && len(e.Invalid) == 0 }

// NewJudge makes one of a version of a definition.
func NewJudge(definition *v1.CustomResourceDefinition, version string) (*Judge, error) {
	i := slices.IndexFunc(definition.Spec.Versions, func(v v1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		return nil, fmt.Errorf("definition %s has no version %s", definition.Name, version)
	}
	of := definition.Spec.Versions[i].Schema
	if of == nil || of.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("definition %s has no schema for version %s", definition.Name, version)
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(of.OpenAPIV3Schema, props, nil); err != nil {
		return nil, fmt.Errorf("convert the schema of definition %s: %w", definition.Name, err)
	}
	j := &Judge{preserves: definition.Spec.PreserveUnknownFields}
	var err error
	if j.schema, err = structural.NewStructural(props); err != nil {
		return nil, fmt.Errorf("read the schema of definition %s: %w", definition.Name, err)
	}
	if j.validator, _, err = validation.NewSchemaValidator(props); err != nil {
		return nil, fmt.Errorf("make a validator of the schema of definition %s: %w", definition.Name, err)
	}
	j.rules = cel.NewValidator(j.schema, true, celconfig.PerCallLimit)
	return j, nil
}

// Effect tells what happens to a custom resource of the version.
func (j *Judge) Effect(ctx context.Context, object *unstructured.Unstructured) Effect {
	var out Effect
	u := object.DeepCopy()
	if !j.preserves {
		out.Dropped = pruning.PruneWithOptions(u.Object, j.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		slices.Sort(out.Dropped)
	}
	defaulting.Default(u.Object, j.schema)
	found := validation.ValidateCustomResource(nil, u.Object, j.validator)
	if len(found) == 0 {
		// The rules rely on what the schema says. Those about a change have none to look at.
		found, _ = j.rules.Validate(ctx, nil, j.schema, u.Object, nil, celconfig.RuntimeCELCostBudget)
	}
	for _, err := range found {
		// The value is left out: it may be confidential.
		out.Invalid = append(out.Invalid, err.Field+": "+err.Type.String())
	}
	slices.Sort(out.Invalid)
	return out
}
