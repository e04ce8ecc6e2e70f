package input

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// The schema of the spec of a Gadget, and one that fits it.
const (
	anyGadget = "type: object, properties: {size: {type: integer}, kind: {type: string}, owner: {type: string}, note: {type: string}, list: {type: array, items: {type: object, properties: {name: {type: string}}}}, tags: {type: object, additionalProperties: {type: string}}}"
	oldGadget = "{apiVersion: $G/v1, kind: Gadget, metadata: {name: one}, spec: {size: 50, kind: old, note: a, list: [{name: a}, {name: LOUD}], tags: {a.b/c: LOUD}}}"
)

// A definition may have become stricter since an object was made. The API server keeps what is there as
// long as nobody touches it, and lets nobody write it again.
func TestAValueThatItsDefinitionHasOutgrownIsNotReplacedForGood(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stricter string
		change   string
		// why is in what Janus says; empty where the change can be rolled back.
		why string
	}{
		"a maximum":             {stricter: strings.Replace(anyGadget, "size: {type: integer}", "size: {type: integer, maximum: 10}", 1), change: "size: 5", why: "spec.size"},
		"an enumeration":        {stricter: strings.Replace(anyGadget, "kind: {type: string}", "kind: {type: string, enum: [new, newer]}", 1), change: "kind: new", why: "spec.kind"},
		"a required field":      {stricter: anyGadget + ", required: [owner]", change: "owner: ops", why: "spec.owner"},
		"a rule":                {stricter: anyGadget + ", x-kubernetes-validations: [{rule: self.size < 20, message: too large}]", change: "size: 5", why: "too large"},
		"a pattern in a list":   {stricter: strings.Replace(anyGadget, "name: {type: string}", "name: {type: string, pattern: \"^[a-z]*$\"}", 1), change: "list: [{name: a}, {name: b}]", why: "spec.list[1].name"},
		"a key with dots":       {stricter: strings.Replace(anyGadget, "additionalProperties: {type: string}", "additionalProperties: {type: string, pattern: \"^[a-z]*$\"}", 1), change: "tags: {a.b/c: quiet}", why: "a.b/c"},
		"a rule for creations":  {stricter: strings.Replace(anyGadget, "size: {type: integer}", "size: {type: integer, x-kubernetes-validations: [{rule: \"oldSelf.hasValue() || self < 20\", optionalOldSelf: true}]}", 1), change: "size: 5"},
		"another field changes": {stricter: strings.Replace(anyGadget, "size: {type: integer}", "size: {type: integer, maximum: 10}", 1), change: "note: b"},
		"it is looser":          {stricter: strings.Replace(anyGadget, "size: {type: integer}", "size: {type: integer, minimum: 1}", 1), change: "size: 5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, fill := outgrown(t, c.stricter)
			before := e.Object(fill("$G/v1 Gadget/one"))
			e.Start()
			step := fill("changes:\n  - {name: step, type: Patch, target: {apiVersion: $G/v1, kind: Gadget, name: one}, content: {spec: {" + c.change + "}}}\n")

			txn := e.Run("more", step+neverReady)
			now := e.Object(fill("$G/v1 Gadget/one"))
			assert.Equal(t, before.Object["spec"], now.Object["spec"])
			if c.why == "" {
				assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
				return
			}
			assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
			assert.Equal(t, errclass.Irreversible, txn.Status.Items[0].Reason)
			assert.Contains(t, txn.Status.Items[0].Message, c.why)
			assert.Equal(t, before.GetResourceVersion(), now.GetResourceVersion())

			txn = e.Run("last", step)
			assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			assert.Contains(t, strings.Join(txn.Status.Items[0].Warnings, " "), c.why)
		})
	}
}

// neverReady is a change that never becomes ready, so that what comes before it is rolled back.
const neverReady = "  - {name: after, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: after}, content: {data: {a: b}}, readyWhen: {expression: \"has(object.data.go)\", timeout: 1s}}\n"

// outgrown makes a Gadget and then changes its definition. It returns a function that fills the group into texts.
func outgrown(t *testing.T, stricter string) (*harness.Env, func(string) string) {
	t.Helper()
	e := harness.New(t)
	e.ClusterWide()
	group := strings.ReplaceAll(e.Namespace, "-", "") + ".example.com"
	tidy(t, e, map[string]string{"customresourcedefinitions.v1.apiextensions.k8s.io": "gadgets." + group})
	fill := func(s string) string { return strings.ReplaceAll(s, "$G", group) }
	definition := func(spec string) string {
		return fill("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.$G}, spec: {" + crdFields +
			", versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {" + spec + "}}}}}]}}\n")
	}
	applyAll(t, e, definition(anyGadget)+"---\n"+fill(oldGadget))
	e.Apply(definition(stricter))
	inForce(t, e, fill("$G/v1 Gadget/one"), stricter)
	return e, fill
}

