package input

import "strings"

var oneWays = []oneWay{
	{
		name: "a ConfigMap becomes immutable", object: "{apiVersion: v1, kind: ConfigMap, metadata: {name: $X}, data: {a: b}}",
		content: "{immutable: true}", back: `{"immutable":null}`, why: "what is immutable stays so",
	},
	{
		name: "a Secret becomes immutable", object: "{apiVersion: v1, kind: Secret, metadata: {name: $X}, stringData: {a: b}}",
		content: "{immutable: true}", back: `{"immutable":null}`, why: "what is immutable stays so",
	},
	{
		name: "a toleration is added to a Pod", object: pod(""),
		content: "{spec: {tolerations: [" + ready + ", {key: a, operator: Exists}]}}", back: `{"spec":{"tolerations":` + asJSON("["+ready+"]") + `}}`, why: "a toleration can be added",
	},
	{
		name: "the seconds of a toleration of a Pod change", object: pod(""),
		content: "{spec: {tolerations: [" + strings.ReplaceAll(ready, "300", "200") + "]}}", back: `{"spec":{"tolerations":` + asJSON("["+ready+"]") + `}}`, open: true,
	},
	{
		name: "a Pod gets a deadline", object: pod(""),
		content: "{spec: {activeDeadlineSeconds: 3000}}", back: `{"spec":{"activeDeadlineSeconds":null}}`, why: "can be lowered",
	},
	{
		name: "the deadline of a Pod is lowered", object: pod("activeDeadlineSeconds: 3000,"),
		content: "{spec: {activeDeadlineSeconds: 2000}}", back: `{"spec":{"activeDeadlineSeconds":3000}}`, why: "can be lowered",
	},
	{
		name: "a gated Pod gets a node selector", object: pod("schedulingGates: [{name: example.com/a}],"),
		content: "{spec: {nodeSelector: {a: b}}}", back: `{"spec":{"nodeSelector":null}}`, why: "narrower",
	},
	{
		name: "the image of a Pod changes", object: pod(""),
		content: "{spec: {containers: [{name: a, image: \"registry.example/a:2\"}]}}", back: `{"spec":{"containers":[{"name":"a","image":"registry.example/a:1"}]}}`, open: true,
	},
	{
		name:    "a claim gets the name of a volume",
		object:  "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: $X}, spec: {storageClassName: none-such, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
		content: "{spec: {volumeName: none-such}}", back: `{"spec":{"volumeName":null}}`, why: ".spec.volumeName can be set once",
	},
	{
		name:    "a claim gets a class",
		object:  "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: $X}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
		content: "{spec: {storageClassName: $X}}", back: `{"spec":{"storageClassName":null}}`, why: ".spec.storageClassName can be set once",
	},
	{
		name: "a volume gets a class of attributes", object: localPV,
		content: "{spec: {volumeAttributesClassName: none-such}}", back: `{"spec":{"volumeAttributesClassName":null}}`, why: ".spec.volumeAttributesClassName can be set once",
	},
	{
		name: "a volume gets a node affinity", object: localPV,
		content: "{spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}", back: `{"spec":{"nodeAffinity":null}}`, why: ".spec.nodeAffinity can be set once",
	},
	{
		name: "a volume gets a Secret for its expansion", object: localPV,
		content: "{spec: {csi: {driver: csi.example.com, volumeHandle: $X, controllerExpandSecretRef: {name: a, namespace: b}}}}",
		back:    `{"spec":{"csi":{"controllerExpandSecretRef":null}}}`, why: ".spec.csi.controllerExpandSecretRef can be set once",
	},
	{
		name: "a Node gets a range of addresses", object: "{apiVersion: v1, kind: Node, metadata: {name: $X}}",
		content: "{spec: {podCIDR: 10.7.0.0/24, podCIDRs: [10.7.0.0/24]}}", back: `{"spec":{"podCIDR":null,"podCIDRs":null}}`, why: ".spec.podCIDR can be set once",
	},
	{
		name: "a Node gets the id of its provider", object: "{apiVersion: v1, kind: Node, metadata: {name: $X}}",
		content: "{spec: {providerID: a}}", back: `{"spec":{"providerID":null}}`, why: ".spec.providerID can be set once",
	},
	{
		name:    "a ServiceCIDR gets a second range",
		object:  "{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: $X}, spec: {cidrs: [10.97.0.0/24]}}",
		content: "{spec: {cidrs: [10.97.0.0/24, \"fd97::/64\"]}}", back: `{"spec":{"cidrs":["10.97.0.0/24"]}}`, why: "a range can be added",
	},
	{
		name: "a suspended Job gets another template and is begun", object: jobOf,
		content: "{spec: {suspend: false, template: {spec: {nodeSelector: {a: b}}}}}", back: `{"spec":{"suspend":true,"template":{"spec":{"nodeSelector":null}}}}`, why: "the template of a Job that runs",
	},
	{
		name: "a Job may run more Pods at once", object: jobOf,
		content: "{spec: {parallelism: 3}}", back: `{"spec":{"parallelism":1}}`, open: true,
	},
	{
		name: "a suspended Job is begun", object: jobOf,
		content: "{spec: {suspend: false}}", back: `{"spec":{"suspend":true}}`, open: true,
	},
	{
		name:    "a new version of a definition becomes the stored one",
		object:  "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: $Xs.doors.example.com}, spec: {group: doors.example.com, scope: Namespaced, names: {kind: K$X, plural: $Xs, singular: $X, listKind: K$XList}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: " + anyPods + "}}]}}",
		content: "{spec: {versions: [{name: v1, served: true, storage: false, schema: {openAPIV3Schema: " + anyPods + "}}, {name: v2, served: true, storage: true, schema: {openAPIV3Schema: " + anyPods + "}}]}}",
		back:    `{"spec":{"versions":` + asJSON("[{name: v1, served: true, storage: true, schema: {openAPIV3Schema: "+anyPods+"}}]") + `}}`, why: "version v2 becomes the stored one",
	},
	{
		name: "a StorageClass lets claims grow", object: "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: $X}, provisioner: x.example.com}",
		content: "{allowVolumeExpansion: true}", back: `{"allowVolumeExpansion":null}`, open: true,
	},
	{
		name: "a PriorityClass gets a description", object: "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: $X}, value: 5}",
		content: "{description: a}", back: `{"description":null}`, open: true,
	},
	{
		name: "a RuntimeClass gets an overhead", object: "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: $X}, handler: a}",
		content: "{overhead: {podFixed: {memory: 1Mi}}}", back: `{"overhead":null}`, open: true,
	},
	{
		name: "a CSIDriver changes how volumes are mounted", object: "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: $X}, spec: {attachRequired: false}}",
		content: "{spec: {podInfoOnMount: true, fsGroupPolicy: File}}", back: `{"spec":{"podInfoOnMount":false,"fsGroupPolicy":"ReadWriteOnceWithFSType"}}`, open: true,
	},
	{
		name: "a Service becomes one by name", object: "{apiVersion: v1, kind: Service, metadata: {name: $X}, spec: {type: ExternalName, externalName: a.example.com}}",
		content: "{spec: {type: ClusterIP, ports: [{port: 80}]}}", back: `{"spec":{"type":"ExternalName","ports":null,"clusterIP":null,"clusterIPs":null}}`, open: true,
	},
	{
		name: "a NetworkPolicy gets a type", object: "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: $X}, spec: {podSelector: {}}}",
		content: "{spec: {policyTypes: [Ingress, Egress]}}", back: `{"spec":{"policyTypes":["Ingress"]}}`, open: true,
	},
	{
		name: "an Ingress gets a class", object: "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: $X}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}",
		content: "{spec: {ingressClassName: a}}", back: `{"spec":{"ingressClassName":null}}`, open: true,
	},
	{
		name: "an IngressClass gets parameters", object: "{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: $X}, spec: {controller: example.com/a}}",
		content: "{spec: {parameters: {kind: A, name: a, scope: Cluster}}}", back: `{"spec":{"parameters":null}}`, open: true,
	},
}
