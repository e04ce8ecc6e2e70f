package readiness

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// row is an object as the API server has it, what it is, and what kstatus would say.
type row struct{ name, object, want, kstatus string }

const (
	right = "ready"
	never = "failed"
	// broken is for what kstatus cannot read.
	broken = ""
)

var workloadRows = []row{
	{"a Deployment that its controller has not seen", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 0}, status: {}}`,
		"its controller has not seen the change yet (generation 1, observed 0)", "InProgress"},
	{"a Deployment that is changed, and not seen since", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}}`,
		"its controller has not seen the change yet (generation 2, observed 1)", "InProgress"},
	{"a Deployment of which not all Pods are updated", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 4, updatedReplicas: 2, readyReplicas: 3, availableReplicas: 3}}`,
		"2/3 Pods updated", "InProgress"},
	{"a Deployment of which one old Pod is left", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 4, updatedReplicas: 3, readyReplicas: 4, availableReplicas: 4}}`,
		"1 old Pod is left; 4/4 Pods ready", "InProgress"},
	{"a Deployment of which not all Pods are ready", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 1, availableReplicas: 1}}`,
		"1/3 Pods ready", "InProgress"},
	{"a Deployment whose Pods are not ready for long enough", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 2, minReadySeconds: 30}, status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2}}`,
		"0/2 Pods ready for 30 s", "InProgress"},
	{"a Deployment whose Pods a quota forbids", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: exceeded quota}]}}`,
		"0/1 Pods updated; FailedCreate: exceeded quota", "InProgress"},
	{"a Deployment beyond its progressDeadlineSeconds", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`,
		never, "Failed"},
	{"a Deployment that is paused in the middle", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1, paused: true}, status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused}]}}`,
		"0/1 Pods updated, and it is paused (spec.paused)", "InProgress"},
	{"a Deployment that is paused when all was done", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1, paused: true, progressDeadlineSeconds: 600}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}, {type: Progressing, status: Unknown, reason: DeploymentPaused}]}}`,
		right, "InProgress"},
	{"a Deployment without Pods", `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 0, progressDeadlineSeconds: 600}, status: {observedGeneration: 1, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}}`,
		right, "Current"},

	{"a StatefulSet without Pods that its controller has not seen", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 0}}`,
		"its controller has not seen the change yet (generation 1, observed 0)", "Current"},
	{"a new StatefulSet with OnDelete", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, replicas: 1}}`,
		"0/2 Pods ready", "Current"},
	{"a StatefulSet with OnDelete of which no Pod is updated", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, currentReplicas: 2, currentRevision: a, updateRevision: b}}`,
		right, "Current"},
	{"a StatefulSet of which the Pods above the partition are updated", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 1, currentReplicas: 2, currentRevision: a, updateRevision: b}}`,
		right, "Current"},
	{"a StatefulSet of which they are not", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 1}}`,
		"1/2 Pods updated", "InProgress"},
	{"a StatefulSet whose Pods are not ready for long enough", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 1, minReadySeconds: 60, updateStrategy: {rollingUpdate: {partition: 0}}}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1, currentReplicas: 1}}`,
		"0/1 Pods ready for 60 s", "Current"},
	{"a StatefulSet that is being made smaller", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 2}}`,
		"1 surplus Pod is left", "InProgress"},

	{"a DaemonSet that its controller has not seen", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {desiredNumberScheduled: 0}}`,
		"its controller has not seen the change yet (generation 1, observed 0)", "InProgress"},
	{"a DaemonSet with OnDelete of which no Pod is updated", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, desiredNumberScheduled: 2, currentNumberScheduled: 2, numberReady: 2, numberAvailable: 2}}`,
		right, "InProgress"},
	{"a new DaemonSet with OnDelete", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, desiredNumberScheduled: 2, currentNumberScheduled: 2, numberReady: 1}}`,
		"1/2 Pods ready", "InProgress"},
	{"a DaemonSet of which one Pod is updated", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}, spec: {updateStrategy: {type: RollingUpdate}}, status: {observedGeneration: 2, desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1, numberReady: 2, numberAvailable: 2}}`,
		"1/2 Pods updated", "InProgress"},
	{"a DaemonSet that no Node is to have", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 0}}`,
		right, "Current"},

	{"a ReplicaSet of which a Pod is missing", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 1, availableReplicas: 1}}`,
		"1/2 Pods ready", "InProgress"},
	{"a ReplicationController of which all Pods are missing", `{apiVersion: v1, kind: ReplicationController, metadata: {generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 0}}`,
		"0/2 Pods ready", "Current"},
	{"a ReplicationController that its controller has not seen", `{apiVersion: v1, kind: ReplicationController, metadata: {generation: 1}, spec: {replicas: 2}, status: {replicas: 0}}`,
		"its controller has not seen the change yet (generation 1, observed 0)", "Current"},

	{"a Job that has not started", `{apiVersion: batch/v1, kind: Job}`, "it has not started", "InProgress"},
	{"a Job that has started", `{apiVersion: batch/v1, kind: Job, spec: {completions: 1}, status: {startTime: "2026-01-01T00:00:00Z", active: 1}}`, "0/1 Pods succeeded", "Current"},
	{"a Job that has no number of completions", `{apiVersion: batch/v1, kind: Job, spec: {parallelism: 3}, status: {startTime: "2026-01-01T00:00:00Z", active: 2, succeeded: 1}}`, "1 Pods succeeded, 2 at work", "Current"},
	{"a Job whose Pods have succeeded, and are not gone", `{apiVersion: batch/v1, kind: Job, spec: {completions: 1}, status: {startTime: "2026-01-01T00:00:00Z", succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}]}}`, "1/1 Pods succeeded", "Current"},
	{"a Job that has completed", `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: "True"}]}}`, right, "Current"},
	{"a Job that has failed", `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: "True", reason: DeadlineExceeded}]}}`, never, "Failed"},
	{"a Job that is suspended", `{apiVersion: batch/v1, kind: Job, spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True"}]}}`, "it is suspended (spec.suspend)", "InProgress"},
	{"a CronJob", `{apiVersion: batch/v1, kind: CronJob, metadata: {generation: 1}, status: {}}`, right, "Current"},
}