// inForce waits until the API server goes by a changed definition, which refuses what the one before let pass.
func inForce(t *testing.T, e *harness.Env, ref, schema string) {
	t.Helper()
	one := e.Object(ref)
	client, err := e.For(one.GroupVersionKind(), e.Namespace)
	require.NoError(t, err)
	const refused = "size: {type: integer, minimum: 1}"
	require.NoError(t, harness.Poll(t.Context(), func(ctx context.Context) (bool, error) {
		spec, _, err := unstructured.NestedMap(one.Object, "spec")
		if err != nil {
			return false, err
		}
		if strings.Contains(schema, refused) {
			spec["size"] = int64(0)
		}
		try := &unstructured.Unstructured{Object: map[string]any{"apiVersion": one.GetAPIVersion(), "kind": one.GetKind(), "spec": spec}}
		try.SetName("asked")
		_, err = client.Create(ctx, try, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err), nil
	}))
}

// Where the same Transaction changes the definition, its rollback restores that too.
func TestWhatTheTransactionItselfOutgrowsIsRolledBack(t *testing.T) {
	t.Parallel()
	e, fill := outgrown(t, strings.Replace(anyGadget, "size: {type: integer}", "size: {type: integer, minimum: 1}", 1))
	before := e.Object(fill("$G/v1 Gadget/one"))
	e.Start()
	txn := e.Run("tighten", fill("changes:\n  - {name: kind, type: Patch, target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: gadgets.$G}, content: {spec: {versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {"+
		strings.Replace(anyGadget, "size: {type: integer}", "size: {type: integer, minimum: 1, maximum: 10}", 1)+"}}}}}]}}}\n"+
		"  - {name: step, type: Patch, when: \"true\", target: {apiVersion: $G/v1, kind: Gadget, name: one}, content: {spec: {size: 5}}}\n")+neverReady)
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, before.Object["spec"], e.Object(fill("$G/v1 Gadget/one")).Object["spec"])
}

// It takes two requests more to know, and one for an object that is younger than the definition.
func TestWhatItTakesToKnowWhatADefinitionHasOutgrown(t *testing.T) {
	t.Parallel()
	e, fill := outgrown(t, strings.Replace(anyGadget, "size: {type: integer}", "size: {type: integer, minimum: 1}", 1))
	e.Start()
	asked := func(name string) (definitions, creations int) {
		before := len(e.Audit())
		txn := e.Run("change-"+name, fill("changes:\n  - {name: step, type: Patch, target: {apiVersion: $G/v1, kind: Gadget, name: "+name+"}, content: {spec: {size: 5}}}\n"))
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		for _, r := range e.Audit()[before:] {
			if r.ImpersonatedUser != "system:serviceaccount:"+e.Namespace+":deployer" {
				continue
			}
			switch r.Verb + " " + r.Resource {
			case "get customresourcedefinitions":
				definitions++
			case "create gadgets":
				creations++
			}
		}
		return definitions, creations
	}
	definitions, creations := asked("one")
	assert.Equal(t, []int{1, 1}, []int{definitions, creations})
	time.Sleep(1100 * time.Millisecond) // Times are kept by the second.
	e.Apply(fill(strings.Replace(oldGadget, "name: one", "name: two", 1)))
	definitions, creations = asked("two")
	assert.Equal(t, []int{1, 0}, []int{definitions, creations})
}

// A class of attributes cannot be taken off a claim once its driver has applied it.
func TestAClassOfAttributesOfAClaimIsForGood(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	name := strings.ReplaceAll(e.Namespace, "-", "")
	tidy(t, e, map[string]string{"persistentvolumes.v1.": name})
	e.Apply(strings.ReplaceAll("{apiVersion: v1, kind: PersistentVolume, metadata: {name: $X}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: $X, csi: {driver: csi.example.com, volumeHandle: $X}}}", "$X", name))
	e.Apply(strings.ReplaceAll("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: $X, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}", "$X", name))
	phase := func() any {
		found, _, _ := unstructured.NestedString(e.Object("PersistentVolumeClaim/data").Object, "status", "phase")
		return found
	}
	e.Until("the claim is bound", func() bool { return phase() == "Bound" })
	e.Start()
	const step = "changes:\n  - {name: step, type: Patch, target: {apiVersion: v1, kind: PersistentVolumeClaim, name: data}, content: {spec: {volumeAttributesClassName: gold}}}\n"
	txn := e.Run("more", step+neverReady)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.Irreversible, txn.Status.Items[0].Reason)
	assert.Contains(t, txn.Status.Items[0].Message, ".spec.volumeAttributesClassName can be set once")
	txn = e.Run("last", step)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))

	claims := e.Kube.CoreV1().PersistentVolumeClaims(e.Namespace)
	_, err := claims.Patch(t.Context(), "data", types.MergePatchType, []byte(`{"status":{"currentVolumeAttributesClassName":"gold"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	_, err = claims.Patch(t.Context(), "data", types.MergePatchType, []byte(`{"spec":{"volumeAttributesClassName":null}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = claims.Patch(t.Context(), "data", types.MergePatchType, []byte(`{"spec":{"volumeAttributesClassName":"silver"}}`), metav1.PatchOptions{})
	require.NoError(t, err, "another is no door")
}
