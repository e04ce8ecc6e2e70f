package rollback

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// unaided is a policy without recoveries: what is rolled back is rolled back by the rollback
// itself.
var unaided = plan.Policy{SettleTime: 300 * time.Millisecond}

// refusedByNow holds a compensation up until what it needs is refused: a policy and a schema
// take a moment to be in force.
func refusedByNow(e *harness.Env, item int, probe string) harness.Option {
	return harness.Acting(harness.Around{Undo: func(_ string, i int) {
		if i == item {
			if state := e.Transaction("txn").Status.Items[i]; !state.SetAside {
				e.Until("the change is in force", func() bool { return tryApply(e, probe) != nil })
			}
		}
	}})
}

// tryApply applies what may be refused, as the test itself.
func tryApply(e *harness.Env, stream string) error {
	return e.ApplyYAML(e.Context(), e.Namespace, stream)
}

const limitsKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Limit, plural: limits, singular: limit, listKind: LimitList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

// groupOf is an API group of a test.
func groupOf(e *harness.Env) string {
	return strings.ReplaceAll(e.Namespace, "-", "") + ".example.com"
}

// defineLimits makes a kind that ends with the test.
func defineLimits(t *testing.T, e *harness.Env, group string) {
	t.Helper()
	e.Apply(strings.ReplaceAll(limitsKind, "GROUP", group))
	t.Cleanup(func() {
		definitions, err := e.For(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "")
		if assert.NoError(t, err) {
			assert.NoError(t, definitions.Delete(context.Background(), "limits."+group, metav1.DeleteOptions{}))
		}
	})
	e.Served(group + "/v1 Limit")
}

func TestAnObjectIsRolledBackAfterTheSchemaThatForbidsItsOldValue(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	e.Refuse()
	group := groupOf(e)
	defineLimits(t, e, group)
	e.Apply("{apiVersion: " + group + "/v1, kind: Limit, metadata: {name: big}, spec: {size: 50}}")
	object, kind := group+"/v1 Limit/big", "apiextensions.k8s.io/v1 CustomResourceDefinition/limits."+group
	before, definition := e.Object(object), e.Object(kind)
	e.Start(harness.WithPolicy(unaided), refusedByNow(e, 1, "{apiVersion: "+group+"/v1, kind: Limit, metadata: {name: probe}, spec: {size: 50}}"))

	txn := e.Run("txn", tightened(group)+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.False(t, txn.Status.Items[1].SetAside)
	assert.Empty(t, txn.Status.Items[1].Message)
	e.Same(before, object)
	assert.Equal(t, definition.Object["spec"], e.Object(kind).Object["spec"])
	e.NothingLeft("txn")
}

// tightened makes the schema of Limits stricter, and then corrects one.
func tightened(group string) string {
	return strings.ReplaceAll(`
changes:
  - name: definition
    target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: limits.GROUP}
    type: Patch
    content:
      spec:
        versions:
        - name: v1
          served: true
          storage: true
          schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 10}}}}}}
  - {name: big, target: {apiVersion: GROUP/v1, kind: Limit, name: big}, type: Patch, content: {spec: {size: 5}}}
`, "GROUP", group)
}

// What a policy that the Transaction has put into force refuses is rolled back after it,
// whichever code the refusal has.
func TestAnObjectIsRolledBackAfterThePolicyThatForbidsItsOldValue(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"Invalid", "Forbidden", "RequestEntityTooLarge"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.ClusterWide()
			e.Refuse()
			e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: sized}, data: {size: big}}")
			before := e.Object("ConfigMap/sized")
			e.Start(harness.WithPolicy(unaided), refusedByNow(e, 2, "{apiVersion: v1, kind: ConfigMap, metadata: {name: sized-probe}, data: {size: big}}"))

			txn := e.Run("txn", strings.NewReplacer("NS", e.Namespace, "REASON", reason).Replace(`
changes:
  - target: {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, name: NS-small}
    type: Create
    content:
      spec:
        failurePolicy: Fail
        matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]}
        matchConditions: [{name: named, expression: "request.name.startsWith('sized')"}]
        validations: [{expression: "object.data.size == 'small'", message: too big, reason: REASON}]
  - target: {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, name: NS-small}
    type: Create
    content:
      spec: {policyName: NS-small, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: sized}, type: Patch, content: {data: {size: small}}}
`)+fixture.RefusedAtCommit)

			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			e.Same(before, "ConfigMap/sized")
			e.NothingLeft("txn")
		})
	}
}

