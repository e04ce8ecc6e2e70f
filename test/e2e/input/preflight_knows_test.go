package input

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

const settingsMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {v: \"1\"}}\n"

func TestATransactionDoesNotDeleteTheServiceAccountThatItActsAs(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(settingsMap)
	before, account := e.Object("ConfigMap/settings"), e.Object("ServiceAccount/deployer")
	e.Start()
	const patch = "changes:\n  - {name: first, type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: settings}, content: {data: {v: \"2\"}}}\n"
	const own = "  - {name: account, type: Delete, target: {apiVersion: v1, kind: ServiceAccount, name: deployer}"
	const after = "}\n  - {name: after, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: after}, content: {data: {a: b}}}\n"

	txn := e.Run("refused", patch+own+after)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.Irreversible, txn.Status.Items[1].Reason)
	assert.Contains(t, txn.Status.Items[1].Message, "the Transaction acts as it")
	e.Same(before, "ConfigMap/settings")
	e.Same(account, "ServiceAccount/deployer")
	e.NothingLeft("refused")

	txn = e.Run("last", patch+own+"}\n")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, strings.Join(txn.Status.Items[1].Warnings, " "), "the Transaction acts as it")
}

func TestWhoTakesAwayItsOwnRightsIsWarned(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	txn := e.Run("plan", `
dryRun: true
changes:
  - {name: binding, type: Delete, target: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: deployer}}
  - {name: other, type: Delete, target: {apiVersion: v1, kind: ConfigMap, name: other}}
`)
	assert.Equal(t, api.PhasePlanned, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, strings.Join(txn.Status.Items[0].Warnings, " "), "it gives the Transaction's own ServiceAccount its rights")
}

func TestARoleIsNotNarrowedByWhoMayNotGiveItsRulesBack(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(strings.ReplaceAll(editor, "$NS", e.Namespace) + `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: wide}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}, {apiGroups: [batch.example.com], resources: [widgets], verbs: [get]}]
`)
	before := e.Object("rbac.authorization.k8s.io/v1 Role/wide")
	e.Start()
	const narrow = "changes:\n  - {name: role, type: Patch, target: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: wide}, content: {rules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get]}]}}\n"
	const after = "  - {name: after, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: after}, content: {data: {a: b}}, readyWhen: {expression: \"has(object.data.go)\", timeout: 1s}}\n"

	txn := e.Run("editor", "serviceAccountName: editor\n"+narrow+after)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.Irreversible, txn.Status.Items[0].Reason)
	assert.Contains(t, txn.Status.Items[0].Message, "may not grant again")
	e.Same(before, "rbac.authorization.k8s.io/v1 Role/wide")

	txn = e.Run("deployer", narrow+after) // who may
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(before, "rbac.authorization.k8s.io/v1 Role/wide")
}

func TestATransitionRuleAboveAChangedFieldIsWarnedOf(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := strings.ReplaceAll(e.Namespace, "-", "") + ".example.com"
	tidy(t, e, map[string]string{"customresourcedefinitions.v1.apiextensions.k8s.io": "gadgets." + group})
	fill := func(s string) string { return strings.ReplaceAll(s, "$G", group) }
	applyAll(t, e, fill("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.$G}, spec: {"+crdFields+", versions: [{name: v1, served: true, storage: true, "+
		"schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {other: {type: string}, size: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, message: may only grow}]}}}}}}}]}}\n"+gadgetOne))
	e.Start()
	txn := e.Run("plan", fill(`
dryRun: true
changes:
  - {name: grows, type: Patch, target: {apiVersion: $G/v1, kind: Gadget, name: one}, content: {spec: {size: 2}}}
`))
	assert.Equal(t, api.PhasePlanned, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, strings.Join(txn.Status.Items[0].Warnings, " "), "a transition rule of its definition: .spec.size: may only grow (self >= oldSelf)")
	txn = e.Run("other", fill(`
dryRun: true
changes:
  - {name: other, type: Patch, target: {apiVersion: $G/v1, kind: Gadget, name: one}, content: {spec: {other: a}}}
`))
	assert.Empty(t, txn.Status.Items[0].Warnings)
}