var podRows = []row{
	{"a Pod that is ready", `{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, right, "Current"},
	{"a Pod that has succeeded", `{apiVersion: v1, kind: Pod, spec: {restartPolicy: Never}, status: {phase: Succeeded}}`, right, "Current"},
	{"a Pod that has failed", `{apiVersion: v1, kind: Pod, spec: {restartPolicy: Never}, status: {phase: Failed, reason: Evicted}}`, never, "Current"},
	{"a Pod whose container crashes", `{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: PodScheduled, status: "True"}], containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, never, "Failed"},
	{"a Pod whose init container crashes", `{apiVersion: v1, kind: Pod, status: {phase: Pending, conditions: [{type: PodScheduled, status: "True"}], initContainerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, never, "InProgress"},
	{"a Pod whose image cannot be pulled", `{apiVersion: v1, kind: Pod, status: {phase: Pending, conditions: [{type: PodScheduled, status: "True"}], containerStatuses: [{name: a, state: {waiting: {reason: ImagePullBackOff}}}]}}`, "containers are not ready: a (ImagePullBackOff)", "InProgress"},
	{"a Pod for which there is no Node at present", `{apiVersion: v1, kind: Pod, metadata: {creationTimestamp: "2020-01-01T00:00:00Z"}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/2 nodes are available}]}}`, "it has no Node: Unschedulable: 0/2 nodes are available", "Failed"},
	{"a Pod that nobody has seen", `{apiVersion: v1, kind: Pod, status: {phase: Pending}}`, "it has no Node yet", "InProgress"},
	{"a Pod that runs and is not ready", `{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: "False"}], containerStatuses: [{name: a, state: {running: {}}}]}}`, "its containers are not ready", "InProgress"},
	{"a Job that has completed and is being deleted", `{apiVersion: batch/v1, kind: Job, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {conditions: [{type: Complete, status: "True"}]}}`, right, "Terminating"},
	{"a Job that has failed and is being deleted", `{apiVersion: batch/v1, kind: Job, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`, never, "Terminating"},
	{"a Job that is being deleted", `{apiVersion: batch/v1, kind: Job, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {active: 1}}`, never, "Terminating"},
	{"a Pod that is being deleted", `{apiVersion: v1, kind: Pod, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, never, "Terminating"},
}

