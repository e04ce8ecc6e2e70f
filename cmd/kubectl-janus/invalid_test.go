package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	fielderr "k8s.io/apimachinery/pkg/util/validation/field"

	api "janus.io/janus/api/v1alpha1"
)

// What is invalid is named, and not which rules the API server has not come to for it.
func TestWhatIsInvalidIsNamedAlone(t *testing.T) {
	wrong := fielderr.NotSupported(fielderr.NewPath("spec", "order"), "Foo", []string{"List", "Graph"})
	unchecked := fielderr.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")
	err := explain("create Transaction shop/a", apierrors.NewInvalid(api.Kind.GroupKind(), "a", fielderr.ErrorList{wrong, unchecked}))
	require.EqualError(t, err, `create Transaction shop/a: spec.order: Unsupported value: "Foo": supported values: "List", "Graph"`)
	assert.True(t, apierrors.IsInvalid(err))
	err = explain("create Transaction shop/a", apierrors.NewInvalid(api.Kind.GroupKind(), "a", fielderr.ErrorList{wrong}))
	require.EqualError(t, err, `create Transaction shop/a: Transaction.backup.janus.io "a" is invalid: spec.order: Unsupported value: "Foo": supported values: "List", "Graph"`)
}
