package deploy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	packages "janus.io/janus/api/packages/v1alpha1"
	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

// grant is one verb on one resource.
type grant struct{ group, resource, subresource, verb string }

func (g grant) String() string {
	if g.subresource == "" {
		return fmt.Sprintf("%s %s.%s", g.verb, g.resource, g.group)
	}
	return fmt.Sprintf("%s %s/%s.%s", g.verb, g.resource, g.subresource, g.group)
}

func grants(group, resource, subresource string, verbs ...string) []grant {
	var all []grant
	for _, verb := range verbs {
		all = append(all, grant{group, resource, subresource, verb})
	}
	return all
}

// own is all that janusd does as itself, in any namespace.
var own = slices.Concat(
	grants("backup.janus.io", "transactions", "", "get", "list", "watch", "patch", "delete"),
	grants("backup.janus.io", "transactions", "status", "update"),
	grants("", "serviceaccounts", "", "get", "impersonate"),
	grants("coordination.k8s.io", "leases", "", "get", "list", "create", "update", "delete"),
	grants("", "configmaps", "", "get", "create", "delete", "patch"),
	grants("", "secrets", "", "get", "create", "delete", "patch"),
	grants("apps", "controllerrevisions", "", "get", "list", "create", "update", "delete"),
	grants("events.k8s.io", "events", "", "create"),
	grants("authentication.k8s.io", "tokenreviews", "", "create"),
	grants("authorization.k8s.io", "subjectaccessreviews", "", "create"),
)

// janusd is its identity, with the groups that the API server gives it.
var janusd = authorizationv1.SubjectAccessReviewSpec{
	User:   "system:serviceaccount:janus-system:janusd",
	Groups: []string{"system:serviceaccounts", "system:serviceaccounts:janus-system", "system:authenticated"},
}

func TestJanusdMayDoWhatItDoes(t *testing.T) {
	in := install(t)
	for _, namespace := range []string{"default", ownNamespace} {
		for _, g := range own {
			assert.True(t, allowed(t, in.client, janusd, g, namespace), "%s in %s", g, namespace)
		}
	}
}

func TestWhatJanusdMayDoInItsOwnNamespaceAlone(t *testing.T) {
	in := install(t)
	for _, g := range grants("", "namespaces", "", "get") {
		assert.True(t, allowed(t, in.client, janusd, g, ownNamespace), "%s", g)
		assert.False(t, allowed(t, in.client, janusd, g, "default"), "%s", g)
	}
}

func TestJanusdMayDoNothingElse(t *testing.T) {
	in := install(t)
	for _, g := range slices.Concat(
		grants("", "secrets", "", "list", "watch", "update", "deletecollection"),
		grants("", "configmaps", "", "list", "watch", "update", "deletecollection"),
		grants("apps", "controllerrevisions", "", "patch", "watch", "deletecollection"),
		grants("apps", "deployments", "", "get", "list", "create", "update", "patch", "delete"),
		grants("", "pods", "", "get", "create", "delete"),
		grants("", "pods", "exec", "create"),
		grants("", "serviceaccounts", "", "create", "delete", "list"),
		grants("", "serviceaccounts", "token", "create"),
		grants("", "users", "", "impersonate"),
		grants("", "groups", "", "impersonate"),
		grants("authentication.k8s.io", "uids", "", "impersonate"),
		grants("authentication.k8s.io", "userextras", "scopes", "impersonate"),
		grants("rbac.authorization.k8s.io", "clusterroles", "", "bind", "escalate", "create"),
		grants("rbac.authorization.k8s.io", "clusterrolebindings", "", "create"),
		grants("backup.janus.io", "transactions", "", "create", "update", "deletecollection"),
		grants("admissionregistration.k8s.io", "validatingadmissionpolicies", "", "update", "delete"),
		grants("", "namespaces", "", "get", "list", "create", "delete"),
		// Janus sets no blockOwnerDeletion, for which some clusters ask for this one.
		grants("backup.janus.io", "transactions", "finalizers", "update"),
		grants("coordination.k8s.io", "leases", "", "watch", "deletecollection"),
	) {
		assert.False(t, allowed(t, in.client, janusd, g, "default"), "%s", g)
	}

	// The table above cannot be complete; the role can be read whole.
	role := into[rbacv1.ClusterRole](t, in.find(t, "ClusterRole", "janusd"))
	var granted []string
	for _, rule := range role.Rules {
		require.Empty(t, rule.ResourceNames)
		require.Empty(t, rule.NonResourceURLs)
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					granted = append(granted, fmt.Sprintf("%s %s.%s", verb, resource, group))
				}
			}
		}
	}
	var needed []string
	for _, g := range own {
		needed = append(needed, g.String())
	}
	assert.ElementsMatch(t, needed, granted)
}