var otherRows = []row{
	{"a Service", `{apiVersion: v1, kind: Service, spec: {type: ClusterIP, clusterIP: 10.0.0.1}}`, right, "Current"},
	{"a headless Service", `{apiVersion: v1, kind: Service, spec: {type: ClusterIP, clusterIP: None}}`, right, "Current"},
	{"a Service that is another name", `{apiVersion: v1, kind: Service, spec: {type: ExternalName, externalName: example.com}}`, right, "Current"},
	{"a load balancer without an address", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}, status: {loadBalancer: {}}}`, "its load balancer has no address yet", "Current"},
	{"a load balancer with an address", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`, right, "Current"},
	{"a load balancer that a person has given an address", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: 10.0.0.1, externalIPs: [1.2.3.4]}, status: {loadBalancer: {}}}`, right, "Current"},
	{"a Secret", `{apiVersion: v1, kind: Secret, type: Opaque}`, right, "Current"},
	{"a token that is not made yet", `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, data: {}}`, "its token is not made yet", "Current"},
	{"a token", `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, data: {token: eA==}}`, right, "Current"},
	{"a claim that waits for a volume", `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`,
		"it is not bound (phase Pending); where the StorageClass has volumeBindingMode WaitForFirstConsumer a Pod has to use it first, so there wait for the Pod instead", "InProgress"},
	{"a claim that is bound", `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 1Gi}}}, status: {phase: Bound, capacity: {storage: 1Gi}}}`, right, "Current"},
	{"a claim whose volume is gone", `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Lost}}`, never, "InProgress"},
	{"a claim that is being made larger", `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 2Gi}}}, status: {phase: Bound, capacity: {storage: 1Gi}}}`, "its volume is not resized yet", "Current"},
	{"a claim that is resized by the next Pod", `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 2Gi}}}, status: {phase: Bound, capacity: {storage: 1Gi}, conditions: [{type: FileSystemResizePending, status: "True"}]}}`, "its volume is resized when a Pod that uses it is started", "Current"},
	{"a claim that cannot be made larger", `{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 2Gi}}}, status: {phase: Bound, capacity: {storage: 1Gi}, allocatedResourceStatuses: {storage: ControllerResizeInfeasible}}}`, never, "Current"},
	{"a volume that no controller has seen", `{apiVersion: v1, kind: PersistentVolume, status: {phase: Pending}}`, "no claim can be bound to it yet (phase Pending)", "Current"},
	{"a volume that is free", `{apiVersion: v1, kind: PersistentVolume, status: {phase: Available}}`, right, "Current"},
	{"a volume that could not be recycled", `{apiVersion: v1, kind: PersistentVolume, status: {phase: Failed}}`, never, "Current"},
	{"a quota that is not in force", `{apiVersion: v1, kind: ResourceQuota, spec: {hard: {pods: "3"}}, status: {}}`, "the use of pods is not counted yet", "Current"},
	{"a quota that is being changed", `{apiVersion: v1, kind: ResourceQuota, spec: {hard: {pods: "4"}}, status: {hard: {pods: "3"}, used: {pods: "0"}}}`, "the use of pods is not counted yet", "Current"},
	{"a quota that is in force", `{apiVersion: v1, kind: ResourceQuota, spec: {hard: {cpu: 1000m}}, status: {hard: {cpu: "1"}, used: {cpu: "0"}}}`, right, "Current"},
	{"a Namespace", `{apiVersion: v1, kind: Namespace, status: {phase: Active}}`, right, "Current"},
	{"a Node that has said nothing", `{apiVersion: v1, kind: Node}`, "its condition Ready is not set yet", "Current"},
	{"a Node that is not ready", `{apiVersion: v1, kind: Node, status: {conditions: [{type: Ready, status: "False", reason: KubeletNotReady, message: no network}]}}`, "it is not ready: KubeletNotReady: no network", "InProgress"},
	{"a Node that is ready", `{apiVersion: v1, kind: Node, status: {conditions: [{type: Ready, status: "True"}]}}`, right, "Current"},
	{"a budget that no controller has seen", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 1}}`, "its controller has not seen the change yet (generation 1, observed 0)", "Current"},
	{"a budget that allows nothing at present", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: DisruptionAllowed, status: "False", reason: InsufficientPods}]}}`, right, "Current"},
	{"a budget that cannot be told", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: DisruptionAllowed, status: "False", reason: SyncFailed, message: no controller}]}}`, "what it allows cannot be told: SyncFailed: no controller", "Current"},
	{"an autoscaler that no controller has seen", `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {currentMetrics: null, desiredReplicas: 0}}`, "its controller has not looked at its target yet", "Current"},
	{"an autoscaler without metrics", `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "False", reason: FailedGetResourceMetric, message: no metrics}]}}`, "it cannot scale: FailedGetResourceMetric: no metrics", "Current"},
	{"an autoscaler of what has no Pods by intent", `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "False", reason: ScalingDisabled}]}}`, right, "Current"},
	{"an autoscaler that works", `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "True"}]}}`, right, "Current"},
	{"an autoscaler by its first version that no controller has seen", `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, status: {currentReplicas: 0, desiredReplicas: 0}}`, "its controller has not looked at its target yet", "Current"},
	{"an autoscaler by its first version without metrics", `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {annotations: {autoscaling.alpha.kubernetes.io/conditions: '[{"type":"AbleToScale","status":"True"},{"type":"ScalingActive","status":"False","reason":"FailedGetResourceMetric","message":"no metrics"}]'}}, status: {currentReplicas: 1, desiredReplicas: 0}}`, "it cannot scale: FailedGetResourceMetric: no metrics", "Current"},
	{"an autoscaler by its first version that works", `{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {annotations: {autoscaling.alpha.kubernetes.io/conditions: '[{"type":"AbleToScale","status":"True"},{"type":"ScalingActive","status":"True"}]'}}, status: {currentReplicas: 1, desiredReplicas: 1}}`, right, "Current"},
	{"an Ingress", `{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {}}}`, right, "Current"},
	{"a definition that is not established", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "False", reason: Installing}]}}`, "it is not established yet", "InProgress"},
	{"a definition whose names are taken", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: NamesAccepted, status: "False", reason: ListKindConflict}]}}`, never, "Failed"},
	{"a definition that is established", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`, right, "Current"},
	{"an APIService that is not reached", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, status: {conditions: [{type: Available, status: "False", reason: FailedDiscoveryCheck, message: no answer}]}}`, "it is not available: FailedDiscoveryCheck: no answer", "Current"},
	{"an APIService that nobody has looked at", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService}`, "its condition Available is not set yet", "Current"},
	{"an APIService that is reached", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, status: {conditions: [{type: Available, status: "True"}]}}`, right, "Current"},
	{"a request for a certificate", `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, status: {}}`, "nobody has approved it yet", "Current"},
	{"a request that is approved", `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, status: {conditions: [{type: Approved, status: "True"}]}}`, "approved, and its signer has not signed it yet", "Current"},
	{"a request that is denied", `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, status: {conditions: [{type: Denied, status: "True"}]}}`, never, "Current"},
	{"a request with its certificate", `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, status: {certificate: eA==, conditions: [{type: Approved, status: "True"}]}}`, right, "Current"},
	{"a FlowSchema without its priority level", `{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, status: {conditions: [{type: Dangling, status: "True", reason: NotFound}]}}`, "NotFound", "Current"},
	{"a FlowSchema", `{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, status: {conditions: [{type: Dangling, status: "False"}]}}`, right, "Current"},
	{"an admission policy that is not checked", `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {generation: 1}, status: {}}`, "its controller has not seen the change yet (generation 1, observed 0)", "Current"},
	{"a ConfigMap", `{apiVersion: v1, kind: ConfigMap}`, right, "Current"},
	{"a ClusterRole", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}`, right, "Current"},
	{"a priority level", `{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, status: {}}`, right, "Current"},
}

var customRows = []row{
	{"a custom resource without a status yet", `{apiVersion: x.io/v1, kind: A, metadata: {generation: 1}}`,
		"its controller has written no status yet; for a kind that never gets one, leave out readyWhen or give it an expression", "Current"},
	{"one that was created with an empty status", `{apiVersion: x.io/v1, kind: A, metadata: {generation: 1}, status: {}}`,
		"its controller has written no status yet; for a kind that never gets one, leave out readyWhen or give it an expression", "Current"},
	{"one with a status without conditions", `{apiVersion: x.io/v1, kind: A, metadata: {generation: 1}, status: {phase: Up}}`, right, "Current"},
	{"one whose definition says that nothing is observed", `{apiVersion: x.io/v1, kind: A, metadata: {generation: 1}, status: {observedGeneration: -1}}`,
		"its controller has not seen the change yet (generation 1, observed -1)", "InProgress"},
	{"one whose condition is about the generation before", `{apiVersion: x.io/v1, kind: A, metadata: {generation: 2}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`,
		"its controller has not seen the change yet (generation 2, condition Ready is of 1)", "Current"},
	{"one that failed before it was changed", `{apiVersion: x.io/v1, kind: A, metadata: {generation: 2}, status: {conditions: [{type: Stalled, status: "True", observedGeneration: 1}]}}`,
		"its controller has not seen the change yet (generation 2, condition Stalled is of 1)", "Failed"},
	{"one whose status is of now, with conditions that say an old generation", `{apiVersion: x.io/v1, kind: A, metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, right, "Current"},
	{"one that tells as text which generation was observed, before that is the latest", `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 2}, status: {observedGeneration: "1"}}`,
		"its controller has not seen the change yet (generation 2, observed 1)", broken},
	{"one that tells as text which generation was observed", `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 2}, status: {observedGeneration: "2"}}`, right, broken},
	{"one that has observed a hash", `{apiVersion: x.io/v1, kind: A, metadata: {generation: 2}, status: {observedGeneration: 5bd8c7f, conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`,
		"its controller has not seen the change yet (generation 2, condition Ready is of 1)", broken},
	{"one that is not ready", `{apiVersion: x.io/v1, kind: A, metadata: {generation: 1}, status: {conditions: [{type: Ready, status: "False", reason: Issuing, message: no certificate}]}}`, "InProgress: no certificate", "InProgress"},
	{"one that is ready", `{apiVersion: x.io/v1, kind: A, metadata: {generation: 1}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`, right, "Current"},
	{"one that is stalled", `{apiVersion: x.io/v1, kind: A, metadata: {generation: 1}, status: {conditions: [{type: Stalled, status: "True", message: no such chart}]}}`, never, "Failed"},
}

