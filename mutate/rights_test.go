package mutate_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authzv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/testcluster"
)

// rule is what a ServiceAccount may do.
func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// deployer returns the client of a ServiceAccount that may do what the rules say.
func (e *env) deployer(rules ...rbacv1.PolicyRule) dynamic.Interface {
	e.t.Helper()
	e.grant(rules...)
	config := testcluster.Shared(e.t).Config()
	config.Impersonate.UserName = "system:serviceaccount:" + e.namespace + ":deployer"
	config.Impersonate.Groups = []string{"system:authenticated"}
	client, err := dynamic.NewForConfig(config)
	require.NoError(e.t, err)
	return client
}

// grants counts them: the API server takes a moment to see one.
var grants atomic.Int64

// grant replaces what the deployer may do.
func (e *env) grant(rules ...rbacv1.PolicyRule) {
	e.t.Helper()
	role := e.namespace + "-deployer"
	mark := "verb-" + strconv.FormatInt(grants.Add(1), 10)
	rules = append(slices.Clone(rules), rule("example.com", "marks", mark))
	text, err := json.Marshal(rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules,
	})
	require.NoError(e.t, err)
	e.apply("test", string(text))
	e.apply("test", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: "+role+"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "+role+"}, subjects: [{kind: ServiceAccount, name: deployer, namespace: "+e.namespace+"}]}")
	e.within("the rights count", func() bool {
		review, err := e.Kube.AuthorizationV1().SubjectAccessReviews().Create(e.t.Context(), &authzv1.SubjectAccessReview{Spec: authzv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + e.namespace + ":deployer", ResourceAttributes: &authzv1.ResourceAttributes{Verb: mark, Group: "example.com", Resource: "marks"},
		}}, metav1.CreateOptions{})
		require.NoError(e.t, err)
		return review.Status.Allowed
	})
	e.t.Cleanup(func() {
		ctx := context.Background()
		_ = e.Kube.RbacV1().ClusterRoleBindings().Delete(ctx, role, metav1.DeleteOptions{})
		_ = e.Kube.RbacV1().ClusterRoles().Delete(ctx, role, metav1.DeleteOptions{})
	})
}

// by lets a change be made with a client.
func (i *item) by(client dynamic.Interface) *item {
	i.change.Environment.Cluster = client
	return i
}

const (
	powerful = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: powerful}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
`
	powerfulBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: powerful}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: powerful}
subjects: [{kind: User, name: somebody, apiGroup: rbac.authorization.k8s.io}]
`
)

// A ServiceAccount may delete a role that it may not create.
func TestDeleteOfARoleThatMayNotBeCreatedAgainIsRefused(t *testing.T) {
	t.Parallel()
	const group = "rbac.authorization.k8s.io"
	for name, c := range map[string]struct {
		text string
		more rbacv1.PolicyRule
		hint string
	}{
		"Role":        {powerful, rule(group, "roles", "escalate"), "escalate"},
		"RoleBinding": {powerfulBinding, rule(group, "roles", "bind"), "bind"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.create(powerful)
			e.create(powerfulBinding)
			own := rule(group, "*", "get", "delete", "create", "patch")
			client := e.deployer(own)
			i := e.plan(0, api.Delete, c.text).by(client)
			fails(t, i.tryPrepare(), errclass.Terminal, errclass.AccessDenied, "could not be rolled back", c.hint)
			e.grant(own, c.more)
			require.NoError(t, i.tryPrepare())
			i.done()
			i.undone()
			i.restored()
			roles, err := e.Kube.RbacV1().Roles(e.namespace).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			assert.Len(t, roles.Items, 1, "the rehearsal leaves nothing")
		})
	}
}

const (
	widget       = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}"
	widgetStatus = `{"status":{"phase":"Ready"}}`
)

// K11: the right to write the status is asked for before anything is done.
func TestK11DeleteIsRefusedWhereTheStatusCouldNotBePutBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.widgets()
	obj := e.create(widget)
	own := rule("example.com", "widgets", "get", "delete", "create", "patch")
	i := e.plan(0, api.Delete, widget).by(e.deployer(own))
	require.NoError(t, i.tryPrepare(), "it has no status yet")
	e.merge("controller", obj, widgetStatus, "status")
	fails(t, i.tryPrepare(), errclass.Terminal, errclass.AccessDenied, "could not be rolled back completely", "patch on widgets.example.com/status")
	e.grant(own, rule("example.com", "widgets/status", "patch"))
	require.NoError(t, i.tryPrepare())
	i.done()
	// The right is taken away: the object is there, and what is missing is said, again
	// and again.
	e.grant(own)
	for range 2 {
		fails(t, i.undo(), errclass.Terminal, errclass.AccessDenied, "re-created without its status", "patch on widgets.example.com/status")
	}
	assert.Equal(t, "<absent>", value(t, i.now(), "status"))
	assert.True(t, owns(i.now(), "kubectl", ".spec.size"), "%v", entries(i.now()))
	e.grant(own, rule("example.com", "widgets/status", "patch"))
	i.undone()
	i.restored()
	i.restoredStatus()
}
