package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestThePoliciesKnowJanusdInAnotherNamespace builds the kustomization of docs/security.md,
// as it stands there.
func TestThePoliciesKnowJanusdInAnotherNamespace(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```yaml\n(# kustomization.yaml\n.*?)```").FindSubmatch(page)
	require.NotNil(t, block, "docs/security.md has the kustomization")
	here, err := os.Getwd()
	require.NoError(t, err)
	overlay := t.TempDir()
	base, err := filepath.Rel(overlay, here)
	require.NoError(t, err)
	const named = "path/to/deploy"
	require.Contains(t, string(block[1]), named)
	//nolint:gosec // The page is the repository's own, and so is what goes into it.
	require.NoError(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(strings.ReplaceAll(string(block[1]), named, base)), 0o600))

	assert.Equal(t, "system:serviceaccount:janus-system:janusd", whoIsJanusd(t, "."))
	assert.Equal(t, "system:serviceaccount:transactions:janusd", whoIsJanusd(t, overlay))
}

// whoIsJanusd gives the user that the policies of a directory take for janusd, which must
// be the one that gets its rights there.
func whoIsJanusd(t *testing.T, dir string) string {
	t.Helper()
	in := installation{objects: build(t, dir)}
	account := into[rbacv1.ClusterRoleBinding](t, in.find(t, "ClusterRoleBinding", "janusd")).Subjects[0]
	user := "system:serviceaccount:" + account.Namespace + ":" + account.Name
	for _, policy := range []string{"locks", "records", "status", "targets"} {
		spec := into[admissionv1.ValidatingAdmissionPolicy](t, in.find(t, "ValidatingAdmissionPolicy", "transaction-"+policy+".backup.janus.io")).Spec
		assert.Equal(t, admissionv1.Variable{Name: "janusd", Expression: "'" + user + "'"}, spec.Variables[0], "%s", policy)
	}
	return user
}