// What is missing when an object is made again is named, and is made first.
func TestABindingIsRolledBackAfterTheRoleThatItNeeds(t *testing.T) {
	t.Parallel()
	for what, order := range map[string][2]string{"the role was deleted first": {"Role", "RoleBinding"}, "the binding was deleted first": {"RoleBinding", "Role"}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			administrated(e)
			e.Apply(readerAndBinding)
			e.Refuse()
			role, binding := e.Object("rbac.authorization.k8s.io/v1 Role/reader"), e.Object("rbac.authorization.k8s.io/v1 RoleBinding/reader")
			e.Start(harness.WithPolicy(unaided))
			started := time.Now()

			txn := e.Run("txn", strings.NewReplacer("FIRST", order[0], "SECOND", order[1]).Replace(`
serviceAccountName: administrator
changes:
  - {target: {apiVersion: rbac.authorization.k8s.io/v1, kind: FIRST, name: reader}, type: Delete}
  - {target: {apiVersion: rbac.authorization.k8s.io/v1, kind: SECOND, name: reader}, type: Delete}
`)+fixture.RefusedAtCommit)

			assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			assert.Less(t, time.Since(started), 30*time.Second)
			e.Same(role, "rbac.authorization.k8s.io/v1 Role/reader")
			e.Same(binding, "rbac.authorization.k8s.io/v1 RoleBinding/reader")
			e.NothingLeft("txn")
		})
	}
}

// Of a role that nobody makes again the message tells, at once.
func TestABindingWhoseRoleIsGoneNamesIt(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	administrated(e)
	e.Apply(readerAndBinding)
	e.Refuse()
	e.Start(harness.WithPolicy(unaided), harness.Acting(harness.Around{Undo: func(string, int) {
		if err := e.Kube.RbacV1().Roles(e.Namespace).Delete(context.Background(), "reader", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			assert.NoError(t, err)
		}
	}}))
	started := time.Now()

	txn := e.Run("txn", `
serviceAccountName: administrator
changes:
  - {target: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: reader}, type: Delete}
`+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.NotFound, txn.Status.Items[0].Reason)
	assert.Contains(t, txn.Status.Items[0].Message, "Role reader, which it refers to, does not exist")
	assert.Less(t, time.Since(started), 20*time.Second)
	e.NothingLeft("txn")
}

const readerAndBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: default, namespace: default}]
`

// administrated makes a ServiceAccount with the rights that the owner of a namespace has.
func administrated(e *harness.Env) {
	e.Apply(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: administrator}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: administrator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{kind: ServiceAccount, name: administrator, namespace: ` + e.Namespace + `}]
`)
}

// A quota that the Transaction has made smaller is made larger again before an object that
// needs it is made again.
func TestADeletedObjectIsMadeAgainAfterTheQuotaThatLeavesNoRoomForIt(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	e.ApplyQuota("{apiVersion: v1, kind: ResourceQuota, metadata: {name: services}, spec: {hard: {services: 5}}}")
	e.Apply("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}")
	before := e.Object("Service/web")
	e.Start(harness.WithPolicy(unaided), refusedByNow(e, 1, "{apiVersion: v1, kind: Service, metadata: {name: probe}, spec: {ports: [{port: 80}]}}"))

	txn := e.Run("txn", `
changes:
  - {target: {apiVersion: v1, kind: ResourceQuota, name: services}, type: Patch, content: {spec: {hard: {services: "0"}}}}
  - {target: {apiVersion: v1, kind: Service, name: web}, type: Delete}
`+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(before, "Service/web")
	e.NothingLeft("txn")
}

// A webhook that the Transaction has made, and that nobody serves, is taken away before what
// it keeps from being made again; nobody waits for it until the timeout.
func TestADeletedObjectIsMadeAgainAfterTheWebhookThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for kind, resource := range map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			webhookDown(t, kind, resource)
		})
	}
}

func webhookDown(t *testing.T, kind, resource string) {
	t.Helper()
	e := harness.New(t)
	e.ClusterWide()
	e.Refuse()
	e.Apply("{apiVersion: v1, kind: " + kind + ", metadata: {name: guarded}, data: {a: Yg==}}")
	before := e.Object(kind + "/guarded")
	e.Start(harness.WithPolicy(unaided), refusedByNow(e, 1, "{apiVersion: v1, kind: "+kind+", metadata: {name: guarded-probe}}"))
	started := time.Now()

	txn := e.Run("txn", strings.NewReplacer("NS", e.Namespace, "KIND", kind, "RESOURCE", resource).Replace(`
changes:
  - target: {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, name: NS-guard}
    type: Create
    content:
      webhooks:
      - name: guard.example.com
        admissionReviewVersions: [v1]
        sideEffects: None
        failurePolicy: Fail
        timeoutSeconds: 1
        clientConfig: {url: "https://127.0.0.1:1/"}
        namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}
        rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [RESOURCE]}]
        matchConditions: [{name: named, expression: "request.name.startsWith('guarded')"}]
  - {target: {apiVersion: v1, kind: KIND, name: guarded}, type: Delete}
`)+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Less(t, time.Since(started), time.Minute)
	e.Same(before, kind+"/guarded")
	e.NothingLeft("txn")
}
