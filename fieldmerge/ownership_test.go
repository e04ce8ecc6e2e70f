package fieldmerge

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestOwnershipsNameFieldsAsPeopleReadThem(t *testing.T) {
	t.Parallel()
	when := metav1.Unix(1, 0)
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{
		{
			Manager: "helm", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", Time: &when, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{".":{},"v:\"a/b\"":{}},"f:labels":{"f:app.kubernetes.io/name":{}}},"f:spec":{"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:name":{}},"k:{\"name\":\"bare\"}":{".":{},"f:name":{}},"k:{\"name\":\"shared\"}":{"f:name":{}}}}}}}`),
		},
		{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", Subresource: "scale", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)},
	})

	got, err := Ownerships(obj)

	require.NoError(t, err)
	assert.Equal(t, []Ownership{
		{
			Manager: "helm", Operation: "Apply", APIVersion: "apps/v1", Time: &when,
			Fields: []string{
				`.metadata.finalizers[="a/b"]`,
				`.metadata.labels.app.kubernetes.io/name`,
				`.spec.selector`,
				`.spec.template.spec.containers[name="bare"]`,
				`.spec.template.spec.containers[name="shared"].name`,
				`.spec.template.spec.containers[name="web"].image`,
			},
		},
		{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "apps/v1", Subresource: "scale", Fields: []string{".spec.replicas"}},
	}, got)

	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "broken", FieldsV1: metav1.NewFieldsV1(`{"x":1}`)}})
	_, err = Ownerships(obj)
	require.ErrorContains(t, err, "broken")
}
