package input

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// ordered is a list of changes that kubectl can make one after the other, and of which the
// last is refused before the others are in effect.
type ordered struct {
	name string
	// setup is applied first. In it and in changes, $NS is the namespace, and $G a group.
	setup string
	// as is the ServiceAccount; deployer, which may do anything, if it is empty.
	as      string
	changes string
	// deferred is the plan of the last change.
	deferred string
	// same are the targets that are as before once all is rolled back.
	same []string
}

func TestWhatKubectlCanApplyInOrderATransactionCan(t *testing.T) {
	t.Parallel()
	for _, row := range slices.Concat(orderedKinds, orderedAdmission) {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.run(t)
		})
	}
}

func (o ordered) run(t *testing.T) {
	t.Helper()
	e := harness.New(t)
	e.ClusterWide()
	fill := func(s string) string {
		return strings.NewReplacer("$NS", e.Namespace, "$G", strings.ReplaceAll(e.Namespace, "-", "")+".example.com").Replace(s)
	}
	tidy(t, e, map[string]string{
		"customresourcedefinitions.v1.apiextensions.k8s.io":                 fill("gadgets.$G"),
		"priorityclasses.v1.scheduling.k8s.io":                              fill("high-$NS"),
		"runtimeclasses.v1.node.k8s.io":                                     fill("run-$NS"),
		"validatingwebhookconfigurations.v1.admissionregistration.k8s.io":   fill("dead-$NS"),
		"validatingadmissionpolicies.v1.admissionregistration.k8s.io":       fill("nomaps-$NS"),
		"validatingadmissionpolicybindings.v1.admissionregistration.k8s.io": fill("nomaps-$NS"),
		"namespaces.v1.": fill("$NS-new"),
	})
	if o.setup != "" {
		applyAll(t, e, fill(o.setup))
	}
	spec := "changes:" + fill(o.changes)
	if o.as != "" {
		spec = "serviceAccountName: " + o.as + "\n" + spec
	}
	if strings.Contains(o.setup, "AdmissionPolicy") {
		awaitPolicy(t, e)
	}
	before := map[string]*unstructured.Unstructured{}
	for _, ref := range o.same {
		before[fill(ref)] = e.Object(fill(ref))
	}
	e.Start()

	plan := e.Run("plan", "dryRun: true\n"+spec)
	assert.Equal(t, api.PhasePlanned, plan.Status.Phase, harness.Describe(plan))
	last := plan.Status.Items[len(plan.Status.Items)-1]
	if assert.NotNil(t, last.Plan) {
		assert.Equal(t, api.EffectDeferred, last.Plan.Effect)
		assert.Contains(t, last.Plan.Deferred, fill(o.deferred))
	}

	back := e.Run("back", spec+"\n  - {name: gate, type: Create, target: {apiVersion: v1, kind: Secret, name: gate}, content: {stringData: {a: b}}, readyWhen: {expression: \"has(object.data.go)\", timeout: 1s}}")
	assert.Equal(t, api.PhaseRolledBack, back.Status.Phase, harness.Describe(back))
	for ref, was := range before {
		e.Same(was, ref)
	}
	e.NothingLeft("back")

	txn := e.Run("up", spec)
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	e.NothingLeft("up")
}

// applyAll applies one object after the other, each kind when it is served, and deletes in
// the end what is in no namespace.
func applyAll(t *testing.T, e *harness.Env, stream string) {
	t.Helper()
	for _, part := range strings.Split(stream, "---\n") {
		objects, err := harness.Decode(part)
		require.NoError(t, err)
		for _, obj := range objects {
			if obj.GetKind() == "Gadget" {
				e.Served(obj.GetAPIVersion() + " Gadget")
			}
		}
		e.Apply(part)
	}
}

// tidy deletes what rows make in no namespace.
func tidy(t *testing.T, e *harness.Env, names map[string]string) {
	t.Helper()
	t.Cleanup(func() {
		for resource, name := range names {
			gvr, _ := schema.ParseResourceArg(resource)
			err := e.Dynamic.Resource(*gvr).Delete(context.Background(), name, metav1.DeleteOptions{})
			if !apierrors.IsNotFound(err) {
				assert.NoError(t, err)
			}
		}
	})
}

// awaitPolicy waits until the API server goes by a policy that forbids the ConfigMap guarded.
func awaitPolicy(t *testing.T, e *harness.Env) {
	t.Helper()
	guarded := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "guarded"}}
	require.NoError(t, harness.Poll(t.Context(), func(ctx context.Context) (bool, error) {
		_, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).Create(ctx, guarded, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err), nil
	}))
}
