package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// janusd may look at namespaces where they are selected by their labels, and nowhere else.
func TestNamespacesMayBeListedWhereTheyAreSelected(t *testing.T) {
	for values, selected := range map[string]bool{
		"": false, "janusd: {watchNamespaces: [a]}": false, "janusd: {namespacesConfigMap: watched}": false,
		"janusd: {namespaceSelector: team=shop}": true,
	} {
		found := false
		for _, object := range rendered(t, values) {
			if object.GetKind() != "ClusterRole" || object.GetLabels()["app.kubernetes.io/name"] != "janusd" {
				continue
			}
			for _, rule := range into[rbacv1.ClusterRole](t, object).Rules {
				for _, resource := range rule.Resources {
					found = found || resource == "namespaces"
				}
			}
		}
		assert.Equal(t, selected, found, values)
	}
}

// The directory of the ConfigMap is mounted: one file of it would stay as it is.
func TestTheConfigMapOfNamespacesIsMountedAsAWhole(t *testing.T) {
	in := installation{objects: rendered(t, "{janusd: {namespacesConfigMap: watched}, metrics: {certificateSecret: tls}}")}
	pod := into[appsv1.Deployment](t, in.find(t, "Deployment", "janusd")).Spec.Template.Spec
	require.Len(t, pod.Volumes, 2)
	assert.Equal(t, "watched", pod.Volumes[1].ConfigMap.Name)
	mounts := pod.Containers[0].VolumeMounts
	require.Len(t, mounts, 2)
	assert.Equal(t, "/etc/janusd/namespaces", mounts[1].MountPath)
	assert.Empty(t, mounts[1].SubPath)
	assert.Contains(t, pod.Containers[0].Args, "--watch-namespaces=file:/etc/janusd/namespaces/namespaces")

	alone := installation{objects: rendered(t, "janusd: {namespacesConfigMap: watched}")}
	pod = into[appsv1.Deployment](t, alone.find(t, "Deployment", "janusd")).Spec.Template.Spec
	require.Len(t, pod.Volumes, 1)
	require.Len(t, pod.Containers[0].VolumeMounts, 1)
}