// The second column says what kstatus would: where the two differ the kind is in the table
// of this package because of that.
func TestEachKindIsReadyWhenThePageSaysSo(t *testing.T) {
	for _, rows := range [][]row{workloadRows, podRows, otherRows, customRows} {
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				u := parse(t, r.object)
				got, err := Of(u, true, Wait{})
				require.NoError(t, err)
				switch r.want {
				case right:
					assert.True(t, got.Ready, "%+v", got)
				case never:
					assert.True(t, got.Failed && !got.Ready, "%+v", got)
				default:
					assert.Equal(t, State{Message: r.want}, got)
				}
				theirs, err := status.Compute(u)
				if r.kstatus == broken {
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				assert.Equal(t, r.kstatus, string(theirs.Status), theirs.Message)
			})
		}
	}
}

// A kind without the subresource status has nobody who would write one.
func TestAKindWithoutAStatusIsReadyAtOnce(t *testing.T) {
	for _, object := range []string{`{apiVersion: x.io/v1, kind: A}`, `{apiVersion: x.io/v1, kind: A, metadata: {generation: 1}, status: {}}`} {
		got, err := Of(parse(t, object), false, Wait{})
		require.NoError(t, err)
		assert.True(t, got.Ready, "%s: %+v", object, got)
	}
}

