package deploy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const ownNamespace = "janus-system"

func TestEverythingIsAcceptedWithoutAWarning(t *testing.T) {
	in := install(t)
	assert.Empty(t, in.warnings)
	var installed []string
	for _, o := range in.objects {
		installed = append(installed, o.GetKind()+" "+o.GetName())
		assert.Equal(t, "janus", o.GetLabels()["app.kubernetes.io/part-of"], "%s %s", o.GetKind(), o.GetName())
	}
	assert.ElementsMatch(t, []string{
		"Namespace janus-system",
		"CustomResourceDefinition transactions.backup.janus.io",
		"ServiceAccount janusd",
		"ClusterRole janusd",
		"ClusterRoleBinding janusd",
		"Role janusd-leader-election",
		"RoleBinding janusd-leader-election",
		"Role janusd-own-namespace",
		"RoleBinding janusd-own-namespace",
		"Role janus-settings-reader",
		"RoleBinding janus-settings-reader",
		"ClusterRole janus-approver",
		"ClusterRole janus-editor",
		"ClusterRole janus-viewer",
		"ClusterRole janus-metrics-reader",
		"ValidatingAdmissionPolicy transaction-approvals.backup.janus.io",
		"ValidatingAdmissionPolicyBinding transaction-approvals.backup.janus.io",
		"ValidatingAdmissionPolicy transaction-contents.backup.janus.io",
		"ValidatingAdmissionPolicyBinding transaction-contents.backup.janus.io",
		"ValidatingAdmissionPolicy transaction-deletion.backup.janus.io",
		"ValidatingAdmissionPolicyBinding transaction-deletion.backup.janus.io",
		"ValidatingAdmissionPolicy transaction-identity.backup.janus.io",
		"ValidatingAdmissionPolicyBinding transaction-identity.backup.janus.io",
		"ValidatingAdmissionPolicy transaction-locks.backup.janus.io",
		"ValidatingAdmissionPolicyBinding transaction-locks.backup.janus.io",
		"ValidatingAdmissionPolicy transaction-records.backup.janus.io",
		"ValidatingAdmissionPolicyBinding transaction-records.backup.janus.io",
		"ValidatingAdmissionPolicy transaction-settings.backup.janus.io",
		"ValidatingAdmissionPolicyBinding transaction-settings.backup.janus.io",
		"ValidatingAdmissionPolicy transaction-spec.backup.janus.io",
		"ValidatingAdmissionPolicyBinding transaction-spec.backup.janus.io",
		"ValidatingAdmissionPolicy transaction-status.backup.janus.io",
		"ValidatingAdmissionPolicyBinding transaction-status.backup.janus.io",
		"ValidatingAdmissionPolicy transaction-targets.backup.janus.io",
		"ValidatingAdmissionPolicyBinding transaction-targets.backup.janus.io",
		"ValidatingAdmissionPolicy transaction-tokens.backup.janus.io",
		"ValidatingAdmissionPolicyBinding transaction-tokens.backup.janus.io",
		"Deployment janusd",
		"Service janusd-metrics",
		"PodDisruptionBudget janusd",
	}, installed)
}

func TestPodsAreAdmittedUnderRestrictedPodSecurity(t *testing.T) {
	in := install(t)
	deployment := into[appsv1.Deployment](t, in.find(t, "Deployment", "janusd"))
	pods := in.client.CoreV1().Pods(ownNamespace)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "janusd-dry-run", Labels: deployment.Spec.Template.Labels},
		Spec:       *deployment.Spec.Template.Spec.DeepCopy(),
	}
	_, err := pods.Create(t.Context(), pod, dryRun)
	require.NoError(t, err)

	// The namespace must refuse what is not restricted, or the above says nothing.
	pod.Spec.Containers[0].SecurityContext.Capabilities = nil
	_, err = pods.Create(t.Context(), pod, dryRun)
	require.True(t, apierrors.IsForbidden(err), "got %v", err)
	require.ErrorContains(t, err, `violates PodSecurity "restricted:latest"`)

	// Another test may have applied another template, whose Pods stay, as none is ever ready here.
	require.NoError(t, in.client.AppsV1().Deployments(ownNamespace).Delete(t.Context(), deployment.Name, metav1.DeleteOptions{}))
	install(t)
	require.Eventually(t, func() bool {
		made, err := in.client.AppsV1().Deployments(ownNamespace).Get(t.Context(), deployment.Name, metav1.GetOptions{})
		return err == nil && made.Status.ObservedGeneration == made.Generation && made.Status.UpdatedReplicas == *deployment.Spec.Replicas
	}, settle, poll, "the Deployment gets its two Pods")
}

func TestDeploymentIsHardened(t *testing.T) {
	deployment := into[appsv1.Deployment](t, install(t).find(t, "Deployment", "janusd"))
	pod := deployment.Spec.Template.Spec
	require.Len(t, pod.Containers, 1)
	container := pod.Containers[0]
	assert.EqualValues(t, 65532, *pod.SecurityContext.RunAsUser)
	assert.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, []corev1.Capability{"ALL"}, container.SecurityContext.Capabilities.Drop)
	assert.Equal(t, "janusd", pod.ServiceAccountName)
	assert.Subset(t, container.Args, []string{"--leader-elect", "--shards=8"}, "two replicas would otherwise both work, or one would wait")

	ports := map[string]int32{}
	for _, p := range container.Ports {
		ports[p.Name] = p.ContainerPort
	}
	assert.Equal(t, map[string]int32{"metrics": 8443, "probes": 8081}, ports)
	assert.Equal(t, "/healthz", container.LivenessProbe.HTTPGet.Path)
	assert.Equal(t, "/readyz", container.ReadinessProbe.HTTPGet.Path)
	assert.NotEmpty(t, container.Resources.Requests)
	assert.NotEmpty(t, container.Resources.Limits)
}

func TestDisruptionBudgetAndServiceSelectTheDeployment(t *testing.T) {
	in := install(t)
	template := into[appsv1.Deployment](t, in.find(t, "Deployment", "janusd")).Spec.Template.Labels
	service := into[corev1.Service](t, in.find(t, "Service", "janusd-metrics"))
	assert.Subset(t, template, service.Spec.Selector)

	require.Eventually(t, func() bool {
		budget, err := in.client.PolicyV1().PodDisruptionBudgets(ownNamespace).Get(t.Context(), "janusd", metav1.GetOptions{})
		return err == nil && budget.Status.ExpectedPods == 2
	}, settle, poll, "the budget counts both replicas")
}

func TestImageCanBeReplacedByAnOverlay(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	overlay := t.TempDir()
	base, err := filepath.Rel(overlay, here)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(`
resources: ["`+base+`"]
images:
- name: janusd
  newName: registry.example.com/tools/janusd
  newTag: v1.2.3
`), 0o600))
	image := func(dir string) string {
		in := installation{objects: build(t, dir)}
		return into[appsv1.Deployment](t, in.find(t, "Deployment", "janusd")).Spec.Template.Spec.Containers[0].Image
	}
	assert.Equal(t, "janusd:dev", image("."))
	assert.Equal(t, "registry.example.com/tools/janusd:v1.2.3", image(overlay))
}
