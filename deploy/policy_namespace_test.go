package deploy_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

// These are the users of docs/install.md, and one that it does not name.
const (
	firstJanusd   = "system:serviceaccount:janus-system:janusd"
	secondJanusd  = "system:serviceaccount:janus-of-team-b:janusd"
	unknownJanusd = "system:serviceaccount:janus-of-team-c:janusd"
)

// TestThePoliciesKnowJanusdInAnotherNamespace builds the kustomization of docs/security.md,
// as it stands there.
func TestThePoliciesKnowJanusdInAnotherNamespace(t *testing.T) {
	for user, objects := range map[string][]*unstructured.Unstructured{
		firstJanusd: build(t, "."), "system:serviceaccount:transactions:janusd": kustomizationOf(t, "security.md"),
	} {
		account := into[rbacv1.ClusterRoleBinding](t, installation{objects: objects}.find(t, "ClusterRoleBinding", "janusd")).Subjects[0]
		assert.Equal(t, user, "system:serviceaccount:"+account.Namespace+":"+account.Name, "the one that gets its rights")
		assert.Equal(t, "['"+user+"']", janusdsOf(t, objects))
	}
}

// TestThePoliciesKnowSeveralJanusds compares the kustomization of docs/install.md with what
// the chart renders.
func TestThePoliciesKnowSeveralJanusds(t *testing.T) {
	want := "['" + firstJanusd + "', '" + secondJanusd + "']"
	assert.Equal(t, want, janusdsOf(t, kustomizationOf(t, "install.md")))
	assert.Equal(t, want, janusdsOf(t, rendered(t, "policies: {otherNamespaces: [janus-of-team-b]}")))
}

// kustomizationOf builds the kustomization that a page of docs has.
func kustomizationOf(t *testing.T, page string) []*unstructured.Unstructured {
	t.Helper()
	block := regexp.MustCompile("(?s)```yaml\n(# kustomization.yaml\n.*?)```").FindStringSubmatch(readFile(t, filepath.Join("../docs", page)))
	require.NotNil(t, block, "docs/%s has a kustomization", page)
	here, err := os.Getwd()
	require.NoError(t, err)
	overlay := t.TempDir()
	base, err := filepath.Rel(overlay, here)
	require.NoError(t, err)
	const named = "path/to/deploy"
	require.Contains(t, block[1], named)
	require.NoError(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(strings.ReplaceAll(block[1], named, base)), 0o600))
	return build(t, overlay)
}

// janusdsOf returns the users that policies take for janusd, which are the same for all.
func janusdsOf(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	var first admissionv1.Variable
	for _, policy := range []string{"locks", "records", "status", "targets"} {
		object := installation{objects: objects}.find(t, "ValidatingAdmissionPolicy", "transaction-"+policy+".backup.janus.io")
		variable := into[admissionv1.ValidatingAdmissionPolicy](t, object).Spec.Variables[0]
		assert.Equal(t, "janusds", variable.Name, "%s", policy)
		if first.Name == "" {
			first = variable
		}
		assert.Equal(t, first, variable, "%s", policy)
	}
	return first.Expression
}

// TestEachJanusdThatIsNamedMayWrite has the policies know a second installation, and a third
// try the same without being named. All of them have every right.
func TestEachJanusdThatIsNamedMayWrite(t *testing.T) {
	s := newScene(t)
	txn := transaction("default")
	txn.SetGenerateName("")
	txn.SetName("release")
	require.NoError(t, s.create(api.Resource, txn, metav1.CreateOptions{}))
	for _, user := range []string{firstJanusd, secondJanusd, unknownJanusd} {
		bind(t, s.in, s.Namespace, "cluster-admin", user)
	}
	s.naming(kustomizationOf(t, "install.md"))
	for policy, err := range s.writesAs(t.Context(), firstJanusd) {
		require.NoError(t, err, "%s", policy)
	}
	for policy, err := range s.writesAs(t.Context(), unknownJanusd) {
		s.refused(err, policy, `user "`+unknownJanusd+`" may not `, asJanusd+" or --as="+secondJanusd)
	}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for _, home := range []string{ownNamespace, "janus-of-team-b"} {
		err := s.create(api.Resource, targeting("subject", target("v1", "ConfigMap", home, "anything")), dryRun)
		s.refused(err, "targets", "or in its namespace janus-system or janus-of-team-b")
	}
	require.NoError(t, s.create(api.Resource, targeting("subject", target("v1", "ConfigMap", "janus-of-team-c", "anything")), dryRun))
}

// naming applies other policies until the test ends, and waits until they let the second
// janusd write; at the end, until they do not.
func (s *scene) naming(objects []*unstructured.Unstructured) {
	s.t.Helper()
	await := func(ctx context.Context, may bool) {
		require.Eventually(s.t, func() bool {
			for _, err := range s.writesAs(ctx, secondJanusd) {
				if (err == nil) != may {
					return false
				}
			}
			return true
		}, settle, 5*poll, "that the second janusd may write is %t", may)
	}
	s.t.Cleanup(func() {
		s.apply(context.Background(), s.in.objects) // The context of the test has ended by now.
		await(context.Background(), false)
	})
	s.apply(s.t.Context(), objects)
	await(s.t.Context(), true)
}

// apply applies the policies that are among objects.
func (s *scene) apply(ctx context.Context, objects []*unstructured.Unstructured) {
	s.t.Helper()
	resource := s.in.dynamic.Resource(admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"))
	for _, object := range objects {
		if object.GetKind() == "ValidatingAdmissionPolicy" {
			_, err := resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "deploy-test", Force: true})
			require.NoError(s.t, err)
		}
	}
}

// writesAs tries as a user what janusd alone does, without effect, by the policy that has a
// say in it.
func (s *scene) writesAs(ctx context.Context, user string) map[string]error {
	s.t.Helper()
	client := s.in.as(s.t, user)
	all := []string{metav1.DryRunAll}
	_, status := client.Resource(api.Resource).Namespace(s.Namespace).Patch(ctx, "release", types.MergePatchType,
		[]byte(`{"status":{"version":1}}`), metav1.PatchOptions{DryRun: all}, "status")
	_, lease := client.Resource(leases).Namespace(s.Namespace).Create(ctx, lock("janus-lock-a", s.Namespace+"/release/4711"), metav1.CreateOptions{DryRun: all})
	_, image := client.Resource(configMaps).Namespace(s.Namespace).Create(ctx, record("ConfigMap", "release-rollback"), metav1.CreateOptions{DryRun: all})
	return map[string]error{"status": status, "locks": lease, "records": image}
}