// Whatever a status is, it is not taken for something that it is not, and nothing panics.
func TestAStatusOfTheWrongTypeIsNotReady(t *testing.T) {
	for gk := range rules {
		for _, broken := range []string{`[]`, `1`, `{conditions: {a: b}, phase: 1}`, `{conditions: [1, null, {type: 3}], containerStatuses: [7]}`} {
			u := parse(t, `{metadata: {generation: 1}, spec: {hard: {pods: "1"}, type: LoadBalancer}, type: kubernetes.io/service-account-token, status: `+broken+`}`)
			u.SetAPIVersion(gk.Group + "/v1")
			u.SetKind(gk.Kind)
			got, err := Of(u, true, Wait{})
			assert.True(t, err != nil || !got.Ready, "%s with %s: %+v", gk, broken, got)
		}
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.True(t, json.Valid(data))
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(withKind(t, data)))
	return u
}

// withKind lets an object without a kind be decoded.
func withKind(t *testing.T, data []byte) []byte {
	t.Helper()
	var fields map[string]any
	require.NoError(t, json.Unmarshal(data, &fields))
	if fields["kind"] == nil {
		fields["kind"] = "A"
	}
	out, err := json.Marshal(fields)
	require.NoError(t, err)
	return out
}

// The controller of a Deployment that is set back to an earlier template says for a moment that the
// rollout before has failed.
func TestAFailedRolloutBeforeTheChangeIsNotOneAfterIt(t *testing.T) {
	u := parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1, progressDeadlineSeconds: 60}, status: {observedGeneration: 2, replicas: 1,
 conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, lastUpdateTime: "2026-01-01T10:00:00Z"}]}}`)
	over := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		since, now time.Time
		failed     bool
	}{
		{over.Add(time.Minute), over.Add(61 * time.Second), false},
		{over.Add(time.Minute), over.Add(2 * time.Minute), true},
		{over.Add(500 * time.Millisecond), over.Add(time.Second), false},
		{over.Add(-time.Minute), over.Add(time.Second), true},
		{time.Time{}, time.Time{}, true},
	} {
		got, err := Of(u, true, Wait{c.since, c.now})
		require.NoError(t, err)
		assert.Equal(t, c.failed, got.Failed, "since %s, now %s: %+v", c.since, c.now, got)
	}
}
