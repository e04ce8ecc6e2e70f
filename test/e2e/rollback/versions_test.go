package rollback

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// dials is a kind in a group of its own, whose versions come and go.
type dials struct {
	*harness.Env
	t     *testing.T
	group string
}

// What the CRD says of the versions v1, which is stored, and v2.
const (
	onlyV1 = "[" + dialV1 + ", served: true}]"
	bothV1 = "[" + dialV1 + ", served: true}, " + dialV2 + "]"
	onlyV2 = "[" + dialV1 + ", served: false}, " + dialV2 + "]"

	dialV1 = "{name: v1, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}"
	dialV2 = "{name: v2, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}, served: true}"
)

func newDials(t *testing.T, versions string) dials {
	t.Helper()
	d := noDials(t)
	d.Apply("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: " + d.crd() + "}, spec: " + d.spec(versions) + "}")
	d.Served(d.group + "/v1 Dial") // and in discovery, which is later
	return d
}

// noDials is before there is a CRD.
func noDials(t *testing.T) dials {
	t.Helper()
	e := harness.New(t)
	e.ClusterWide()
	e.Refuse()
	d := dials{e, t, strings.ReplaceAll(e.Namespace, "-", "") + ".example.com"}
	t.Cleanup(func() {
		if err := d.crds().Delete(context.Background(), d.crd(), metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			assert.NoError(t, err)
		}
	})
	return d
}

func (d dials) crds() dynamic.ResourceInterface {
	return d.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

func (d dials) crd() string { return "dials." + d.group }

func (d dials) spec(versions string) string {
	return fmt.Sprintf("{group: %s, scope: Namespaced, names: {kind: Dial, plural: dials, singular: dial, listKind: DialList}, versions: %s}", d.group, versions)
}

// change is one of the CRD.
func (d dials) change(kind, versions string) string {
	return fmt.Sprintf("  - {target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: %s}, type: %s, content: {spec: %s}}\n",
		d.crd(), kind, d.spec(versions))
}

// dial is a change of the Dial named d.
func (d dials) dial(version, kind, spec string) string {
	return fmt.Sprintf("  - {target: {apiVersion: %s/%s, kind: Dial, name: d}, type: %s, content: {spec: %s}}\n", d.group, version, kind, spec)
}

// untilUnserved waits until a version is not served any more.
func (d dials) untilUnserved(version string) {
	d.t.Helper()
	dials := d.Dynamic.Resource(schema.GroupVersionResource{Group: d.group, Version: version, Resource: "dials"}).Namespace(d.Namespace)
	err := harness.Poll(d.t.Context(), func(ctx context.Context) (bool, error) {
		_, err := dials.List(ctx, metav1.ListOptions{Limit: 1})
		return err != nil, nil
	})
	require.NoError(d.t, err, "%s is still served", version)
}

func (d dials) live(version string) *unstructured.Unstructured {
	return d.Object(d.group + "/" + version + " Dial/d")
}

// Whatever a version shows, another shows as well.
func TestACreationIsRolledBackThoughItsVersionIsServedNoMore(t *testing.T) {
	t.Parallel()
	d := newDials(t, bothV1)
	d.Start(harness.WithChanges(func(c engine.Changes) engine.Changes {
		return intruder{c, func() {
			_, err := d.crds().Patch(t.Context(), d.crd(), types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`), metav1.PatchOptions{})
			require.NoError(t, err)
			d.untilUnserved("v1")
		}}
	}))

	txn := d.Run("txn", "changes:\n"+d.dial("v1", "Create", "{a: 1}")+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Nil(t, d.live("v2"), "it is still there by v2")
	d.NothingLeft("txn")
}

func TestAnObjectAndTheVersionsOfItsKindChangeTogether(t *testing.T) {
	t.Parallel()
	d := newDials(t, bothV1)
	d.Apply("{apiVersion: " + d.group + "/v1, kind: Dial, metadata: {name: d}, spec: {a: 1}}")
	d.Start()

	txn := d.Run("txn", "changes:\n"+d.dial("v1", "Patch", "{b: 1}")+d.change("Patch", onlyV2))

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	d.untilUnserved("v1")
	assert.Empty(t, harness.JanusManagers(d.live("v2")))
	d.NothingLeft("txn")
}

func TestAVersionThatAnEarlierChangeAddsServesALaterOne(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Update", "Patch"} {
		d := newDials(t, onlyV1)
		d.Start()

		txn := d.Run("first", "changes:\n"+d.change(kind, bothV1)+d.dial("v2", "Create", "{a: 1}")+fixture.RefusedAtCommit)

		assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
		assert.Nil(t, d.live("v1"))
		d.untilUnserved("v2")

		txn = d.Run("txn", "changes:\n"+d.change(kind, bothV1)+d.dial("v2", "Create", "{a: 1}"))

		assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		assert.NotNil(t, d.live("v1"))
		d.NothingLeft("txn")
	}
}

// What was served once is not for ever.
func TestAKindThatIsGoneActivatesNothing(t *testing.T) {
	t.Parallel()
	d := newDials(t, onlyV1)
	d.Start()
	change := func(name string) string {
		return fmt.Sprintf("changes:\n  - {activation: {apiVersion: %s/v1, kind: Dial}, target: {apiVersion: v1, kind: ConfigMap, name: %s}, type: Create, content: {data: {a: b}}}\n", d.group, name)
	}
	assert.Equal(t, api.ItemCommitted, d.Run("with", change("one")).Status.Items[0].State)
	require.NoError(t, d.crds().Delete(t.Context(), d.crd(), metav1.DeleteOptions{}))
	require.NoError(t, harness.Poll(t.Context(), func(context.Context) (bool, error) {
		groups, err := d.Kube.Discovery().ServerGroups()
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == d.group }), nil
	}))

	txn := d.Run("without", change("two"))

	assert.Equal(t, api.ItemSkipped, txn.Status.Items[0].State, harness.Describe(txn))
	assert.Nil(t, d.Object("ConfigMap/two"))
}

// Each time the kind is not served when the Transaction begins, and was before.
func TestADefinitionAndItsObjectAreMadeAndUndoneOverAndOver(t *testing.T) {
	t.Parallel()
	d := noDials(t)
	d.Start()
	both := "revisionHistoryLimit: 10\nchanges:\n" + d.change("Create", onlyV1) + d.dial("v1", "Create", "{a: 1}")
	undo := func(name string) string {
		return "{revisionHistoryLimit: 10, undoOf: {name: " + name + ", acceptLoss: true}}"
	}
	for _, txn := range []struct {
		name, spec string
		there      bool
	}{
		{"make", both, true}, {"undo", undo("make"), false}, {"redo", undo("undo"), true}, {"undo-redo", undo("redo"), false}, {"make-again", both, true},
	} {
		got := d.Run(txn.name, txn.spec)
		require.Equal(t, api.PhaseCommitted, got.Status.Phase, harness.Describe(got))
		assert.Equal(t, txn.there, d.live("v1") != nil, txn.name)
	}
}
