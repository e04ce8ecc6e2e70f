package rollback

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// What another version of the kind does not show of an object that was written by v1: v1 is
// stored, and nothing is converted.
var hiddenFields = []struct {
	name, v1, v2, spec string
	// hidden is the field that is named; empty where v2 shows all of it.
	hidden string
	// owners is what is said of the owners of fields where v1 cannot show what v2 has
	// written: the API server then drops all of them.
	owners string
}{
	{"a field", "a: {type: integer}, b: {type: string}", "a: {type: integer}", "{a: 1, b: keep}", ".spec.b", ""},
	{"a field that nobody has set", "a: {type: integer}, b: {type: string}", "a: {type: integer}", "{a: 1}", "", ""},
	{"a default of that version", "a: {type: integer}, b: {type: string, default: x}", "a: {type: integer}", "{a: 1}", "", ""},
	{"a default of this version", "a: {type: integer}", "a: {type: integer}, b: {type: object, default: {}, properties: {c: {type: string, default: x}}}", "{a: 1}", "", "nobody owns them now"},
	{"a nested field", "a: {type: integer}, o: {type: object, properties: {x: {type: string}, w: {type: string}}}", "a: {type: integer}, o: {type: object, properties: {x: {type: string}}}",
		"{a: 1, o: {x: \"1\", w: \"2\"}}", ".spec.o.w", ""},
	{"a field of the items of a list", "a: {type: integer}, l: {type: array, items: {type: object, properties: {x: {type: string}, w: {type: string}}}}",
		"a: {type: integer}, l: {type: array, items: {type: object, properties: {x: {type: string}}}}", "{a: 1, l: [{x: \"1\", w: \"2\"}]}", ".spec.l[0].w", ""},
	{"a field of the items of a list with keys", "a: {type: integer}, l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [x], items: {type: object, required: [x], properties: {x: {type: string}, w: {type: string}}}}",
		"a: {type: integer}, l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [x], items: {type: object, required: [x], properties: {x: {type: string}}}}", "{a: 1, l: [{x: \"1\", w: \"2\"}]}", `.spec.l[x="1"].w`, ""},
	{"fields that no schema names", "a: {type: integer}, o: {type: object, x-kubernetes-preserve-unknown-fields: true}", "a: {type: integer}, o: {type: object}", "{a: 1, o: {any: thing}}", ".spec.o.any", ""},
	{"fields that both versions keep unnamed", "a: {type: integer}, o: {type: object, x-kubernetes-preserve-unknown-fields: true}", "a: {type: integer}, o: {type: object, x-kubernetes-preserve-unknown-fields: true}", "{a: 1, o: {any: thing}}", "", ""},
	{"the same schema", "a: {type: integer}", "a: {type: integer}", "{a: 1}", "", ""},
}

func TestWhatAVersionDoesNotShowIsNotLost(t *testing.T) {
	t.Parallel()
	for i, row := range hiddenFields {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.ClusterWide()
			group := fixture.DefineCups(t, e, fixture.CupVersion("v1", true, row.v1)+", "+fixture.CupVersion("v2", false, row.v2))
			e.Served(group + "/v2 Cup")
			e.Published(group + "/v1 Cup")
			e.Published(group + "/v2 Cup")
			e.Apply("{apiVersion: " + group + "/v1, kind: Cup, metadata: {name: cup, annotations: {note: a}}, spec: " + row.spec + "}")
			before := e.Object(group + "/v1 Cup/cup")
			e.Refuse()
			e.Start()
			for n, change := range []string{"Patch, content: {spec: {a: 9}}", "Delete", "Update, content: {spec: {a: 9}}"} {
				name := fmt.Sprintf("txn-%d-%d", i, n)
				txn := e.Run(name, "changes:\n  - {target: {apiVersion: "+group+"/v2, kind: Cup, name: cup}, type: "+change+"}"+fixture.RefusedAtCommit)
				if row.hidden == "" {
					require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
					if row.owners != "" {
						assert.Contains(t, txn.Status.Items[0].Message, row.owners)
						assert.Equal(t, before.Object["spec"], e.Object(group + "/v1 Cup/cup").Object["spec"])
						return
					}
					assert.Empty(t, txn.Status.Items[0].Message)
				} else {
					require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
					_, reason, message := harness.Condition(txn, api.ConditionReady)
					assert.Equal(t, errclass.Irreversible, reason)
					assert.Contains(t, message, row.hidden)
					assert.Contains(t, message, "write the change for the version "+group+"/v1")
				}
				e.Same(before, group+"/v1 Cup/cup")
			}
		})
	}
}

func TestTheVersionThatShowsAllTakesAChangeBack(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	group := fixture.DefineCups(t, e, fixture.CupVersion("v1", true, "a: {type: integer}, b: {type: string}")+", "+fixture.CupVersion("v2", false, "a: {type: integer}"))
	e.Served(group + "/v2 Cup")
	cup := "{apiVersion: " + group + "/v1, kind: Cup, metadata: {name: NAME}, spec: {a: 1, b: keep}}"
	e.Apply(strings.Replace(cup, "NAME", "p", 1) + "\n---\n" + strings.Replace(cup, "NAME", "q", 1))
	p, q := e.Object(group+"/v1 Cup/p"), e.Object(group+"/v1 Cup/q")
	e.Refuse()
	e.Start()
	changes := "changes:\n  - {name: p, target: {apiVersion: GV, kind: Cup, name: p}, type: Patch, content: {spec: {a: 9}}MORE}\n" +
		"  - {name: q, target: {apiVersion: GV, kind: Cup, name: q}, type: DeleteMORE}" + fixture.RefusedAtCommit

	txn := e.Run("by-v1", strings.NewReplacer("GV", group+"/v1", "MORE", "").Replace(changes))

	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(p, group+"/v1 Cup/p")
	e.Same(q, group+"/v1 Cup/q")

	txn = e.Run("by-v2", strings.NewReplacer("GV", group+"/v2", "MORE", ", acceptLoss: true").Replace(changes))

	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	for _, item := range txn.Status.Items[:2] {
		assert.Contains(t, strings.Join(item.Warnings, "\n"), ".spec.b", item.Name)
	}
}

// The kinds of Kubernetes have fields in one version that have another name in the next,
// and lose nothing.
func TestABuiltInKindLosesNothingInAnotherVersion(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: hpa}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, " +
		"behavior: {scaleDown: {stabilizationWindowSeconds: 7}}, metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}]}}")
	before := e.Object("autoscaling/v2 HorizontalPodAutoscaler/hpa")
	e.Refuse()
	e.Start()
	for n, change := range []string{"Patch, content: {spec: {maxReplicas: 5}}", "Delete"} {
		txn := e.Run(fmt.Sprintf("txn-%d", n), "changes:\n  - {target: {apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, name: hpa}, type: "+change+"}"+fixture.RefusedAtCommit)

		require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
		assert.Equal(t, before.Object["spec"], e.Object("autoscaling/v2 HorizontalPodAutoscaler/hpa").Object["spec"])
	}
}
