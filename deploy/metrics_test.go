package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "k8s.io/api/apps/v1"
)

// mayScrape asks the API server what janusd asks it of anyone who wants the metrics.
func mayScrape(t *testing.T, in installation, user string) bool {
	t.Helper()
	return mayGet(t, in, user, "/metrics")
}

func mayGet(t *testing.T, in installation, user, path string) bool {
	t.Helper()
	answer, err := in.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return answer.Status.Allowed
}

func TestWhoHasTheRoleMayReadTheMetrics(t *testing.T) {
	in := install(t)
	assert.False(t, mayScrape(t, in, "scraper"))
	_, err := in.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "janus-metrics-reader"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "scraper"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return mayScrape(t, in, "scraper") }, settle, poll)
	assert.False(t, mayScrape(t, in, "somebody-else"))
}

// The defaults are the secure ones, so what is deployed is secure if no flag says otherwise.
func TestMetricsAreServedSecurelyByDefault(t *testing.T) {
	in := install(t)
	container := into[appsv1.Deployment](t, in.find(t, "Deployment", "janusd")).Spec.Template.Spec.Containers[0]
	for _, arg := range container.Args {
		assert.NotContains(t, arg, "--metrics")
		assert.NotContains(t, arg, "--pprof")
	}
	service := into[corev1.Service](t, in.find(t, "Service", "janusd-metrics"))
	require.Len(t, service.Spec.Ports, 1)
	assert.Equal(t, "metrics", service.Spec.Ports[0].TargetPort.String())
	assert.EqualValues(t, 8443, service.Spec.Ports[0].Port)
}