// An object with a list named items at its top looks like a list of objects to the API
// server, which answers 500 whenever it would show it.
func TestAnObjectWithAListOfItemsIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := strings.ReplaceAll(e.Namespace, "-", "") + ".example.com"
	tidy(t, e, map[string]string{"customresourcedefinitions.v1.apiextensions.k8s.io": "gadgets." + group})
	fill := func(s string) string { return strings.ReplaceAll(s, "$G", group) }
	definition := "group: $G, scope: Namespaced, names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}, versions: [{name: v1, served: true, storage: true, " +
		"schema: {openAPIV3Schema: {type: object, properties: {items: {type: array, items: {type: string}}}}}}]"
	e.Start()

	txn := e.Run("made", fill("changes:\n  - {name: kind, type: Create, target: "+crdOf+", content: {spec: {"+definition+"}}}\n"+
		"  - {name: list, type: Create, target: {apiVersion: $G/v1, kind: Gadget, name: new}, content: {items: [a, b]}}\n"))
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.Invalid, txn.Status.Items[1].Reason)
	assert.Contains(t, txn.Status.Items[1].Message, "content.items is a list")
	e.NothingLeft("made")

	e.Apply(fill("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.$G}, spec: {" + definition + "}}"))
	e.Served(group + "/v1 Gadget")
	body := fill(`{"apiVersion":"$G/v1","kind":"Gadget","metadata":{"name":"old"},"items":["a"]}`)
	// It is made, and the answer is 500.
	err := e.Kube.Discovery().RESTClient().Post().AbsPath("/apis/" + group + "/v1/namespaces/" + e.Namespace + "/gadgets").Body([]byte(body)).Do(t.Context()).Error()
	require.ErrorContains(t, err, "is not a list")
	for _, kind := range []string{"type: Patch, content: {metadata: {labels: {a: b}}}", "type: Update, content: {}", "type: Delete"} {
		name := strings.ToLower(strings.TrimSuffix(strings.Fields(kind)[1], ","))
		txn = e.Run(name, fill("changes: [{target: {apiVersion: $G/v1, kind: Gadget, name: old}, "+kind+"}]"))
		assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
		assert.Equal(t, errclass.Invalid, txn.Status.Items[0].Reason)
		assert.Contains(t, txn.Status.Items[0].Message, "the API server cannot show it")
	}
}

func TestAnAggregatedAPIThatIsDownIsNoAbsentKind(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	group := strings.ReplaceAll(e.Namespace, "-", "") + ".missing.io"
	services := e.Dynamic.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	e.Apply("{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1beta1." + group + "}, spec: {group: " + group + ", version: v1beta1, " +
		"groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: missing, namespace: " + e.Namespace + "}}}")
	t.Cleanup(func() {
		err := services.Delete(context.Background(), "v1beta1."+group, metav1.DeleteOptions{})
		assert.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	})
	e.Start()
	e.Submit("waits", "changes:\n  - {name: optional, activation: {apiVersion: "+group+"/v1beta1, kind: Thing}, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: optional}, content: {data: {a: b}}}\n")
	e.Submit("absent", "changes:\n  - {name: thing, type: Create, target: {apiVersion: "+group+"/v1beta1, kind: Thing, name: a}, content: {spec: {}}}\n")
	for _, name := range []string{"waits", "absent"} {
		txn := e.Await(name, "waiting for the API", func(txn *api.Transaction) bool {
			_, reason, _ := harness.Condition(txn, api.ConditionReady)
			return reason == errclass.ServerUnavailable || txn.Status.Phase.Terminal()
		})
		_, reason, message := harness.Condition(txn, api.ConditionReady)
		assert.Equal(t, errclass.ServerUnavailable, reason, harness.Describe(txn))
		assert.Contains(t, message, "kubectl get apiservice v1beta1."+group)
	}
	require.NoError(t, services.Delete(t.Context(), "v1beta1."+group, metav1.DeleteOptions{}))
	txn := e.Ended("waits")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, api.ItemSkipped, txn.Status.Items[0].State)
	txn = e.Ended("absent")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.KindNotFound, txn.Status.Items[0].Reason)
}

// Some kinds are requests alone: nothing is kept of them that could be read, and what they have done
// stays done, as with the Pod of a Binding.
func TestARequestThatLeavesNoObjectIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	e.Apply("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {schedulerName: none, containers: [{name: a, image: x}]}}")
	e.Start()
	for name, change := range map[string]string{
		"binding": "{type: Create, target: {apiVersion: v1, kind: Binding, name: p}, content: {target: {apiVersion: v1, kind: Node, name: none}}}",
		"review":  "{type: Create, target: {apiVersion: authentication.k8s.io/v1, kind: TokenReview, name: a}, content: {spec: {token: a}}}",
		"await":   "{type: Await, target: {apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, name: a}, readyWhen: {expression: \"true\"}}",
	} {
		txn := e.Run(name, "changes:\n  - "+change+"\n")
		assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
		assert.Equal(t, errclass.Invalid, txn.Status.Items[0].Reason, name)
		assert.Contains(t, txn.Status.Items[0].Message, "no verb get, only create", name)
	}
	assert.NotContains(t, e.Object("v1 Pod/p").Object["spec"], "nodeName")
}
