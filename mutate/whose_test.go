package mutate_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
)

// The tests of this file ask whose a value is that has reached the API server in another
// form than the one that is compared.

const scaler = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 4,
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]}}`

// A third value is never overwritten, however it was written.
func TestAThirdValueOfAnotherWriterIsKept(t *testing.T) {
	t.Parallel()
	secret := func(field, value string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: s}, " + field + ": {password: " + value + "}}"
	}
	encoded := func(value string) string { return base64.StdEncoding.EncodeToString([]byte(value)) }
	old := func(spec string) string {
		return "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, " + spec + "}}"
	}
	for name, c := range map[string]struct {
		before, change, theirs string
		manager                string
		path                   []string
	}{
		"by a field that is not shown, of who wrote it before": {
			secret("stringData", "a"), secret("stringData", "b"), secret("stringData", "c"), "kubectl", []string{"data", "password"}},
		"by a field that is not shown, of somebody new": {
			secret("data", encoded("a")), secret("data", encoded("b")), secret("stringData", "c"), "somebody", []string{"data", "password"}},
		"by an older version of the kind, in a field of the same name": {
			scaler, strings.Replace(scaler, "maxReplicas: 4", "maxReplicas: 8", 1), old("minReplicas: 2, maxReplicas: 10"), "somebody", []string{"spec", "maxReplicas"}},
		"by an older version of the kind, in a field of another name": {
			scaler, strings.Replace(scaler, "averageUtilization: 60", "averageUtilization: 70", 1), old("maxReplicas: 4, targetCPUUtilizationPercentage: 80"), "somebody", []string{"spec", "metrics"}},
		"as another quantity": {
			"{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {cpu: '1'}}}", "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {cpu: 2000m}}}",
			"{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {cpu: 3000m}}}", "somebody", []string{"spec", "hard", "cpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.create(c.before)
			i := e.prepare(0, api.Patch, c.change).done()
			e.apply(c.manager, c.theirs)
			now := value(t, i.now(), c.path...)
			require.NotEqual(t, value(t, i.record.Before, c.path...), now)
			err := patiently(i.undo)
			assert.Equal(t, now, value(t, i.now(), c.path...), "the value is theirs")
			if err == nil {
				assert.NotEmpty(t, i.report.Reclaimed)
				return
			}
			fails(t, err, errclass.Conflict, errclass.FieldConflict, "."+c.path[0])
		})
	}
}

// Anyone who wrote a Secret by a field that is not shown keeps that, and claims nothing by it.
func TestAValueThatWasWrittenByAFieldThatIsNotShownIsRolledBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create("{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: a}}")
	for n, kind := range writes {
		i := e.prepare(n, kind, "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: b}}").done()
		i.undone()
		i.restored()
		assert.Empty(t, i.report.Reclaimed)
	}
}

// What another client asserts by a field that is not shown is theirs, with our value too.
func TestTheSameValueByAFieldThatIsNotShownIsAClaim(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create("{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {password: YQ==}}")
	i := e.prepare(0, api.Patch, "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: b}}").done()
	e.apply("somebody", "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: b}}")
	fails(t, patiently(i.undo), errclass.Conflict, errclass.FieldConflict, ".data")
	assert.Equal(t, "Yg==", value(t, i.now(), "data", "password"))
}

const policy = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: np}
spec:
  podSelector: {matchLabels: {app: d}}
  policyTypes: [Ingress]
`

