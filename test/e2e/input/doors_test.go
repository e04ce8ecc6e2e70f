package input

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// oneWay is a step that the API server lets anyone take. In its texts, $X is the name of
// the object.
type oneWay struct {
	name   string
	object string
	// content is that of the Patch, and back a merge patch that would undo it; the
	// API server refuses it, unless open is set.
	content, back string
	open          bool
	// why is in what Janus says.
	why string
}

const (
	podOf   = "{apiVersion: v1, kind: Pod, metadata: {name: $X}, spec: {automountServiceAccountToken: false, %s containers: [{name: a, image: \"registry.example/a:1\"}]}}"
	ready   = "{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}, {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 300}"
	anyPods = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
	jobOf   = "{apiVersion: batch/v1, kind: Job, metadata: {name: $X}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: \"registry.example/a:1\"}]}}}}"
	localPV = "{apiVersion: v1, kind: PersistentVolume, metadata: {name: $X}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: $X, csi: {driver: csi.example.com, volumeHandle: $X}}}"
)

func pod(fields string) string { return strings.Replace(podOf, "%s", fields, 1) }

// asJSON writes YAML as JSON.
func asJSON(text string) string {
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	return string(out)
}

func TestWhatTheAPIServerLetsNobodyUndoIsKnownBefore(t *testing.T) {
	t.Parallel()
	for _, row := range oneWays {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.run(t)
		})
	}
}

func (o oneWay) run(t *testing.T) {
	t.Helper()
	e := harness.New(t)
	e.ClusterWide()
	short := strings.ReplaceAll(e.Namespace, "-", "")
	make := func(name string) (dynamic.ResourceInterface, func(string) string, *unstructured.Unstructured) {
		fill := func(s string) string { return strings.ReplaceAll(s, "$X", name) }
		objects, err := harness.Decode(fill(o.object))
		require.NoError(t, err)
		client, err := e.For(objects[0].GroupVersionKind(), e.Namespace)
		require.NoError(t, err)
		e.Apply(fill(o.object))
		t.Cleanup(func() {
			// The context of the test has ended by now.
			assert.NoError(t, client.Delete(context.Background(), objects[0].GetName(), metav1.DeleteOptions{}))
		})
		obj, err := client.Get(t.Context(), objects[0].GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		return client, fill, obj
	}
	if o.back != "" {
		client, fill, obj := make(short + "a")
		_, err := client.Patch(t.Context(), obj.GetName(), types.MergePatchType, []byte(asJSON(fill(o.content))), metav1.PatchOptions{FieldManager: harness.Manager})
		require.NoError(t, err, "the API server lets it pass")
		_, err = client.Patch(t.Context(), obj.GetName(), types.MergePatchType, []byte(fill(o.back)), metav1.PatchOptions{FieldManager: harness.Manager})
		if o.open {
			require.NoError(t, err, "and back")
		} else {
			require.True(t, apierrors.IsInvalid(err), "and not back: %v", err)
		}
	}
	client, fill, before := make(short + "b")
	e.Start()
	target, err := json.Marshal(api.Target{APIVersion: before.GetAPIVersion(), Kind: before.GetKind(), Name: before.GetName()})
	require.NoError(t, err)
	change := "  - {name: step, type: Patch, target: " + string(target) + ", content: " + fill(o.content)
	after := "}\n  - {name: after, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: after}, content: {data: {a: b}}, readyWhen: {expression: \"has(object.data.go)\", timeout: 1s}}\n"

	txn := e.Run("shut", "changes:\n"+change+after)
	if o.open {
		assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
		return
	}
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.Irreversible, txn.Status.Items[0].Reason)
	assert.Contains(t, txn.Status.Items[0].Message, o.why)
	now, err := client.Get(t.Context(), before.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, before.Object["spec"], now.Object["spec"])

	txn = e.Run("last", "changes:\n"+change+"}\n")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, strings.Join(txn.Status.Items[0].Warnings, " "), o.why)
}