func TestUserRoles(t *testing.T) {
	in := install(t)
	namespace := testcluster.Namespace(t)
	write := grants("backup.janus.io", "transactions", "", "create", "update", "patch", "delete", "deletecollection")
	read := grants("backup.janus.io", "transactions", "", "get", "list", "watch")
	journal := grants("backup.janus.io", "transactions", "status", "update", "patch")
	approve := grants(api.ApproveGroup, "transactions", "", "approve")
	for _, c := range []struct {
		role              string
		may, mayNot       []grant
		mayImpersonateAny bool
	}{
		{role: "janus-approver", may: slices.Concat(approve, read, grants("backup.janus.io", "transactions", "", "patch")), mayNot: journal},
		{role: "janus-editor", may: slices.Concat(read, write), mayNot: slices.Concat(journal, approve)},
		{role: "janus-viewer", may: read, mayNot: slices.Concat(write, journal, approve)},
		{role: "admin", may: slices.Concat(read, write), mayNot: slices.Concat(journal, approve), mayImpersonateAny: true},
		{role: "edit", may: slices.Concat(read, write), mayNot: slices.Concat(journal, approve), mayImpersonateAny: true},
		// A Transaction can carry the content of a Secret, which view may not read.
		{role: "view", mayNot: slices.Concat(read, write, journal, approve)},
	} {
		t.Run(c.role, func(t *testing.T) {
			user := authorizationv1.SubjectAccessReviewSpec{User: "user-of-" + c.role}
			bind(t, in, namespace, c.role, user.User)
			if len(c.may) > 0 {
				require.Eventually(t, func() bool { return allowed(t, in.client, user, c.may[0], namespace) },
					settle, poll, "the role is aggregated and bound")
			}
			for _, g := range c.may {
				assert.True(t, allowed(t, in.client, user, g, namespace), "%s", g)
			}
			for _, g := range c.mayNot {
				assert.False(t, allowed(t, in.client, user, g, namespace), "%s", g)
			}
			assert.Equal(t, c.mayImpersonateAny,
				allowed(t, in.client, user, grant{"", "serviceaccounts", "", "impersonate"}, namespace))
		})
	}
}

// allowed asks the API server's authorizer.
func allowed(t *testing.T, client kubernetes.Interface, who authorizationv1.SubjectAccessReviewSpec, g grant, namespace string) bool {
	t.Helper()
	return allowedOn(t, client, who, g, namespace, "anything")
}

func allowedOn(t *testing.T, client kubernetes.Interface, who authorizationv1.SubjectAccessReviewSpec, g grant, namespace, name string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: who}
	review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Group: g.group, Resource: g.resource, Subresource: g.subresource, Verb: g.verb, Namespace: namespace, Name: name,
	}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(context.WithoutCancel(t.Context()), review, metav1.CreateOptions{})
	require.NoError(t, err)
	return answer.Status.Allowed
}