// A forced apply takes what differs by the defaults of the API server alone.
func TestWhatIsTakenWithoutAChangeOfValueIsGivenBack(t *testing.T) {
	t.Parallel()
	deployment := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {v: '1'}}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'example.com/web:1', env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], resources: {limits: {cpu: 1000m}}}]}}}}"
	for name, before := range map[string]string{
		"an atomic list with a default in an item":   policy + "  ingress: [{ports: [{port: 80}]}]\n",
		"an atomic object, and a quantity":           deployment,
		"an object that is left out for being empty": "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {v: '1'}}, data: {}}",
	} {
		for _, by := range []string{"kubectl", "kubectl-client-side-apply"} {
			t.Run(name+" of "+by, func(t *testing.T) {
				t.Parallel()
				e := newEnv(t)
				obj := parse(t, before)
				if by == "kubectl" {
					e.create(before)
				} else {
					_, err := e.resource(obj).Create(t.Context(), obj, metav1.CreateOptions{FieldManager: by})
					require.NoError(t, err)
					e.age(obj)
				}
				change := parse(t, before)
				change.SetLabels(map[string]string{"v": "2"})
				i := e.prepare(0, api.Patch, yamlOf(t, change)).done()
				i.undone()
				i.restored()

				// After a commit the old owner's next apply meets no conflict.
				i = e.prepare(1, api.Patch, yamlOf(t, change)).done()
				i.handedOver()
				if by == "kubectl" {
					assert.Equal(t, []string{"kubectl Apply"}, managers(i.now()))
				}
				_, err := e.resource(obj).Apply(t.Context(), obj.GetName(), change, metav1.ApplyOptions{FieldManager: "kubectl", Force: by != "kubectl"})
				require.NoError(t, err)
			})
		}
	}
}

func yamlOf(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	data, err := obj.MarshalJSON()
	require.NoError(t, err)
	return string(data)
}

// An applier drops a list item of which the change has altered a part, and which is there
// because of the change alone. Its next apply removes it, as it would have without.
func TestAnItemThatItsOwnerHasDroppedGoesWithItsNextApply(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	web := func(env string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'example.com/web:1', env: [" + env + "]}]}}}}"
	}
	e.create(web("{name: A, value: a}, {name: B, value: '1'}"))
	i := e.prepare(0, api.Patch, web("{name: B, value: '2'}")).done()
	_, err := e.resource(i.object).Apply(t.Context(), "web", parse(t, web("{name: A, value: a}")), metav1.ApplyOptions{FieldManager: "kubectl"})
	require.NoError(t, err)
	i.undone()
	_, err = e.resource(i.object).Apply(t.Context(), "web", parse(t, web("{name: A, value: a}")), metav1.ApplyOptions{FieldManager: "kubectl"})
	require.NoError(t, err)
	containers := value(t, i.now(), "spec", "template", "spec", "containers").([]any)
	assert.Equal(t, []any{map[string]any{"name": "A", "value": "a"}}, containers[0].(map[string]any)["env"])
}

// Who writes by another version of the kind gets back what the change took.
func TestWhatWasTakenFromAnOwnerByAnotherVersionIsGivenBack(t *testing.T) {
	t.Parallel()
	old := "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 4, targetCPUUtilizationPercentage: 60}}"
	for name, end := range map[string]func(*item){
		"committed":   func(i *item) { i.handedOver() },
		"rolled back": func(i *item) { i.undone() },
		"rolled back, and another client has annotated it meanwhile": func(i *item) {
			i.merge("annotator", i.object, `{"metadata":{"annotations":{"note":"x"}}}`)
			i.undone()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			obj := e.create(old)
			owned := entries(obj)
			i := e.prepare(0, api.Patch, strings.NewReplacer("maxReplicas: 4", "maxReplicas: 8", "averageUtilization: 60", "averageUtilization: 70").Replace(scaler)).done()
			end(i)
			now := entries(e.live(obj))
			require.NotEmpty(t, now)
			assert.Contains(t, now, owned[0])
			assert.NotContains(t, strings.Join(managers(e.live(obj)), " "), "janus")
			_, err := e.resource(obj).Apply(t.Context(), "web", parse(t, old), metav1.ApplyOptions{FieldManager: "kubectl"})
			require.NoError(t, err)
		})
	}
}

func TestTheManagerThatTheAPIServerInventsGoesWithARollback(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(settings)
	e.setManagedFields(obj, []metav1.ManagedFieldsEntry{{}})
	require.Empty(t, e.live(obj).GetManagedFields())
	i := e.prepare(0, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}").done()
	e.merge("someone", obj, `{"data":{"d":"x"}}`)
	i.undone()
	assert.Equal(t, []string{"someone Update"}, managers(i.now()))
	assert.Equal(t, "blue", value(t, i.now(), "data", "color"))
}

