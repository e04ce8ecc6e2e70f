package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
)

var beta = api.BetaVersion.WithResource(api.Resource.Resource)

// inBeta is a Transaction of the newer version, with the edits made to it.
func inBeta(name string, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	txn := transaction("default")
	txn.SetAPIVersion(api.BetaVersion.String())
	txn.SetGenerateName("")
	txn.SetName(name)
	for _, edit := range edits {
		edit(txn)
	}
	return txn
}

// betaScene is a scene with Transaction release, which was created in the newer version.
func betaScene(t *testing.T) (*scene, dynamic.ResourceInterface) {
	t.Helper()
	s := newScene(t)
	client := s.in.dynamic.Resource(beta).Namespace(s.Namespace)
	_, err := client.Create(t.Context(), inBeta("release"), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
	return s, client
}

// TestWhatIsRefusedIsRefusedInEveryVersion sends in v1beta1 what each policy about Transactions refuses
// to everyone.
func TestWhatIsRefusedIsRefusedInEveryVersion(t *testing.T) {
	s, client := betaScene(t)
	for policy, try := range map[string]func() error{
		"approvals": func() error {
			return s.create(beta, inBeta("approved", func(txn *unstructured.Unstructured) {
				txn.SetAnnotations(map[string]string{api.ApprovedPlanAnnotation: "4711", api.ApprovedByAnnotation: "another"})
			}), metav1.CreateOptions{})
		},
		"status": func() error {
			_, err := client.Patch(t.Context(), "release", types.MergePatchType, []byte(`{"status":{"phase":"Committed"}}`), metav1.PatchOptions{}, "status")
			return err
		},
		"targets": func() error {
			txn := targeting("nested", target("v1", "Namespace", "", ownNamespace))
			txn.SetAPIVersion(api.BetaVersion.String())
			return s.create(beta, txn, metav1.CreateOptions{DryRun: tried})
		},
		// These are about what belongs to a Transaction.
		"records": func() error {
			return s.create(configMaps, ownedInBeta(record("ConfigMap", "forged")), metav1.CreateOptions{DryRun: tried})
		},
	} {
		require.Eventually(t, func() bool { return try() != nil }, settle, 5*poll, "the policy about %s is enforced", policy)
		s.refused(try(), policy)
	}
	for _, version := range []string{api.GroupVersion.String(), api.BetaVersion.String()} {
		txn := targeting("nested", target(version, "Transaction", "", "other"))
		for _, as := range []string{api.GroupVersion.String(), api.BetaVersion.String()} {
			txn.SetAPIVersion(as)
			s.refused(s.create(txn.GroupVersionKind().GroupVersion().WithResource("transactions"), txn, metav1.CreateOptions{}), "targets",
				"objects of backup.janus.io are not changed by Transactions")
		}
	}
	require.NoError(t, s.create(configMaps, ownedInBeta(stored("ConfigMap", "content", "4711")), metav1.CreateOptions{DryRun: tried}),
		"content may name its owner in either version")
}

// ownedInBeta is an object whose owner is named in the newer version.
func ownedInBeta(obj *unstructured.Unstructured) *unstructured.Unstructured {
	owners := obj.GetOwnerReferences()
	for i := range owners {
		owners[i].APIVersion = api.BetaVersion.String()
	}
	obj.SetOwnerReferences(owners)
	return obj
}

// TestWhoNamesAServiceAccountInV1beta1 is about a user who may edit Transactions and use no ServiceAccount.
func TestWhoNamesAServiceAccountInV1beta1(t *testing.T) {
	s, _ := betaScene(t)
	editor := "editor-of-" + s.Namespace
	bind(t, s.in, s.Namespace, "janus-editor", editor)
	awaitCreator(t, s.in, s.Namespace, editor)
	client := s.in.as(t, editor).Resource(beta).Namespace(s.Namespace)
	_, err := client.Create(t.Context(), inBeta("theirs"), metav1.CreateOptions{})
	require.ErrorContains(t, err, identityPolicy)
	_, err = client.Apply(t.Context(), "theirs", inBeta("theirs"), metav1.ApplyOptions{FieldManager: editor})
	require.ErrorContains(t, err, identityPolicy)
	patch := func(body string) error {
		_, err := client.Patch(t.Context(), "release", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	require.NoError(t, patch(`{"spec":{"suspend":true}}`), "to stop it takes no more")
	for _, again := range []string{
		`{"spec":{"suspend":false}}`, `{"spec":{"cancel":"Rollback"}}`, `{"metadata":{"annotations":{"backup.janus.io/recover":"now"}}}`,
	} {
		require.ErrorContains(t, patch(again), identityPolicy, "%s", again)
	}
}

// TestTheSpecStaysAsItIsInV1beta1 asks the policy by itself, where the CRD has lost its rules. What is
// written as it is, as where stored objects are migrated, passes.
func TestTheSpecStaysAsItIsInV1beta1(t *testing.T) {
	s, client := betaScene(t)
	withoutRule(t, s.in)
	patch := func(body string) error {
		_, err := client.Patch(t.Context(), "release", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	const another = `{"spec":{"serviceAccountName":"another"}}`
	require.Eventually(t, func() bool {
		err := patch(another)
		require.Error(t, err)
		return strings.Contains(err.Error(), specPolicy)
	}, settle, poll, "the policy refuses another spec")
	require.NoError(t, patch(`{}`))
	require.NoError(t, patch(`{"spec":{"suspend":true}}`))
}

// TestPoliciesNameNoVersionOfTransactions keeps a version that is added from going past them.
func TestPoliciesNameNoVersionOfTransactions(t *testing.T) {
	judging := 0
	for _, object := range slices.Concat(build(t, "policies"), build(t, "enforced/objects")) {
		if object.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, policy))
		assert.Equal(t, admissionv1.Equivalent, *policy.Spec.MatchConstraints.MatchPolicy, "%s", policy.Name)
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			assert.Equal(t, []string{"*"}, rule.APIVersions, "%s", policy.Name)
			if slices.Contains(rule.APIGroups, api.GroupVersion.Group) {
				judging++
			}
		}
	}
	assert.Equal(t, 6, judging, "approvals, deletion, identity, spec, status and targets")
}
