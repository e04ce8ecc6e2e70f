package input

// orderedAdmission are those of which admission is what refuses.
var orderedAdmission = []ordered{
	{
		name: "a Pod whose ServiceAccount is made first",
		changes: `
  - {name: account, type: Create, target: {apiVersion: v1, kind: ServiceAccount, name: worker}, content: {automountServiceAccountToken: false}}
  - {name: late, type: Create, target: ` + limitedPod + `}`,
		deferred: "item account changes ServiceAccount $NS/worker first, and may be the reason why it is refused now (Rejected)",
	},
	{
		name: "a Pod whose PriorityClass is made first",
		changes: `
  - {name: class, type: Create, target: {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, name: "high-$NS"}, content: {value: 7}}
  - {name: late, type: Create, target: {apiVersion: v1, kind: Pod, name: worker}, content: {spec: {priorityClassName: "high-$NS", containers: [{name: a, image: "registry.example/a:1"}]}}}`,
		deferred: "item class changes PriorityClass high-$NS first, and may be the reason why it is refused now (Rejected)",
	},
	{
		name: "a Pod whose RuntimeClass is made first",
		changes: `
  - {name: class, type: Create, target: {apiVersion: node.k8s.io/v1, kind: RuntimeClass, name: "run-$NS"}, content: {handler: run}}
  - {name: late, type: Create, target: {apiVersion: v1, kind: Pod, name: worker}, content: {spec: {runtimeClassName: "run-$NS", containers: [{name: a, image: "registry.example/a:1"}]}}}`,
		deferred: "item class changes RuntimeClass run-$NS first, and may be the reason why it is refused now (Rejected)",
	},
	{
		name:  "a privileged Pod in a Namespace whose label changes first",
		setup: "{apiVersion: v1, kind: Namespace, metadata: {name: $NS, labels: {pod-security.kubernetes.io/enforce: restricted}}}\n", same: []string{"Namespace/$NS"},
		changes: `
  - {name: label, type: Patch, target: {apiVersion: v1, kind: Namespace, name: $NS}, content: {metadata: {labels: {pod-security.kubernetes.io/enforce: privileged}}}}
  - {name: late, type: Create, target: {apiVersion: v1, kind: Pod, name: worker}, content: {spec: {containers: [{name: a, image: "registry.example/a:1", securityContext: {privileged: true}}]}}}`,
		deferred: "item label changes Namespace $NS first, and may be the reason why it is refused now (Rejected)",
	},
	{
		name: "what a webhook without a backend keeps from being made, and that is deleted first", setup: deadHook,
		same: []string{"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration/dead-$NS"},
		changes: `
  - {name: webhook, type: Delete, target: {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, name: "dead-$NS"}}
  - {name: late, type: Create, target: {apiVersion: v1, kind: ServiceAccount, name: late}, content: {automountServiceAccountToken: false}}`,
		deferred: "item webhook changes ValidatingWebhookConfiguration dead-$NS first, and may be the reason why it is refused now (WebhookUnavailable)",
	},
	{
		name: "what a policy refuses whose binding is deleted first", setup: noMapsPolicy,
		same: []string{"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding/nomaps-$NS"},
		changes: `
  - {name: policy, type: Delete, target: {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, name: "nomaps-$NS"}}
  - {name: late, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: guarded}, content: {data: {a: b}}}`,
		deferred: "item policy changes ValidatingAdmissionPolicyBinding nomaps-$NS first, and may be the reason why it is refused now (Invalid)",
	},
	{
		name: "what a limit of the Namespace refuses that is raised first",
		setup: `
apiVersion: v1
kind: LimitRange
metadata: {name: most}
spec: {limits: [{type: Container, max: {memory: 1Gi}}]}
`,
		same: []string{"LimitRange/most"},
		changes: `
  - {name: limit, type: Patch, target: {apiVersion: v1, kind: LimitRange, name: most}, content: {spec: {limits: [{type: Container, max: {memory: 4Gi}}]}}}
  - {name: late, type: Create, target: {apiVersion: v1, kind: Pod, name: worker}, content: {spec: {containers: [{name: a, image: "registry.example/a:1", resources: {limits: {memory: 2Gi}}}]}}}`,
		deferred: "item limit changes LimitRange $NS/most first, and may be the reason why it is refused now (Rejected)",
	},
	{
		name: "a node port that another Service gives up first",
		setup: `
apiVersion: v1
kind: Service
metadata: {name: old}
spec: {type: NodePort, ports: [{port: 80, nodePort: 31777}]}
`,
		changes: `
  - {name: old, type: Delete, acceptLoss: true, target: {apiVersion: v1, kind: Service, name: old}}
  - {name: late, type: Create, target: {apiVersion: v1, kind: Service, name: new}, content: {spec: {type: NodePort, ports: [{port: 80, nodePort: 31777}]}}}`,
		deferred: "item old changes Service $NS/old first, and may be the reason why it is refused now (AlreadyAllocated)",
	},
	{
		name: "what every Namespace is given",
		changes: `
  - {name: home, type: Create, target: {apiVersion: v1, kind: Namespace, name: "$NS-new"}, content: {}, readyWhen: {expression: "objects.late != null"}}
  - {name: late, type: Patch, target: {apiVersion: v1, kind: ServiceAccount, name: default, namespace: "$NS-new"}, content: {automountServiceAccountToken: false}}`,
		deferred: "item home changes Namespace $NS-new first, and may be the reason why it is refused now (NotFound)",
	},
}