// What the API server and controllers write by themselves is no conflict.
func TestWhatTheControlPlaneWritesBecauseOfAChangeIsRolledBackWithIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	role := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " + e.namespace + "}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"
	obj := e.create(role)
	i := e.prepare(0, api.Update, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+e.namespace+"}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {none: such}}]}, rules: []}").done()
	e.apply("clusterrole-aggregation-controller", strings.Replace(role, "pods", "services", 1))
	i.undone()
	assert.NotContains(t, e.live(obj).Object, "aggregationRule")
	assert.Equal(t, value(t, i.record.Before, "rules"), value(t, i.now(), "rules"))
	assert.Equal(t, []string{"kubectl Apply"}, managers(i.now()))
	e.remove(obj)
}

const hook = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: N}, webhooks: [{name: check.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, rules: [{apiGroups: [none.example.com], apiVersions: [v9], operations: [CREATE], resources: [nothings]}], clientConfig: {service: {namespace: none, name: none}}}]}"

// Bundle is a certificate authority: the API server looks into it.
const injected = `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"}]`

func TestWhatIsInjectedMakesACreatedObjectNobodyElses(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	text := strings.Replace(hook, "N", e.namespace, 1)
	i := e.prepare(0, api.Create, text).done()
	e.edit(i.object, injected)
	i.undone()
	assert.Nil(t, i.now())

	i = e.prepare(1, api.Create, text).done()
	i.handedOver()
	e.edit(i.object, injected)
	undo := e.plan(0, api.Delete, text)
	_, _, _, err := undo.change.Invert(t.Context(), api.Delete, []mutate.Original{{Record: i.record, Marker: i.change.Names.Marker}}, i.now())
	require.NoError(t, err)
	e.remove(i.object)
}

const agent = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: 'example.com/a:1'}]}}}}"