// bind gives a user a ClusterRole in a namespace.
func bind(t *testing.T, in installation, namespace, role, user string) {
	t.Helper()
	_, err := in.client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// permit gives a user one verb on what is named deployer, and returns once that counts.
func permit(t *testing.T, in installation, namespace, user string, g grant) {
	t.Helper()
	role, err := in.client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{g.group}, Resources: []string{g.resource}, Verbs: []string{g.verb}, ResourceNames: []string{"deployer"},
		}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = in.client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return allowedOn(t, in.client, authorizationv1.SubjectAccessReviewSpec{User: user}, g, namespace, "deployer")
	}, settle, poll, "%s may %v", user, g)
}

// packageRights is what janusd may do for PackageTransactions beside what it may do anyway.
var packageRights = slices.Concat(
	grants("pkg.janus.io", "packagetransactions", "", "get", "list", "watch", "patch", "delete"),
	grants("pkg.janus.io", "packagetransactions", "status", "update"),
	grants("backup.janus.io", "transactions", "", "create"),
)

func TestTheRightsOfPackageTransactions(t *testing.T) {
	with := installation{objects: withComponent(t, ".", "packages")}
	role := into[rbacv1.ClusterRole](t, with.find(t, "ClusterRole", "janusd-packages-janus-system"))
	var granted, needed []string
	for _, rule := range role.Rules {
		require.Empty(t, rule.ResourceNames)
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted = append(granted, fmt.Sprintf("%s %s.%s", verb, resource, rule.APIGroups[0]))
			}
		}
	}
	for _, g := range packageRights {
		needed = append(needed, g.String())
	}
	assert.ElementsMatch(t, needed, granted)
	for _, object := range build(t, ".") {
		assert.NotContains(t, object.GetName(), "package", "it is not a part of the default installation")
	}
}

// withPackages is an installation with PackageTransactions, whose rights janusd has until the test ends: the
// tests of what it may not do have the same cluster.
func withPackages(t *testing.T) installation {
	t.Helper()
	in := installed(t, withComponent(t, ".", "packages"))
	t.Cleanup(func() {
		const name = "janusd-packages-janus-system"
		require.NoError(t, in.client.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
		require.Eventually(t, func() bool { return !allowed(t, in.client, janusd, packageRights[len(packageRights)-1], "default") }, time.Minute, 50*time.Millisecond)
	})
	return in
}

// Anyone who creates a PackageTransaction may use its ServiceAccount, and nobody else creates one.
func TestWhoMayNameTheServiceAccountOfAPackageTransaction(t *testing.T) {
	in := withPackages(t)
	namespace := testcluster.Namespace(t)
	for _, name := range []string{"janus-package-editor", "janus-package-viewer"} {
		_, err := in.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	as := func(user string) dynamic.NamespaceableResourceInterface {
		config := rest.CopyConfig(in.config)
		config.Impersonate.UserName = user
		client, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		return client.Resource(packages.Resource)
	}
	create := func(user string) error {
		p := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"change": "Delete", "delete": map[string]any{"source": "xpkg.acme.io/acme/bucket"}, "serviceAccountRef": map[string]any{"namespace": namespace, "name": "deployer"},
		}}}
		p.SetGroupVersionKind(packages.Kind)
		p.SetName("delete-" + namespace)
		_, err := as(user).Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	require.Eventually(t, func() bool {
		err := create("janus-package-editor")
		return err != nil && strings.Contains(err.Error(), "may not let a PackageTransaction act as ServiceAccount "+namespace+"/deployer")
	}, settle, poll, "the policy is enforced")
	require.ErrorContains(t, create("janus-package-viewer"), "cannot create resource")
	permit(t, in, namespace, "janus-package-editor", grant{"backup.janus.io", "serviceaccounts", "", "use"})
	require.Eventually(t, func() bool {
		err := create("janus-package-editor")
		return err != nil && strings.Contains(err.Error(), namespace+"/deployer"+formerRight)
	}, settle, poll, "the right of before is none any more")
	permit(t, in, namespace, "janus-package-editor", grant{"use.janus.io", "serviceaccounts", "", "use"})
	require.Eventually(t, func() bool { return create("janus-package-editor") == nil }, settle, poll, "use is enough")
	_, err := as("janus-package-viewer").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
}
