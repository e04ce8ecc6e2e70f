package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/deploy/crd"
)

// rules are what the API server checks of a Transaction by its definition: the schema and
// the validation rules. They are the API server's own code.
type rules struct {
	schema    *structural.Structural
	validator validation.SchemaValidator
	cel       *cel.Validator
}

func newRules() (*rules, error) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(crd.Transactions, definition); err != nil {
		return nil, fmt.Errorf("read the definition of Transactions: %w", err)
	}
	// All versions have one schema.
	at := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == api.GroupVersion.Version
	})
	if at < 0 {
		return nil, fmt.Errorf("the definition of Transactions has no version %s", api.GroupVersion.Version)
	}
	props := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[at].Schema.OpenAPIV3Schema, props, nil)
	if err != nil {
		return nil, fmt.Errorf("convert the schema of Transactions: %w", err)
	}
	r := &rules{}
	if r.schema, err = structural.NewStructural(props); err != nil {
		return nil, fmt.Errorf("read the schema of Transactions: %w", err)
	}
	if r.validator, _, err = validation.NewSchemaValidator(props); err != nil {
		return nil, fmt.Errorf("make a validator of the schema of Transactions: %w", err)
	}
	r.cel = cel.NewValidator(r.schema, true, celconfig.PerCallLimit)
	return r, nil
}

// check returns all that is wrong with a Transaction by its definition. It sets defaults, as
// the API server does first.
func (r *rules) check(ctx context.Context, u *unstructured.Unstructured) []string {
	var out []string
	options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(u.DeepCopy().Object, r.schema, true, options) {
		out = append(out, fmt.Sprintf("unknown field %q", path))
	}
	defaulting.Default(u.Object, r.schema)
	found := validation.ValidateCustomResource(nil, u.Object, r.validator)
	if len(found) == 0 {
		// The rules rely on what the schema says.
		found, _ = r.cel.Validate(ctx, nil, r.schema, u.Object, nil, celconfig.RuntimeCELCostBudget)
	}
	for _, err := range found {
		out = append(out, strings.TrimPrefix(err.Error(), "<nil>: "))
	}
	return out
}
