package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// rightsCases are changes of all types, of objects in one namespace, in several and in none. NS is
// the namespace of the test, GROUP an API group of its own.
var rightsCases = []struct{ name, before, serves, changes string }{
	{name: "Create", changes: `
  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Create, content: {data: {x: "1"}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Create, content: {data: {x: "1"}}}`},
	{name: "Patch", before: configMapsBefore, changes: `
  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {x: "2"}}}`},
	{name: "Update", before: configMapsBefore, changes: `
  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Update, content: {data: {x: "2"}}}`},
	{name: "Delete", before: configMapsBefore, changes: `
  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Delete}`},
	{name: "each", before: configMapsBefore + `
---
{apiVersion: v1, kind: Secret, metadata: {name: old}}`, changes: `
  - {target: {apiVersion: v1, kind: ConfigMap, name: new}, type: Create, content: {data: {x: "1"}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {x: "2"}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Update, content: {data: {x: "2"}}}
  - {target: {apiVersion: v1, kind: Secret, name: old}, type: Delete}`},
	{name: "workload", changes: `
  - target: {apiVersion: apps/v1, kind: Deployment, name: web}
    type: Create
    content: {spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: c}]}}}}`},
	{name: "cluster-scoped", changes: `
  - {target: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, name: NS}, type: Create, content: {value: 7}}`},
	{name: "several namespaces", before: `{apiVersion: v1, kind: Namespace, metadata: {name: NS-other}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS-other}, data: {x: "1"}}`, changes: `
  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Create, content: {data: {x: "1"}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: a, namespace: NS-other}, type: Patch, content: {data: {x: "2"}}}`},
	{name: "custom resource", serves: "GROUP/v1 Widget", before: `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
{apiVersion: GROUP/v1, kind: Widget, metadata: {name: old}, spec: {size: 1}}`, changes: `
  - {target: {apiVersion: GROUP/v1, kind: Widget, name: new}, type: Create, content: {spec: {size: 1}}}
  - {target: {apiVersion: GROUP/v1, kind: Widget, name: old}, type: Delete}`},
	{name: "role", changes: `
  - {target: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: r}, type: Create, content: {rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}}
  - target: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: r}
    type: Create
    content: {roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: ServiceAccount, name: default, namespace: NS}]}`},
}

