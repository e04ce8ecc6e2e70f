package rollback

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// intruder creates an object as another client once the first change is in effect.
type intruder struct {
	engine.Changes
	intrude func()
}

func (i intruder) Do(ctx context.Context, in engine.Intent) error {
	err := i.Changes.Do(ctx, in)
	if err == nil && in.Index() == 0 {
		i.intrude()
	}
	return err
}

func TestANamespaceThatOthersHaveFilledIsKeptInRollback(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	e.Refuse()
	made := e.Namespace + "-made"
	t.Cleanup(func() { e.DeleteNamespace(made) })
	e.Start(harness.WithPolicy(unaided), harness.WithChanges(func(c engine.Changes) engine.Changes {
		return intruder{c, func() {
			e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: " + made + "}}")
		}}
	}))

	txn := e.Run("make-namespace", namespaceAndObject(made)+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	require.Equal(t, errclass.NotEmpty, txn.Status.Items[0].Reason, harness.Describe(txn))
	assert.Contains(t, txn.Status.Items[0].Message, "ConfigMap theirs")
	assert.Equal(t, api.ItemRolledBack, txn.Status.Items[1].State)
	assert.NotNil(t, e.Object("Namespace/"+made))
	e.NothingLeft("make-namespace")
}

func TestANamespaceAndItsObjectAreRolledBackTogether(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	e.Refuse()
	made := e.Namespace + "-made"
	e.Start()

	txn := e.Run("make-namespace", namespaceAndObject(made)+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Nil(t, e.Object("Namespace/"+made))
	e.NothingLeft("make-namespace")
}

func namespaceAndObject(name string) string {
	return strings.ReplaceAll(`
changes:
  - target: {apiVersion: v1, kind: Namespace, name: NAME}
    type: Create
    content: {}
  - target: {apiVersion: v1, kind: ConfigMap, name: ours, namespace: NAME}
    type: Create
    content: {data: {a: b}}
`, "NAME", name)
}

func TestACRDWhoseKindOthersUseIsKeptInRollback(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	e.Refuse()
	group := strings.ReplaceAll(e.Namespace, "-", "") + ".example.com"
	e.Start(harness.WithPolicy(unaided), harness.WithChanges(func(c engine.Changes) engine.Changes {
		return intruder{c, func() {
			// The API server takes a moment to serve a new kind.
			assert.NoError(t, harness.Poll(t.Context(), func(ctx context.Context) (bool, error) {
				return e.ApplyYAML(ctx, e.Namespace, "{apiVersion: "+group+"/v1, kind: Widget, metadata: {name: theirs}}") == nil, nil
			}))
		}}
	}))

	txn := e.Run("make-kind", strings.ReplaceAll(`
changes:
  - target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: widgets.GROUP}
    type: Create
    content:
      spec:
        group: GROUP
        scope: Namespaced
        names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
        versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
  - target: {apiVersion: GROUP/v1, kind: Widget, name: ours}
    type: Create
    content: {}
`, "GROUP", group)+fixture.RefusedAtCommit)

	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	require.Equal(t, errclass.NotEmpty, txn.Status.Items[0].Reason, harness.Describe(txn))
	assert.Contains(t, txn.Status.Items[0].Message, "Widget theirs")
	assert.NotNil(t, e.Object(group+"/v1 Widget/theirs"))
	assert.Nil(t, e.Object(group+"/v1 Widget/ours"))
	e.NothingLeft("make-kind")
}
