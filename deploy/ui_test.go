package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestThePageGivesJanusdTwoRights reads what the component changes whole. That they suffice is
// shown in test/e2e/packages.
func TestThePageGivesJanusdTwoRights(t *testing.T) {
	for _, c := range []struct{ directory, kind string }{{".", "ClusterRole"}, {"overlays/namespaced", "Role"}} {
		without, with := byName(t, build(t, c.directory)), byName(t, withComponent(t, c.directory, "ui"))
		var changed []string
		for name := range with {
			if !assert.ObjectsAreEqual(without[name], with[name]) {
				changed = append(changed, strings.Replace(name, "shop", "", 1))
			}
		}
		assert.ElementsMatch(t, []string{
			"Deployment janus-system/janusd", "Service janus-system/janusd-ui", "ClusterRole /janus-ui-viewer", c.kind + " /janusd",
		}, changed)
		assert.Len(t, with, len(without)+2)

		rules := func(objects map[string]any) []any {
			for name, object := range objects {
				if strings.HasPrefix(name, c.kind+" ") && strings.HasSuffix(name, "/janusd") {
					return object.(map[string]any)["rules"].([]any)
				}
			}
			return nil
		}
		before, after := rules(without), rules(with)
		require.Greater(t, len(after), len(before))
		assert.Equal(t, before, after[:len(before)])
		assert.Equal(t, []any{
			map[string]any{"apiGroups": []any{""}, "resources": []any{"events"}, "verbs": []any{"list"}},
			map[string]any{"apiGroups": []any{"coordination.k8s.io"}, "resources": []any{"leases"}, "verbs": []any{"list"}},
		}, after[len(before):])
	}
}

func TestThePageIsServedByTheDeploymentToWhoHasTheRole(t *testing.T) {
	in := install(t)
	in.objects = withComponent(t, ".", "ui")
	deployment := into[appsv1.Deployment](t, in.find(t, "Deployment", "janusd"))
	assert.True(t, slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--ui"))
	service := into[corev1.Service](t, in.find(t, "Service", "janusd-ui"))
	assert.Subset(t, deployment.Spec.Template.Labels, service.Spec.Selector)
	assert.Equal(t, "metrics", service.Spec.Ports[0].TargetPort.String())

	role := into[rbacv1.ClusterRole](t, in.find(t, "ClusterRole", "janus-ui-viewer"))
	_, err := in.client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
	_, err = in.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ui-viewer"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return mayGet(t, in, "ui-viewer", "/ui") }, settle, poll)
	assert.False(t, mayGet(t, in, "ui-viewer", "/metrics"))
	assert.False(t, mayGet(t, in, "somebody-else", "/ui"))
	who := authorizationv1.SubjectAccessReviewSpec{User: "ui-viewer"}
	assert.False(t, allowed(t, in.client, who, grants("backup.janus.io", "transactions", "", "get")[0], "default"), "the role is for the page alone")
}
