package ownership

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// controlled is an object with a field that a controller writes, and a Patch of
// another field. $NS is the namespace.
type controlled struct {
	name, setup, ref, content string
	// ours is what the Patch writes, and theirs what the controller writes when it
	// moves for the n-th time.
	ours, theirs []string
	move         func(o outsider, ref string, n int)
}

const label = "{metadata: {labels: {colour: blue}}}"

// autoscaler is a real HorizontalPodAutoscaler. Without metrics it still raises the
// replicas to its least.
const autoscaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 20}
`

// raise lets the real autoscaler write the replicas.
func raise(o outsider, ref string, replicas int) {
	o.t.Helper()
	o.Merge("person", "autoscaling/v2 HorizontalPodAutoscaler/web", `{"spec":{"minReplicas":`+strconv.Itoa(replicas)+`}}`)
	o.Until("the autoscaler has moved", func() bool { return field(o.t, o.Object(ref), "spec", "replicas") == int64(replicas) })
}

var controllers = []controlled{
	{
		name: "the CA bundle of a webhook",
		setup: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: $NS}, webhooks: [{name: a.example.com, failurePolicy: Ignore, sideEffects: None, ` +
			`admissionReviewVersions: [v1], clientConfig: {url: 'https://127.0.0.1:1/'}, rules: [{apiGroups: [none.example.com], apiVersions: [v1], operations: [CREATE], resources: [none]}]}]}`,
		ref:     "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration/$NS",
		content: "{webhooks: [{name: a.example.com, timeoutSeconds: 3}]}",
		ours:    []string{"webhooks", "0", "timeoutSeconds"},
		theirs:  []string{"webhooks", "0", "clientConfig", "caBundle"},
		move: func(o outsider, ref string, n int) {
			bundle := []string{"Zmlyc3Q=", "c2Vjb25k"}[n-1]
			operation := `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"` + bundle + `"}]`
			newOutsider(o.t, o.Env, "ca-injector").patch(o.Object(ref), types.JSONPatchType, operation)
		},
	},
	{
		name:    "the rules of an aggregated ClusterRole",
		setup:   "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: $NS}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {into: $NS}}]}, rules: []}",
		ref:     "rbac.authorization.k8s.io/v1 ClusterRole/$NS",
		content: label,
		ours:    []string{"metadata", "labels", "colour"},
		theirs:  []string{"rules"},
		move: func(o outsider, ref string, n int) {
			part := o.make("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " + o.Namespace + "-" + strconv.Itoa(n) + ", labels: {into: " + o.Namespace + "}}, rules: [{apiGroups: [''], resources: [pods], verbs: [verb" + strconv.Itoa(n) + "]}]}")
			o.dropWhenDone(part)
			o.Until("the controller has collected the rules", func() bool {
				rules, _ := field(o.t, o.Object(ref), "rules").([]any)
				return len(rules) == n
			})
		},
	},
	{
		name:    "the replicas under an autoscaler",
		setup:   webApp + "---" + autoscaler,
		ref:     webRef,
		content: "{spec: {template: {spec: {containers: [{name: web, image: 'example.com/web:2'}]}}}}",
		ours:    []string{"spec", "template", "spec", "containers", "0", "image"},
		theirs:  []string{"spec", "replicas"},
		move:    func(o outsider, ref string, n int) { raise(o, ref, 2+n) },
	},
	{
		name:    "the status",
		setup:   "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: LoadBalancer, ports: [{name: web, port: 80}]}}",
		ref:     "Service/web",
		content: label,
		ours:    []string{"metadata", "labels", "colour"},
		theirs:  []string{"status", "loadBalancer"},
		move: func(o outsider, ref string, n int) {
			o.Merge("cloud", ref, `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.`+strconv.Itoa(n)+`"}]}}}`, "status")
		},
	},
	{
		name:    "the volume of a claim",
		setup:   "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: disk}, spec: {storageClassName: $NS, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
		ref:     "PersistentVolumeClaim/disk",
		content: label,
		ours:    []string{"metadata", "labels", "colour"},
		theirs:  []string{"metadata", "annotations"},
		move: func(o outsider, ref string, n int) {
			if n > 1 {
				o.Merge("provisioner", ref, `{"metadata":{"annotations":{"volume.kubernetes.io/selected-node":"n"}}}`)
				return
			}
			volume := o.make("{apiVersion: v1, kind: PersistentVolume, metadata: {name: " + o.Namespace + "}, spec: {storageClassName: " + o.Namespace + ", capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /none}}}")
			o.dropWhenDone(volume)
			o.Until("the claim is bound", func() bool { return field(o.t, o.Object(ref), "status", "phase") == "Bound" })
		},
	},
}

func TestK19WhatControllersWriteIsNotDriftAndIsNotTouched(t *testing.T) {
	t.Parallel()
	var names []string
	for _, row := range controllers {
		names = append(names, row.name)
	}
	harness.Together(t, harness.SideBySide, names, func(t *testing.T, i int) { controllers[i].run(t) })
}

func (c controlled) run(t *testing.T) {
	e := harness.New(t)
	e.ClusterWide()
	o := newOutsider(t, e, "controller")
	fill := func(s string) string { return strings.ReplaceAll(s, "$NS", e.Namespace) }
	ref := fill(c.ref)
	if strings.Contains(c.setup, autoscaler) {
		e.Autoscale()
	}
	e.Apply(fill(c.setup))
	o.dropWhenDone(e.Object(ref))
	moves, moved := 0, any(nil)
	move := func() {
		before := deep(e.Object(ref).Object, c.theirs...)
		moves++
		c.move(o, ref, moves)
		moved = deep(e.Object(ref).Object, c.theirs...)
		assert.NotEqual(t, before, moved, "it has not moved")
	}
	undoing := harness.Once(func(*api.Transaction) bool { return true }, move)
	e.Start(harness.Acting(harness.Around{
		Do: func(name string, item int) {
			switch {
			case name == "commits" && item == 0:
				move()
			case item == 1:
				e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: late}, data: {of: somebody else}}")
			}
		},
		Undo: func(string, int) { undoing(nil) },
	}))
	version, kindAndName, found := strings.Cut(ref, " ")
	if !found {
		version, kindAndName = "v1", ref
	}
	kind, name, _ := strings.Cut(kindAndName, "/")
	change := "changes:\n  - {target: {apiVersion: " + version + ", kind: " + kind + ", name: " + name + "}, type: Patch, content: " + fill(c.content) + "}"

	txn := e.Run("commits", change)

	committedAll(t, txn)
	require.Equal(t, 1, moves)
	assert.Equal(t, moved, deep(e.Object(ref).Object, c.theirs...), "after the commit")
	before := deep(e.Object(ref).Object, c.ours...)
	require.NotNil(t, before)

	txn = e.Run("rolled-back", strings.NewReplacer("blue", "red", "web:2", "web:3", "timeoutSeconds: 3", "timeoutSeconds: 4").Replace(change)+fixture.CreateLate)

	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	require.Equal(t, 2, moves)
	now := e.Object(ref)
	assert.Equal(t, moved, deep(now.Object, c.theirs...), "after the rollback")
	assert.Equal(t, before, deep(now.Object, c.ours...), "after the rollback")
	assert.NotContains(t, strings.Join(harness.JanusManagers(now), " "), "janus-")
}

// deep reads a value below maps and lists; nil if there is none.
func deep(value any, path ...string) any {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}
