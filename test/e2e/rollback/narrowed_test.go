package rollback

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

const (
	wideCup   = "a: {type: string}, b: {type: string}"
	narrowCup = "a: {type: string}, c: {type: string}"
)

// cupChange is a change of the Cup two, and narrowing one of its definition, which takes b out.
func cupChange(name, group, change string) string {
	return "  - {name: " + name + ", target: {apiVersion: " + group + "/v1, kind: Cup, name: two}, type: " + change + "}\n"
}

func narrowing(group string) string {
	return "  - {name: definition, target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: cups." + group + "}, type: Patch, " +
		"content: {spec: {versions: [" + fixture.CupVersion("v1", true, narrowCup) + "]}}}\n"
}

// cupTwo is a Cup that is written as its kind is wide.
func cupTwo(t *testing.T, e *harness.Env) (group string) {
	t.Helper()
	e.ClusterWide()
	group = fixture.DefineCups(t, e, fixture.CupVersion("v1", true, wideCup))
	e.Published(group + "/v1 Cup")
	e.Apply("{apiVersion: " + group + "/v1, kind: Cup, metadata: {name: two}, spec: {a: \"1\", b: keep}}")
	return group
}

func TestAFieldThatAnEarlierItemTakesOutOfItsKindIsNotLost(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		// before is a change of the object by an item before the definition; none if it is empty.
		before, change string
		// inTurn is set where the change is refused when its turn comes, and made where it is not.
		inTurn, made bool
	}{
		{name: "a Patch that is refused as the kind is", change: "Patch, content: {spec: {c: x}}"},
		{name: "a Patch that is not", change: "Patch, content: {spec: {a: \"2\"}}"},
		{name: "an Update", change: "Update, content: {spec: {a: \"2\"}}"},
		{name: "a Delete, which has it in its before-image", change: "Delete", made: true},
		{name: "a second change of the object", before: "Patch, content: {spec: {a: \"3\"}}", change: "Patch, content: {spec: {c: x}}", inTurn: true},
		{name: "a Delete after a change", before: "Patch, content: {spec: {a: \"3\"}}", change: "Delete", inTurn: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			group := cupTwo(t, e)
			before := e.Object(group + "/v1 Cup/two")
			e.Refuse()
			e.Start()
			changes := "changes:\n"
			if row.before != "" {
				changes += cupChange("first", group, row.before)
			}

			txn := e.Run("txn", changes+narrowing(group)+cupChange("late", group, row.change)+fixture.RefusedAtCommit)

			switch {
			case row.made:
				require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
				now := e.Object(group + "/v1 Cup/two")
				require.NotNil(t, now)
				assert.Equal(t, before.Object["spec"], now.Object["spec"])
				return
			case row.inTurn:
				require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
				assert.Equal(t, errclass.Irreversible, txn.Status.Items[2].Reason, harness.Describe(txn))
			default:
				require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
				_, reason, message := harness.Condition(txn, api.ConditionReady)
				assert.Equal(t, errclass.Irreversible, reason)
				assert.Contains(t, message, "item definition takes .spec.b out of the definition of its kind")
			}
			e.Same(before, group+"/v1 Cup/two")
		})
	}
}

// A definition that has lost a field by another hand has the API server drop it from the change, or
// from its rollback, which says so.
func TestARollbackSaysWhatAKindHasLostMeanwhile(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, first, reason string }{{"before the change", gated, errclass.Invalid}, {"after the change", "", errclass.Altered}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			group := cupTwo(t, e)
			narrow := func() {
				probe := "{apiVersion: " + group + "/v1, kind: Cup, metadata: {name: probe}, spec: {b: \"1\"}}"
				redefineCups(t, e, group, fixture.CupVersion("v1", true, narrowCup), probe, func(_ *unstructured.Unstructured, err error) bool { return err != nil })
			}
			e.Start()
			e.Submit("txn", "changes:\n"+row.first+cupChange("it", group, "Patch, content: {spec: {a: \"2\"}}")+strings.ReplaceAll(gated, "gate", "made"))
			if row.first != "" {
				e.Until("the gate is made", func() bool { return e.Object("ConfigMap/gate") != nil })
				narrow()
				e.Merge("person", "ConfigMap/gate", `{"data":{"go":"on"}}`)
			}
			e.Until("the change is made", func() bool { return e.Object("ConfigMap/made") != nil })
			if row.first == "" {
				narrow()
			}
			e.Merge("person", api.GroupVersion.String()+" Transaction/txn", `{"spec":{"cancel":"Rollback"}}`)

			txn := e.Ended("txn")

			require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
			item := txn.Status.Items[len(txn.Status.Items)-2]
			assert.Equal(t, api.ItemUnresolved, item.State)
			assert.Equal(t, row.reason, item.Reason)
			assert.Contains(t, item.Message, "spec.b")
		})
	}
}

// Where its loss is accepted, the field is put back all the same if the before-image has it.
func TestAFieldThatItsKindHasAgainIsPutBack(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	group := cupTwo(t, e)
	before := e.Object(group + "/v1 Cup/two")
	e.Refuse()
	e.Start()

	txn := e.Run("txn", "changes:\n"+narrowing(group)+cupChange("late", group, "Patch, acceptLoss: true, content: {spec: {a: \"2\"}}")+fixture.RefusedAtCommit)

	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(before, group+"/v1 Cup/two")
}

// A rollback goes backwards: the definition gets its field back right before the object is written.
func TestAnObjectIsRestoredAfterItsDefinition(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	group := cupTwo(t, e)
	before := e.Object(group + "/v1 Cup/two")
	e.Refuse()
	e.Start()

	txn := e.Run("txn", "changes:\n"+cupChange("first", group, "Patch, content: {spec: {a: \"2\"}}")+narrowing(group)+fixture.RefusedAtCommit)

	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(before, group+"/v1 Cup/two")
}
