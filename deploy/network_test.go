package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whether a network enforces it only a network can show. It is accepted, and names Pods and ports
// that there are.
func TestTheNetworkPolicyIsOfJanusd(t *testing.T) {
	in := install(t)
	in.objects = withComponent(t, ".", "network")
	policy := into[networkingv1.NetworkPolicy](t, in.find(t, "NetworkPolicy", "janusd"))
	policy.Namespace, policy.Name = "default", ""
	policy.GenerateName = "test-"
	stored, err := in.client.NetworkingV1().NetworkPolicies("default").Create(t.Context(), policy, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
	assert.Equal(t, policy.Spec, stored.Spec, "nothing of it is pruned or defaulted")

	pod := into[appsv1.Deployment](t, in.find(t, "Deployment", "janusd")).Spec.Template
	assert.Subset(t, pod.Labels, policy.Spec.PodSelector.MatchLabels)
	var served, reached []string
	for _, port := range pod.Spec.Containers[0].Ports {
		served = append(served, port.Name)
	}
	for _, rule := range policy.Spec.Ingress {
		assert.Empty(t, rule.From)
		for _, port := range rule.Ports {
			reached = append(reached, port.Port.String())
		}
	}
	assert.ElementsMatch(t, served, reached)
}

func TestTheMetricsCanBeLimitedToSomePeers(t *testing.T) {
	in := installation{objects: rendered(t, "networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {matchLabels: {team: a}}}]}")}
	policy := into[networkingv1.NetworkPolicy](t, in.find(t, "NetworkPolicy", "janusd"))
	require.Len(t, policy.Spec.Ingress, 2)
	assert.Empty(t, policy.Spec.Ingress[0].From, "the kubelet probes from the Node")
	require.Len(t, policy.Spec.Ingress[1].From, 1)
	assert.Equal(t, map[string]string{"team": "a"}, policy.Spec.Ingress[1].From[0].NamespaceSelector.MatchLabels)
}
