package deploy_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

const (
	identityPolicy = "ValidatingAdmissionPolicy 'transaction-identity.backup.janus.io'"
	specPolicy     = "ValidatingAdmissionPolicy 'transaction-spec.backup.janus.io'"
)

var (
	impersonate = grant{"", "serviceaccounts", "", "impersonate"}
	use         = grant{"use.janus.io", "serviceaccounts", "", "use"}
)

const formerRight = ": the verb use counts on serviceaccounts.use.janus.io, and no more on serviceaccounts.backup.janus.io; " +
	"grant it by a rule with apiGroups [use.janus.io]"

// TestWhoMayNameAServiceAccount is the escalation that must not be: anyone who may
// only create Transactions names a powerful ServiceAccount.
func TestWhoMayNameAServiceAccount(t *testing.T) {
	in := install(t)
	namespace := testcluster.Namespace(t)
	awaitPolicies(t, in, namespace)
	for _, c := range []struct {
		title   string
		prepare func(t *testing.T, user string)
		allowed []string
		refused []string
		says    string
	}{
		{
			title:   "somebody who may only create Transactions",
			prepare: func(t *testing.T, user string) { bind(t, in, namespace, "janus-editor", user) },
			refused: []string{"powerful", "deployer", "default", "no-such-account"},
		},
		{
			title: "somebody who may impersonate one",
			prepare: func(t *testing.T, user string) {
				bind(t, in, namespace, "janus-editor", user)
				permit(t, in, namespace, user, impersonate)
			},
			allowed: []string{"deployer"},
			refused: []string{"powerful", "default"},
		},
		{
			title: "somebody who may use one",
			prepare: func(t *testing.T, user string) {
				bind(t, in, namespace, "janus-editor", user)
				permit(t, in, namespace, user, use)
			},
			allowed: []string{"deployer"},
			refused: []string{"powerful", "default"},
		},
		{
			title: "somebody who may use one by the name in the core group, which means nothing",
			prepare: func(t *testing.T, user string) {
				bind(t, in, namespace, "janus-editor", user)
				permit(t, in, namespace, user, grant{"", "serviceaccounts", "", "use"})
			},
			refused: []string{"deployer"},
		},
		{
			title: "a user who may do all in the group of Transactions",
			prepare: func(t *testing.T, user string) {
				bind(t, in, namespace, "janus-editor", user)
				permit(t, in, namespace, user, grant{"backup.janus.io", "*", "", "*"})
			},
			refused: []string{"deployer"},
			says:    formerRight,
		},
		{
			title: "a user who may use one by the group of before",
			prepare: func(t *testing.T, user string) {
				bind(t, in, namespace, "janus-editor", user)
				permit(t, in, namespace, user, grant{"backup.janus.io", "serviceaccounts", "", "use"})
			},
			refused: []string{"deployer"},
			says:    formerRight,
		},
		{
			title: "somebody who may impersonate it in another namespace",
			prepare: func(t *testing.T, user string) {
				bind(t, in, namespace, "janus-editor", user)
				permit(t, in, "default", user, impersonate)
			},
			refused: []string{"deployer"},
		},
		{
			title:   "an editor of the namespace",
			prepare: func(t *testing.T, user string) { bind(t, in, namespace, "edit", user) },
			allowed: []string{"deployer", "powerful", "default"},
		},
	} {
		t.Run(c.title, func(t *testing.T) {
			user := strings.ReplaceAll(c.title, " ", "-")
			c.prepare(t, user)
			awaitCreator(t, in, namespace, user)
			client := in.as(t, user).Resource(v1alpha1.Resource).Namespace(namespace)
			for _, account := range c.allowed {
				require.Eventually(t, func() bool {
					_, err := client.Create(t.Context(), transaction(account), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
					return err == nil
				}, settle, poll, "%s is allowed", account)
			}
			for _, account := range c.refused {
				_, err := client.Create(t.Context(), transaction(account), metav1.CreateOptions{})
				require.True(t, apierrors.IsForbidden(err), "%s: got %v", account, err)
				require.ErrorContains(t, err, identityPolicy)
				require.ErrorContains(t, err, `user "`+user+`" may not let a Transaction act as ServiceAccount `+namespace+"/"+account+cmp.Or(c.says,
					": that takes the verb impersonate on serviceaccounts, or use on serviceaccounts.use.janus.io"))
			}
		})
	}
}

func TestApplyIsJudgedAsCreate(t *testing.T) {
	in := install(t)
	namespace := testcluster.Namespace(t)
	awaitPolicies(t, in, namespace)
	bind(t, in, namespace, "janus-editor", "applier")
	awaitCreator(t, in, namespace, "applier")
	tx := transaction("powerful")
	tx.SetGenerateName("")
	tx.SetName("applied")
	_, err := in.as(t, "applier").Resource(v1alpha1.Resource).Namespace(namespace).
		Apply(t.Context(), "applied", tx, metav1.ApplyOptions{FieldManager: "applier"})
	require.True(t, apierrors.IsForbidden(err), "got %v", err)
	require.ErrorContains(t, err, identityPolicy)
}

// TestWhoeverMayEditMayLabelAndStop shows that the policy leaves alone what has no
// ServiceAccount write: another client's Transaction can be labelled, released, suspended and
// stopped by anyone who may patch it.
func TestWhoeverMayEditMayLabelAndStop(t *testing.T) {
	in := install(t)
	namespace := testcluster.Namespace(t)
	awaitPolicies(t, in, namespace)
	bind(t, in, namespace, "janus-editor", "on-call")
	awaitCreator(t, in, namespace, "on-call")
	client := in.as(t, "on-call").Resource(v1alpha1.Resource).Namespace(namespace)
	_, err := client.Create(t.Context(), transaction("powerful"), metav1.CreateOptions{})
	require.ErrorContains(t, err, identityPolicy)
	for _, patches := range [][]string{
		{`{"metadata":{"labels":{"team":"blue"},"finalizers":["backup.janus.io/lease-cleanup"]}}`, `{"metadata":{"finalizers":null}}`},
		{`{"spec":{"suspend":true}}`, `{"spec":{"cancel":"Stop"}}`},
		{`{"spec":{"suspend":true,"cancel":"Stop"}}`},
	} {
		tx, err := in.dynamic.Resource(v1alpha1.Resource).Namespace(namespace).Create(t.Context(), transaction("powerful"), metav1.CreateOptions{})
		require.NoError(t, err)
		for _, patch := range patches {
			_, err = client.Patch(t.Context(), tx.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			require.NoError(t, err, "%s", patch)
		}
	}
}

// TestToHaveAnAccountDoMoreTakesTheRightToIt is about a user whose CRD has lost its rules,
// and who has taken transaction-spec away.
func TestToHaveAnAccountDoMoreTakesTheRightToIt(t *testing.T) {
	in := install(t)
	namespace := testcluster.Namespace(t)
	awaitPolicies(t, in, namespace)
	planned := transaction("powerful")
	require.NoError(t, unstructured.SetNestedField(planned.Object, true, "spec", "dryRun"))
	tx, err := in.dynamic.Resource(v1alpha1.Resource).Namespace(namespace).Create(t.Context(), planned, metav1.CreateOptions{})
	require.NoError(t, err)
	bind(t, in, namespace, "janus-editor", "editor")
	awaitCreator(t, in, namespace, "editor")
	withoutRule(t, in)
	withoutSpecPolicy(t, in, tx)
	client := in.as(t, "editor").Resource(v1alpha1.Resource).Namespace(namespace)
	dryRun := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	require.Eventually(t, func() bool {
		_, err := client.Patch(t.Context(), tx.GetName(), types.MergePatchType, []byte(anotherField), dryRun)
		return err == nil
	}, settle, poll, "neither CRD nor policy keeps the spec as it is")
	for _, patch := range []string{
		`{"spec":{"serviceAccountName":"deployer"}}`,
		`{"spec":{"changes":[{"type":"Delete","target":{"apiVersion":"v1","kind":"ConfigMap","name":"settings"},"acceptLoss":true}]}}`,
		`{"spec":{"changes":null,"undoOf":{"name":"other"}}}`,
		`{"spec":{"dryRun":null}}`,
		`{"spec":{"suspend":true,"dryRun":false}}`,
	} {
		_, err := client.Patch(t.Context(), tx.GetName(), types.MergePatchType, []byte(patch), dryRun)
		require.ErrorContains(t, err, identityPolicy, "%s", patch)
	}
}

// withoutSpecPolicy takes the binding of the policy away until the test ends, which waits until
// it is enforced again: that is shown by what is refused to a Transaction then.
func withoutSpecPolicy(t *testing.T, in installation, tx *unstructured.Unstructured) {
	t.Helper()
	const name = "transaction-spec.backup.janus.io"
	bindings := in.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	require.NoError(t, bindings.Delete(t.Context(), name, metav1.DeleteOptions{}))
	t.Cleanup(func() {
		binding := into[admissionv1.ValidatingAdmissionPolicyBinding](t, in.find(t, "ValidatingAdmissionPolicyBinding", name))
		ctx := context.Background() // That of the test has ended by now.
		_, err := bindings.Create(ctx, binding, metav1.CreateOptions{FieldManager: "deploy-test"})
		require.NoError(t, err)
		client := in.dynamic.Resource(v1alpha1.Resource).Namespace(tx.GetNamespace())
		require.Eventually(t, func() bool {
			_, err := client.Patch(ctx, tx.GetName(), types.MergePatchType, []byte(anotherField), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil && strings.Contains(err.Error(), specPolicy)
		}, settle, poll, "the policy is enforced again")
	})
}

// anotherField is an update of the spec that no policy but transaction-spec refuses.
const anotherField = `{"spec":{"retryLimit":3}}`

func TestSpecUpdateIsRefused(t *testing.T) {
	in := install(t)
	namespace := testcluster.Namespace(t)
	awaitPolicies(t, in, namespace)
	client := in.dynamic.Resource(v1alpha1.Resource).Namespace(namespace)
	tx, err := client.Create(t.Context(), transaction("deployer"), metav1.CreateOptions{})
	require.NoError(t, err)
	updates := map[string]string{
		"another ServiceAccount":  `[{"op":"replace","path":"/spec/serviceAccountName","value":"powerful"}]`,
		"a value deep in content": `[{"op":"replace","path":"/spec/changes/0/content/data/colour","value":"red"}]`,
	}
	for title, patch := range updates {
		_, err := client.Patch(t.Context(), tx.GetName(), types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		require.True(t, apierrors.IsInvalid(err), "%s: got %v", title, err)
		require.ErrorContains(t, err, "spec is immutable but for suspend and cancel: create another Transaction instead")
		assert.NotContains(t, err.Error(), specPolicy, "the CRD refuses it before the policy is asked")
	}

	// The policy by itself, where the CRD has lost its rule.
	withoutRule(t, in)
	for title, patch := range updates {
		require.Eventually(t, func() bool {
			_, err := client.Patch(t.Context(), tx.GetName(), types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
			require.True(t, apierrors.IsInvalid(err), "%s: got %v", title, err)
			return strings.Contains(err.Error(), specPolicy)
		}, settle, poll, "%s is refused by the policy", title)
	}
	for _, allowed := range []string{`{"metadata":{"labels":{"team":"blue"}}}`, `{"spec":{"suspend":true}}`, `{"spec":{"cancel":"Rollback"}}`} {
		_, err = client.Patch(t.Context(), tx.GetName(), types.MergePatchType, []byte(allowed), metav1.PatchOptions{})
		require.NoError(t, err)
	}
}

// withoutRule takes the rules that the spec is immutable out of both versions of the CRD until
// the test ends.
func withoutRule(t *testing.T, in installation) {
	t.Helper()
	crds := in.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const name = "transactions.backup.janus.io"
	var removals []string
	for version := range 2 {
		root := fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema/", version)
		for _, path := range []string{"properties/spec/properties/serviceAccountName/x-kubernetes-validations", "properties/spec/x-kubernetes-validations", "x-kubernetes-validations"} {
			removals = append(removals, `{"op":"remove","path":"`+root+path+`"}`)
		}
	}
	patch := "[" + strings.Join(removals, ",") + "]"
	_, err := crds.Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		crd, err := runtime.Encode(unstructured.UnstructuredJSONScheme, in.find(t, "CustomResourceDefinition", name))
		require.NoError(t, err)
		force := true
		// The context of the test has ended by now.
		_, err = crds.Patch(context.Background(), name, types.ApplyPatchType, crd, metav1.PatchOptions{FieldManager: "deploy-test", Force: &force})
		require.NoError(t, err)
	})
}

func TestExpressionsHaveNoTypeErrors(t *testing.T) {
	in := install(t)
	for _, policy := range policies {
		name := "transaction-" + policy + ".backup.janus.io"
		require.Eventually(t, func() bool {
			policy, err := in.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
			if policy.Status.TypeChecking == nil || policy.Status.ObservedGeneration != policy.Generation {
				return false
			}
			assert.Empty(t, policy.Status.TypeChecking.ExpressionWarnings)
			return true
		}, settle, poll, "%s is type-checked", name)
	}
}

// awaitPolicies waits until the policy of identity is enforced, which is shown by a
// refusal of what they forbid and everything else allows.
func awaitPolicies(t *testing.T, in installation, namespace string) {
	t.Helper()
	user := "system:janus-test-probe"
	bind(t, in, namespace, "janus-editor", user)
	client := in.as(t, user).Resource(v1alpha1.Resource).Namespace(namespace)
	require.Eventually(t, func() bool {
		_, err := client.Create(t.Context(), transaction("probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), identityPolicy)
	}, settle, poll, "the policy is enforced")
}

// awaitCreator waits until a binding that lets the user create Transactions has
// reached the authorizer.
func awaitCreator(t *testing.T, in installation, namespace, user string) {
	t.Helper()
	who := authorizationv1.SubjectAccessReviewSpec{User: user}
	require.Eventually(t, func() bool {
		return allowed(t, in.client, who, grant{"backup.janus.io", "transactions", "", "create"}, namespace)
	}, settle, poll, "%s may create Transactions", user)
}

// transaction is valid but for the question who may name the ServiceAccount.
func transaction(account string) *unstructured.Unstructured {
	tx := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"serviceAccountName": account,
			"changes": []any{map[string]any{
				"type":    "Create",
				"target":  map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"},
				"content": map[string]any{"data": map[string]any{"colour": "blue"}},
			}},
		},
	}}
	tx.SetGroupVersionKind(v1alpha1.Kind)
	tx.SetGenerateName("tx-")
	return tx
}

// A field that the policy forgets could be changed where the CRD has lost its rules.
func TestThePolicyNamesEveryFieldThatStays(t *testing.T) {
	policy, err := os.ReadFile("policies/transaction-spec.yaml")
	require.NoError(t, err)
	for field := range reflect.TypeFor[v1alpha1.TransactionSpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		mutable := name == "suspend" || name == "cancel"
		assert.Equal(t, !mutable, regexp.MustCompile(`oldObject\.spec\.\??`+name+`\b`).Match(policy), "%s", name)
	}
}
