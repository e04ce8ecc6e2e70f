package input

import "strings"

const (
	crdOf      = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: gadgets.$G}"
	crdFields  = "group: $G, scope: Namespaced, names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}"
	bySize     = "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}"
	byOwner    = "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, owner: {type: string}}}}}}"
	gadgets    = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.$G}, spec: {" + crdFields + ", versions: [{name: v1, served: true, storage: true, " + bySize + "}]}}\n"
	gadgetOne  = "---\n{apiVersion: $G/v1, kind: Gadget, metadata: {name: one}, spec: {size: 1}}\n"
	limitedPod = "{apiVersion: v1, kind: Pod, name: worker}, content: {spec: {serviceAccountName: worker, containers: [{name: a, image: \"registry.example/a:1\"}]}}"
	deadHook   = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: "dead-$NS"}
webhooks:
- name: dead.$NS.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NS}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [serviceaccounts]}]
  clientConfig: {service: {name: missing, namespace: $NS}}
`
	noMapsPolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: "nomaps-$NS"}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NS}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps], resourceNames: [guarded]}]
  validations: [{expression: "false", message: "no maps"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: "nomaps-$NS"}
spec: {policyName: "nomaps-$NS", validationActions: [Deny]}
`
)

// editor is a ServiceAccount that may do anything in the namespace, but may not grant.
const editor = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: editor}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{kind: ServiceAccount, name: editor, namespace: $NS}]
`

// orderedKinds are those of kinds and of rights.
var orderedKinds = []ordered{
	{
		name: "a field that the definition gets first", setup: gadgets,
		changes: `
  - {name: definition, type: Patch, target: ` + crdOf + `, content: {spec: {versions: [{name: v1, served: true, storage: true, ` + byOwner + `}]}}}
  - {name: late, type: Create, target: {apiVersion: $G/v1, kind: Gadget, name: two}, content: {spec: {owner: b}}}`,
		deferred: "item definition changes CustomResourceDefinition gadgets.$G first, and may be the reason why it is refused now (Invalid)",
	},
	{
		name: "a field of an object that is there", setup: gadgets + gadgetOne, same: []string{"$G/v1 Gadget/one"},
		changes: `
  - {name: definition, type: Patch, target: ` + crdOf + `, content: {spec: {versions: [{name: v1, served: true, storage: true, ` + byOwner + `}]}}}
  - {name: late, type: Patch, target: {apiVersion: $G/v1, kind: Gadget, name: one}, content: {spec: {owner: b}}}`,
		deferred: "item definition changes CustomResourceDefinition gadgets.$G first, and may be the reason why it is refused now (Invalid)",
	},
	{
		name: "a Patch by a version that the definition gets first", setup: gadgets + gadgetOne, same: []string{"$G/v1 Gadget/one"},
		changes: `
  - {name: definition, type: Patch, target: ` + crdOf + `, content: {spec: {versions: [{name: v1, served: true, storage: true, ` + bySize + `}, {name: v2, served: true, storage: false, ` + bySize + `}]}}}
  - {name: late, type: Patch, target: {apiVersion: $G/v2, kind: Gadget, name: one}, content: {spec: {size: 2}}}`,
		deferred: "item definition changes CustomResourceDefinition gadgets.$G first, and may be the reason why it is refused now (KindNotFound)",
	},
	{
		name: "a Create by such a version, where the content of the definition names versions alone", setup: gadgets,
		changes: `
  - {name: definition, type: Patch, target: ` + crdOf + `, content: {spec: {versions: [{name: v1, served: true, storage: true, ` + bySize + `}, {name: v2, served: true, storage: false, ` + bySize + `}]}}}
  - {name: late, type: Create, target: {apiVersion: $G/v2, kind: Gadget, name: two}, content: {spec: {size: 2}}}`,
		deferred: "an earlier change makes the kind or the namespace of Gadget $NS/two",
	},
	{
		name:  "a version that was not served",
		setup: strings.Replace(gadgets, "}]}}", "}, {name: v2, served: false, storage: false, "+bySize+"}]}}", 1) + gadgetOne,
		same:  []string{"$G/v1 Gadget/one"},
		changes: `
  - {name: definition, type: Patch, target: ` + crdOf + `, content: {spec: {versions: [{name: v1, served: true, storage: true, ` + bySize + `}, {name: v2, served: true, storage: false, ` + bySize + `}]}}}
  - {name: late, type: Update, target: {apiVersion: $G/v2, kind: Gadget, name: one}, content: {spec: {size: 2}}}`,
		deferred: "item definition changes CustomResourceDefinition gadgets.$G first, and may be the reason why it is refused now (KindNotFound)",
	},
	{
		name: "a binding to a role that is made first, by one who may not bind", setup: editor, as: "editor",
		changes: `
  - {name: role, type: Create, target: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: reader}, content: {rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}}
  - {name: late, type: Create, target: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: reader}, content: {roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}, subjects: [{kind: ServiceAccount, name: default, namespace: $NS}]}}`,
		deferred: "item role changes Role $NS/reader first, and may be the reason why it is refused now (NotFound)",
	},
	{
		name: "a binding to a role that grants less first, by one who may not bind", as: "editor",
		setup: editor + `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [batch.example.com], resources: [widgets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: escalates}
rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: escalates}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: escalates}
subjects: [{kind: ServiceAccount, name: editor, namespace: $NS}]
`,
		same: []string{"rbac.authorization.k8s.io/v1 Role/reader"},
		changes: `
  - {name: role, type: Update, target: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: reader}, content: {rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}}
  - {name: late, type: Create, target: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: reader}, content: {roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}, subjects: [{kind: ServiceAccount, name: default, namespace: $NS}]}}`,
		deferred: "item role changes Role $NS/reader first, and may be the reason why it is refused now (Rejected)",
	},
	{
		name: "a right that a binding gives the ServiceAccount first", as: "grower",
		setup: `
apiVersion: v1
kind: ServiceAccount
metadata: {name: grower}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: grower}
rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [get, create, delete, bind, escalate]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: grower}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: grower}
subjects: [{kind: ServiceAccount, name: grower, namespace: $NS}]
`,
		changes: `
  - {name: role, type: Create, target: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: maps}, content: {rules: [{apiGroups: [""], resources: [configmaps], verbs: ["*"]}]}}
  - {name: binding, type: Create, target: {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: maps}, content: {roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: maps}, subjects: [{kind: ServiceAccount, name: grower, namespace: $NS}]}}
  - {name: late, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: late}, content: {data: {a: b}}}`,
		deferred: "item binding changes RoleBinding $NS/maps first, and may be the reason why it is refused now (AccessDenied)",
	},
}
