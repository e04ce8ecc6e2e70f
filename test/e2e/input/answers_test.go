package input

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/test/harness"
)

// otherForms are objects whose fields the API server writes in another way than they are
// given, completes, or leaves out for having nothing in them.
const otherForms = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: quantities, creationTimestamp: null}, status: {}, spec: {replicas: 0, strategy: {}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}, creationTimestamp: null},
  spec: {serviceAccount: "", initContainers: [], containers: [{name: a, image: a, resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 0.5, memory: 1}}, env: [{name: A, value: ""}], ports: [{containerPort: 80}], livenessProbe: {httpGet: {port: 80}}}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: claims}, spec: {serviceName: a, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}},
  volumeClaimTemplates: [{metadata: {name: data, creationTimestamp: null}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}, status: {}}]}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {hostNetwork: false, tolerations: [{operator: Exists}], containers: [{name: a, image: a}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: cron}, spec: {schedule: "0 0 * * *", suspend: false, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {automountServiceAccountToken: false, containers: [{name: a, image: a, resources: {limits: {cpu: "1.0", memory: 1000Ki}}}], volumes: [{name: v, emptyDir: {}}, {name: w, emptyDir: {sizeLimit: 1024Mi}}, {name: c, configMap: {name: c, defaultMode: 420}}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: service}, spec: {clusterIP: "", ports: [{port: 80, targetPort: web}], selector: {a: b}}, status: {loadBalancer: {}}}
---
{apiVersion: v1, kind: Service, metadata: {name: headless}, spec: {clusterIP: None, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: secret}, data: {a: "Zm9v\n"}, stringData: {b: c}, type: ""}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: config, annotations: {}, labels: {}}, data: {a: 1000m, b: ""}, binaryData: {c: "Zm9v"}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1000Mi}}, storageClassName: ""}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: quota}, spec: {hard: {pods: 10, requests.cpu: 1000m}}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: limits}, spec: {limits: [{type: Container, max: {cpu: 2000m}, default: {cpu: "1"}}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: account}, imagePullSecrets: [], secrets: []}
---
{apiVersion: v1, kind: ReplicationController, metadata: {name: rc}, spec: {replicas: 1, selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: answers-of-the-api-server, labels: {a: b}}, spec: {}, status: {}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: answers-of-the-api-server}, spec: {capacity: {storage: 1024Mi}, accessModes: [ReadWriteOnce], hostPath: {path: /nowhere}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: hpa}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1000m}}}]}}
---
{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: hpa1}, spec: {maxReplicas: 3, targetCPUUtilizationPercentage: 50, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: pdb}, spec: {maxUnavailable: 50%, selector: {}}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: np}, spec: {podSelector: {}, ingress: [{ports: [{port: 80}]}], egress: [{}]}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: ingress, annotations: {kubernetes.io/ingress.class: a}}, spec: {rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: role}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: answers-of-the-api-server}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: []}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: binding}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: role}, subjects: [{kind: ServiceAccount, name: a, namespace: b}]}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: lease}, spec: {acquireTime: "2024-01-01T00:00:00.000000Z", renewTime: "2024-01-01T00:00:00.500000Z", leaseDurationSeconds: 15}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: slice}, addressType: IPv4, endpoints: [{addresses: [10.0.0.1], conditions: {}}], ports: [{port: 80}]}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: answers-of-the-api-server}, value: 10, globalDefault: false}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: answers-of-the-api-server}, provisioner: example.com/p, parameters: {}}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: answers-of-the-api-server}, handler: a, overhead: {podFixed: {cpu: 1000m}}}
---
{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, metadata: {name: answers-of-the-api-server}, spec: {type: Limited, limited: {nominalConcurrencyShares: 5, limitResponse: {type: Reject}}}}
---
{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: answers-of-the-api-server}, spec: {priorityLevelConfiguration: {name: exempt}, matchingPrecedence: 500}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: answers-of-the-api-server}, webhooks: [{name: a.example.com, clientConfig: {url: "https://a.example.com"}, admissionReviewVersions: [v1], sideEffects: None, rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [a]}]}]}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: answers.example.com, creationTimestamp: null}, status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}, spec: {group: example.com, preserveUnknownFields: false,
  names: {kind: Answer, plural: answers}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {a: {type: integer, maximum: 1.0, default: 1, nullable: false}, b: {x-kubernetes-preserve-unknown-fields: true}}}}}]}}
`

// What the API server writes in another way is what was asked for, and is not warned of.
func TestWhatTheAPIServerWritesInAnotherWayIsNoDifference(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	tried := answersAreAsAsked(t, e, "", otherForms)
	examples := os.DirFS("../../../examples")
	err := fs.WalkDir(examples, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(examples, path)
		require.NoError(t, err)
		tried += answersAreAsAsked(t, e, path, string(text))
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, tried, 60)
}

// answersAreAsAsked makes dry runs of the creation of objects, and compares their answers
// with what was asked for, with and without the schema of the kind. It counts them.
func answersAreAsAsked(t *testing.T, e *harness.Env, file, stream string) (tried int) {
	t.Helper()
	objects, err := harness.Decode(stream)
	if err != nil {
		return 0 // It is no manifest, such as the values of a chart.
	}
	for _, obj := range objects {
		if fieldmerge.Custom(obj.GroupVersionKind().GroupKind()) || obj.GetKind() == "" || obj.GetName() == "" {
			continue
		}
		client, err := e.For(obj.GroupVersionKind(), e.Namespace)
		require.NoError(t, err)
		obj.SetNamespace("")
		if !strings.HasSuffix(obj.GetName(), ".example.com") {
			obj.SetName(strings.ToLower(obj.GetName()))
		}
		made, err := client.Create(e.Context(), obj.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		require.NoError(t, err, "%s %s %s", file, obj.GetKind(), obj.GetName())
		asked := obj.DeepCopy().Object
		delete(asked, "stringData")
		for _, a := range fieldmerge.Answers(typed.ParseableType{}, asked, made.Object, true) {
			t.Errorf("%s: %s %s: %s is %v, asked for %v", file, obj.GetKind(), obj.GetName(), a.Path, a.Now, a.Before)
		}
		tried++
	}
	return tried
}