const configMapsBefore = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {x: "1"}}`

// TestTheRightsThatArePrintedAreThoseThatAreNeeded makes, undoes and rolls back changes with what
// rbac prints, and plans them and their undo with every one of these rights less.
func TestTheRightsThatArePrintedAreThoseThatAreNeeded(t *testing.T) {
	for _, c := range rightsCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := &exact{Env: harness.New(t), t: t, needed: map[string]bool{}}
			policy := harness.FastPolicy
			policy.RevisionHistoryLimit = 10
			e.Start(harness.WithPolicy(policy))
			t.Cleanup(e.clean)
			for _, one := range strings.Split(c.before, "\n---\n") {
				e.apply(one)
				if c.serves != "" {
					e.Served(e.fill(c.serves))
				}
			}
			changes := "changes:" + e.fill(c.changes)

			printed := e.printed(changes)
			e.without(printed, "plan", changes)
			e.apply(printed)
			committed := e.Run("change", e.as(changes))
			require.Equal(t, api.PhaseCommitted, committed.Status.Phase, harness.Describe(committed))
			e.without(printed, "undo-plan", "undoOf: {name: change}")
			e.apply(printed)
			undone := e.Run("undo", e.as("undoOf: {name: change}"))
			require.Equal(t, api.PhaseCommitted, undone.Status.Phase, harness.Describe(undone))
			for right, needed := range e.needed {
				assert.True(t, needed, "%s is granted, and nothing was refused without it", right)
			}

			// A rollback, since the last of these never becomes ready.
			e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: never}}")
			changes += "\n  - {target: {apiVersion: v1, kind: ConfigMap, name: never}, type: Await, readyWhen: {expression: 'false', timeout: 1s}}"
			e.apply(e.printed(changes))
			back := e.Run("back", e.as(changes))
			require.Equal(t, api.PhaseRolledBack, back.Status.Phase, harness.Describe(back))
		})
	}
}

// exact is a namespace with a ServiceAccount that has what is printed for it.
type exact struct {
	*harness.Env
	t *testing.T
	// needed says of each right that was printed whether something was refused without it.
	needed map[string]bool
	marks  int
	made   []*unstructured.Unstructured
}

func (e *exact) fill(text string) string {
	return strings.NewReplacer("NS", e.Namespace, "GROUP", e.Namespace+".example.com").Replace(text)
}

// as has the ServiceAccount make changes.
func (e *exact) as(spec string) string { return "serviceAccountName: exact\n" + spec }

// apply applies objects. Rights count when it returns: each role has one that it did not have before.
func (e *exact) apply(stream string) {
	e.t.Helper()
	objects, err := harness.Decode(e.fill(stream))
	require.NoError(e.t, err)
	e.applyAll(objects)
}

func (e *exact) applyAll(objects []*unstructured.Unstructured) {
	e.t.Helper()
	e.marks++
	var texts []string
	for _, object := range objects {
		object = object.DeepCopy()
		if rules, found, _ := unstructured.NestedSlice(object.Object, "rules"); found {
			mark := map[string]any{"apiGroups": []any{"example.com"}, "resources": []any{"marks"}, "verbs": []any{fmt.Sprint("verb-", e.marks)}}
			require.NoError(e.t, unstructured.SetNestedSlice(object.Object, append([]any{mark}, rules...), "rules"))
		}
		text, err := object.MarshalJSON()
		require.NoError(e.t, err)
		texts = append(texts, string(text))
		e.made = append(e.made, object)
	}
	e.Apply(strings.Join(texts, "\n---\n"))
}

// clean deletes what is in no namespace, or in another one.
func (e *exact) clean() {
	for _, object := range e.made {
		if object.GetNamespace() == e.Namespace {
			continue
		}
		client, err := e.For(object.GroupVersionKind(), object.GetNamespace())
		require.NoError(e.t, err)
		if err := client.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			assert.NoError(e.t, err)
		}
	}
}

// printed is what rbac prints for a Transaction with a spec.
func (e *exact) printed(spec string) string {
	e.t.Helper()
	file := filepath.Join(e.t.TempDir(), "transaction.yaml")
	text := "apiVersion: backup.janus.io/v1alpha1\nkind: Transaction\nmetadata: {name: change}\nspec:\n  " + strings.ReplaceAll(e.as(spec), "\n", "\n  ")
	require.NoError(e.t, os.WriteFile(file, []byte(text), 0o600))
	var out, notes bytes.Buffer
	cmd := newRoot(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &notes})
	cmd.SetArgs([]string{"rbac", "-f", file, "--kubeconfig", testcluster.Shared(e.t).Kubeconfig, "-n", e.Namespace})
	require.NoError(e.t, cmd.ExecuteContext(e.t.Context()))
	return out.String()
}

// without plans changes with each verb of each rule less, and notes which of them were missed.
func (e *exact) without(printed, name, spec string) {
	e.t.Helper()
	objects, err := harness.Decode(printed)
	require.NoError(e.t, err)
	for at, object := range objects {
		rules, _, _ := unstructured.NestedSlice(object.Object, "rules")
		for n := range rules {
			rule, _ := rules[n].(map[string]any)
			verbs, _, err := unstructured.NestedStringSlice(rule, "verbs")
			require.NoError(e.t, err)
			for _, verb := range verbs {
				right := fmt.Sprintf("%s on %v %v", verb, rule["resources"], rule["resourceNames"])
				less := slices.Clone(objects)
				less[at] = withoutVerb(e.t, object, n, verb)
				e.applyAll(less)
				plan := e.Run(fmt.Sprint(name, "-", e.marks), e.as("dryRun: true\n"+spec))
				e.needed[right] = e.needed[right] || e.refused(plan, right)
			}
		}
	}
}

// withoutVerb is a role without a verb of a rule.
func withoutVerb(t *testing.T, role *unstructured.Unstructured, n int, verb string) *unstructured.Unstructured {
	t.Helper()
	less := role.DeepCopy()
	rules, _, _ := unstructured.NestedSlice(less.Object, "rules")
	rule, _ := rules[n].(map[string]any)
	verbs, _, _ := unstructured.NestedStringSlice(rule, "verbs")
	if verbs = slices.DeleteFunc(verbs, func(v string) bool { return v == verb }); len(verbs) == 0 {
		rules = slices.Delete(rules, n, n+1)
	} else {
		require.NoError(t, unstructured.SetNestedStringSlice(rule, verbs, "verbs"))
	}
	require.NoError(t, unstructured.SetNestedSlice(less.Object, rules, "rules"))
	return less
}

// refused reports whether something is wrong for lack of a right, or is warned of.
func (e *exact) refused(plan *api.Transaction, right string) bool {
	if plan.Status.Phase == api.PhasePlanned {
		return slices.ContainsFunc(plan.Status.Items, func(i api.Item) bool { return len(i.Warnings) > 0 })
	}
	_, reason, message := reasonOf(plan)
	// Who may not grant what a role has is refused by the API server as what is invalid is.
	assert.Contains(e.t, []string{errclass.AccessDenied, errclass.Rejected}, reason, "without %s: %s", right, message)
	return true
}

// TestTheRightsOfTheExamplesAreEnough compares the roles beside each example with what making,
// rolling back and undoing its changes needs.
func TestTheRightsOfTheExamplesAreEnough(t *testing.T) {
	e := harness.New(t)
	s := newSession(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
	s.flags.KubeConfig, s.flags.Namespace = &testcluster.Shared(t).Kubeconfig, &e.Namespace
	examples, err := filepath.Glob(filepath.Join(harness.Root(), "examples", "*"))
	require.NoError(t, err)
	recipes, err := filepath.Glob(filepath.Join(harness.Root(), "examples", "cookbook", "*"))
	require.NoError(t, err)
	compared := 0
	for _, dir := range append(examples, recipes...) {
		var rules []rbacv1.PolicyRule
		var changes []*api.Transaction
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		require.NoError(t, err)
		for _, file := range files {
			if filepath.Base(file) == "wrong.yaml" {
				continue // Its rights are one of the things that are wrong.
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			objects, err := harness.Decode(string(text))
			require.NoError(t, err)
			for _, object := range objects {
				switch {
				case strings.HasSuffix(object.GetKind(), "Role"):
					var role rbacv1.ClusterRole
					require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
					rules = append(rules, role.Rules...)
				case object.GetKind() == "Transaction":
					object.SetNamespace(e.Namespace)
					txn, err := typed(object)
					require.NoError(t, err)
					changes = append(changes, txn)
				}
			}
		}
		for _, txn := range changes {
			if len(rules) == 0 {
				continue // It uses the rights of another example.
			}
			v, err := s.surveyor(e.Namespace)
			require.NoError(t, err)
			needs, err := v.needs(t.Context(), txn, false)
			require.NoError(t, err)
			for one := range needs.all {
				assert.True(t, slices.ContainsFunc(rules, one.within), "%s: %s needs %s on %s %s", dir, txn.Name, one.verb, one.resource, one.name)
			}
			compared++
		}
	}
	assert.Greater(t, compared, 10)
}

// within reports whether a rule grants what is needed.
func (n need) within(rule rbacv1.PolicyRule) bool {
	has := func(list []string, word string) bool {
		return slices.Contains(list, word) || slices.Contains(list, "*")
	}
	return has(rule.Verbs, n.verb) && has(rule.APIGroups, n.resource.Group) && has(rule.Resources, n.resource.Resource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, n.name))
}
