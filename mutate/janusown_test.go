package mutate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/target"
)

func TestABindingOfTheOwnServiceAccountIsWarnedOfWhenItLosesIt(t *testing.T) {
	c := Change{Ref: target.Ref{GVK: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), Namespace: "shop", Name: "b"}}
	c.Environment.Account = types.NamespacedName{Namespace: "shop", Name: "me"}
	of := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": name}}}}
	}
	assert.Len(t, c.ownHarm(of("me"), of("other")), 1)
	assert.Empty(t, c.ownHarm(of("me"), of("me")))
	assert.Empty(t, c.ownHarm(of("other"), of("me")))
	assert.Empty(t, c.ownHarm(nil, of("me")))
}