func TestTheCountOfADaemonSetsTemplatesIsNobodys(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := parse(t, agent)
	_, err := e.resource(obj).Create(t.Context(), obj, metav1.CreateOptions{FieldManager: "kubectl-client-side-apply"})
	require.NoError(t, err)
	change := "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {template: {spec: {containers: [{name: a, image: 'example.com/a:2'}]}}}}"
	i := e.prepare(0, api.Patch, change)
	fields, err := i.change.Differences(t.Context(), i.record.Before, i.record.After)
	require.NoError(t, err)
	require.Len(t, fields, 1)
	assert.Contains(t, fields[0].Path, "image")
	i.done().undone()
	assert.Empty(t, i.report.Reclaimed)

	i = e.prepare(1, api.Patch, change).done()
	i.handedOver()
	e.merge("kubectl-rollout", obj, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`)
	undo := e.plan(0, api.Update, change)
	content, _, _, err := undo.change.Invert(t.Context(), api.Update, []mutate.Original{{Record: i.record}}, i.now())
	require.NoError(t, err)
	template := content["spec"].(map[string]any)["template"].(map[string]any)
	assert.Equal(t, "now", template["metadata"].(map[string]any)["annotations"].(map[string]any)["kubectl.kubernetes.io/restartedAt"])
}

func TestTheStatusOfAnAutoscalerInItsOldVersionIsNoDrift(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(scaler)
	i := e.prepare(0, api.Patch, "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {maxReplicas: 8}}")
	e.merge("kube-controller-manager", obj, `{"status":{"desiredReplicas":2,"currentReplicas":1,"conditions":[{"type":"ScalingLimited","status":"True","reason":"X","message":"x","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
	i.done()
	assert.EqualValues(t, 8, value(t, e.live(obj), "spec", "maxReplicas"))
	i.undone()
	assert.EqualValues(t, 4, value(t, e.live(obj), "spec", "maxReplicas"))
}

// To make again what is there already writes nothing.
func TestAChangeThatChangesNothingWritesNothing(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(policy + "  ingress: [{ports: [{port: 80}]}]\n")
	for _, kind := range writes {
		i := e.prepare(0, kind, policy+"  ingress: [{ports: [{port: 80}]}]\n")
		i.baseline.Idle = i.idle
		before := i.now()
		i.done().handedOver()
		assert.Equal(t, before, i.now(), kind)
		i.undone()
		assert.Equal(t, before, i.now(), kind)
	}
	i := e.prepare(0, api.Patch, policy+"  ingress: [{ports: [{port: 81}]}]\n")
	assert.False(t, i.idle)
	assert.False(t, i.done().made.Unchanged)
	i.undone()
	i = e.prepare(0, api.Delete, "{apiVersion: v1, kind: ConfigMap, metadata: {name: nowhere}}").done()
	assert.True(t, i.made.Unchanged)
	// Another client comes between: then it is as with any change.
	i = e.prepare(0, api.Patch, policy+"  ingress: [{ports: [{port: 80}]}]\n")
	require.True(t, i.idle)
	i.baseline.Idle = true
	e.edit(i.object, `[{"op":"replace","path":"/spec/ingress/0/ports/0/port","value":82}]`)
	fails(t, patiently(i.do), errclass.Conflict, errclass.Drifted, ".spec.ingress of somebody")
}

// Controllers write the status at any time, which is no reason to write the rest.
func TestAChangeThatChangesNothingWritesNothingThoughTheStatusMovesOn(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.widgets()
	const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}"
	e.create(widget)
	for n, kind := range writes {
		i := e.prepare(0, kind, widget)
		require.True(t, i.idle, kind)
		i.baseline.Idle = true
		e.merge("controller", i.object, fmt.Sprintf(`{"status":{"phase":"Ready%d"}}`, n), "status")
		before := i.now()
		i.wire.requests()
		i.done()
		i.sent("GET GET")
		assert.True(t, i.made.Unchanged, kind)
		i.handedOver()
		assert.Equal(t, before, i.now(), kind)
	}
}

// What a Create's content sets has no owner after the commit, but for the marks of Janus:
// an apply of the same file meets no conflict, though the API server has added defaults.
func TestTheFileOfACreatedObjectIsAppliedWithoutAConflict(t *testing.T) {
	t.Parallel()
	file := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: 'example.com/web:1', ports: [{containerPort: 80}, {containerPort: 81}], env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], resources: {limits: {cpu: 1000m}}}]}}}}"
	for manager, by := range map[string]string{"": "kubectl", "helm": "helm"} {
		t.Run("left to "+manager, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			i := e.plan(0, api.Create, file)
			i.owners.FieldManager = manager
			require.NoError(t, i.tryPrepare())
			i.done().handedOver()
			assert.False(t, owns(i.now(), mutate.DefaultManager, ".spec.replicas"))
			if manager == "" {
				_, err := e.resource(i.object).Apply(t.Context(), "web", parse(t, file), metav1.ApplyOptions{FieldManager: by})
				require.NoError(t, err)
			}
			_, err := e.resource(i.object).Apply(t.Context(), "web", parse(t, strings.Replace(file, ", {containerPort: 81}", "", 1)), metav1.ApplyOptions{FieldManager: by})
			require.NoError(t, err)
			container := value(t, i.now(), "spec", "template", "spec", "containers").([]any)[0].(map[string]any)
			assert.Len(t, container["ports"], 1, "what its owner names no more goes")
			assert.NotEmpty(t, i.now().GetAnnotations()[mutate.MarkerAnnotation])
		})
	}
}

func TestAnUpdateThatChangesNothingLeavesToTheControlPlaneWhatItWrites(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	part := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " + e.namespace + "-part, labels: {part-of: " + e.namespace + "}}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}"
	whole := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " + e.namespace + "}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {part-of: " + e.namespace + "}}]}, rules: RULES}"
	rules := func(resource string) string {
		return strings.Replace(whole, "RULES", "[{apiGroups: [''], resources: ["+resource+"], verbs: [get]}]", 1)
	}
	partly, obj := e.create(part), e.create(strings.Replace(whole, "RULES", "[]", 1))
	defer e.remove(partly)
	defer e.remove(obj)
	aggregated := func(resource string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(fmt.Sprint(e.live(obj).Object["rules"]), resource) }, time.Minute, 50*time.Millisecond)
	}
	aggregated("pods")
	i := e.prepare(0, api.Update, rules("pods"))
	require.True(t, i.idle)
	i.baseline.Idle = true
	e.edit(partly, `[{"op":"replace","path":"/rules/0/resources/0","value":"services"}]`)
	aggregated("services")
	i.done().handedOver()
	aggregated("services")
	// What a person writes is drift.
	i = e.prepare(0, api.Update, rules("services"))
	require.True(t, i.idle)
	i.baseline.Idle = true
	e.edit(i.object, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`)
	fails(t, patiently(i.do), errclass.Conflict, errclass.Drifted, ".metadata.labels")
}
