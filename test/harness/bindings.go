package harness

import (
	"context"
	"strings"

	"github.com/stretchr/testify/require"
	authzv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// awaitBindings waits until the API server knows of the rights that the bindings among
// objects give: it hears of roles and bindings by watches, as everybody does.
func (e *Env) awaitBindings(objects []*unstructured.Unstructured) {
	e.t.Helper()
	for _, obj := range objects {
		if kind := obj.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		// A ClusterRoleBinding has the same fields.
		var binding rbacv1.RoleBinding
		require.NoError(e.t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &binding))
		namespace := ""
		if obj.GetKind() == "RoleBinding" {
			namespace = orDefault(binding.Namespace, e.Namespace)
		}
		rules, err := e.rulesOf(e.t.Context(), binding.RoleRef, namespace)
		require.NoError(e.t, err)
		right := aRight(rules, namespace)
		if right == nil {
			continue
		}
		for _, s := range binding.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind {
				user := "system:serviceaccount:" + orDefault(s.Namespace, namespace) + ":" + s.Name
				require.NoError(e.t, e.AwaitRight(e.t.Context(), user, *right))
			}
		}
	}
}

// rulesOf returns the rules of a role, none if there is no such role.
func (c *Client) rulesOf(ctx context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	if ref.Kind == "Role" {
		role, err := c.Kube.RbacV1().Roles(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		return role.Rules, nil
	}
	role, err := c.Kube.RbacV1().ClusterRoles().Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return role.Rules, nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// aRight is the first right to a resource that rules give, nil if they give none.
func aRight(rules []rbacv1.PolicyRule, namespace string) *authzv1.ResourceAttributes {
	for _, rule := range rules {
		if len(rule.Resources) == 0 || len(rule.Verbs) == 0 || len(rule.APIGroups) == 0 {
			continue
		}
		right := &authzv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0]}
		right.Resource, right.Subresource, _ = strings.Cut(rule.Resources[0], "/")
		if len(rule.ResourceNames) > 0 {
			right.Name = rule.ResourceNames[0]
		}
		return right
	}
	return nil
}
