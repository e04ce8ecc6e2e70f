package kinds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatOthersNeedIsInstalledFirst(t *testing.T) {
	for _, pair := range [][2]string{
		{"Namespace", "CustomResourceDefinition.apiextensions.k8s.io"},
		{"CustomResourceDefinition.apiextensions.k8s.io", "Widget.example.com"},
		{"PriorityClass.scheduling.k8s.io", "Deployment.apps"},
		{"ServiceAccount", "RoleBinding.rbac.authorization.k8s.io"},
		{"ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io"},
		{"RoleBinding.rbac.authorization.k8s.io", "Deployment.apps"},
		{"ConfigMap", "StatefulSet.apps"},
		{"PersistentVolumeClaim", "Pod"},
		{"Service", "Deployment.apps"},
		{"Deployment.apps", "Widget.example.com"},
		{"Widget.example.com", "ValidatingWebhookConfiguration.admissionregistration.k8s.io"},
		{"APIService.apiregistration.k8s.io", "MutatingWebhookConfiguration.admissionregistration.k8s.io"},
		{"ValidatingAdmissionPolicy.admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io"},
	} {
		assert.Less(t, InstallRank(schema.ParseGroupKind(pair[0])), InstallRank(schema.ParseGroupKind(pair[1])), "%s before %s", pair[0], pair[1])
	}
	assert.Equal(t, InstallRank(schema.ParseGroupKind("Service.serving.knative.dev")), InstallRank(schema.ParseGroupKind("Widget.example.com")),
		"a kind of another group is another kind")
}
