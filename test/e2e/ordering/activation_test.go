package ordering

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// lamps writes changes of a CustomResourceDefinition of a group of its own, and of what it defines.
type lamps struct {
	*harness.Env
	group string
}

func newLamps(t *testing.T) lamps {
	t.Helper()
	e := harness.New(t)
	e.ClusterWide()
	l := lamps{e, strings.ReplaceAll(e.Namespace, "-", "") + ".lamps.io"}
	t.Cleanup(func() {
		for _, name := range []string{"lamps.", "others."} {
			err := e.Dynamic.Resource(definitions).Delete(context.Background(), name+l.group, metav1.DeleteOptions{})
			assert.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
		}
	})
	return l
}

func (l lamps) fill(text string) string {
	return strings.NewReplacer("$G", l.group, "$DEFINITION", "{group: "+l.group+", scope: Namespaced, names: {kind: Lamp, plural: lamps, singular: lamp, listKind: LampList}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}").Replace(text)
}

const (
	defining = "{name: definition, type: Create, target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: lamps.$G}, content: {spec: $DEFINITION}}"
	lamp     = "type: Create, target: {apiVersion: $G/v1, kind: Lamp, name: lamp}, content: {spec: {on: true}}"
	isThere  = "activation: {apiVersion: $G/v1, kind: Lamp}"
	someLamp = `activation: {expression: "kinds.exists(k, k.group == '$G' && k.kind == 'Lamp' && k.version == 'v1' && k.resource == 'lamps' && k.namespaced)"}`
)

// reasonsOf lists the reasons of all items.
func reasonsOf(txn *api.Transaction) []string {
	var out []string
	for _, item := range txn.Status.Items {
		out = append(out, item.Reason)
	}
	return out
}

// results lists what the conditions of an item were found to be.
func results(item api.Item) map[api.ConditionName]bool {
	out := map[api.ConditionName]bool{}
	for _, r := range item.Results {
		out[r.Condition] = r.Holds
	}
	return out
}

// A kind that an earlier change defines counts, by its name and by an expression, and whether there is
// an order of the list or a graph.
func TestAnActivationSeesWhatAnEarlierChangeInstalls(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]string{
		"list":  "changes:\n- " + defining + "\n- {name: lamp, " + isThere + ", " + lamp + "}\n- {name: note, " + someLamp + ", type: Create, target: {apiVersion: v1, kind: ConfigMap, name: note}, content: {data: {a: b}}}\n",
		"graph": "changes:\n- {name: note, dependsOn: [definition], " + someLamp + ", type: Create, target: {apiVersion: v1, kind: ConfigMap, name: note}, content: {data: {a: b}}}\n- " + defining + "\n- {name: lamp, " + isThere + ", " + lamp + "}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLamps(t)
			l.Start()
			spec := l.fill(spec)
			planned := l.Run("planned", "dryRun: true\n"+spec)
			require.Equal(t, api.PhasePlanned, planned.Status.Phase, harness.Describe(planned))
			for _, item := range planned.Status.Items {
				if item.Name == "definition" {
					continue
				}
				require.NotNil(t, item.Plan, item.Name)
				assert.Equal(t, api.EffectDeferred, item.Plan.Effect)
				assert.Equal(t, "its activation is decided when its turn comes: item definition may change what it asks for", item.Plan.Deferred)
				assert.Empty(t, item.Results, "it is not decided")
			}

			txn := l.Run("made", spec)
			require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			for _, item := range txn.Status.Items {
				assert.Equal(t, api.ItemCommitted, item.State, item.Name)
				if item.Name != "definition" {
					assert.Equal(t, map[api.ConditionName]bool{api.ConditionActivation: true}, results(item), item.Name)
				}
			}
			assert.NotNil(t, l.Object(l.group+"/v1 Lamp/lamp"))
			assert.NotNil(t, l.Object("ConfigMap/note"))
			l.NothingLeft("made")
		})
	}
}

// What an earlier change does not install after all, or removes, does not count; and what depends on a
// change that is not activated is skipped when that is known.
func TestAnActivationSeesWhatAnEarlierChangeLeavesOut(t *testing.T) {
	t.Parallel()
	l := newLamps(t)
	l.Start()
	unwanted := strings.Replace(defining, "name: definition", "name: definition, when: object != null", 1)
	txn := l.Run("without", l.fill("changes:\n- "+unwanted+"\n- {name: lamp, "+isThere+", "+lamp+"}\n"+
		"- {name: note, dependsOn: [lamp], type: Create, target: {apiVersion: v1, kind: ConfigMap, name: note}, content: {data: {a: b}}}\n"))
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, []string{"WhenFalse", "NotActivated", "DependencySkipped"}, reasonsOf(txn))
	assert.Equal(t, map[api.ConditionName]bool{api.ConditionActivation: false}, results(txn.Status.Items[1]))
	assert.Nil(t, l.Object("ConfigMap/note"))
	l.NothingLeft("without")

	l.Apply(l.fill("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: lamps.$G}, spec: $DEFINITION}"))
	l.Served(l.group + "/v1 Lamp")
	txn = l.Run("removed", l.fill("changes:\n- {name: definition, type: Delete, acceptLoss: true, target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: lamps.$G}}\n"+
		"- {name: note, "+isThere+", type: Create, target: {apiVersion: v1, kind: ConfigMap, name: note}, content: {data: {a: b}}}\n"+
		"- {name: other, "+someLamp+", type: Create, target: {apiVersion: v1, kind: ConfigMap, name: other}, content: {data: {a: b}}}\n"))
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, []string{"", "NotActivated", "NotActivated"}, reasonsOf(txn))
	assert.Contains(t, txn.Status.Items[1].Message, "ConfigMap "+l.Namespace+"/note is left as it is: the cluster serves no kind Lamp in "+l.group+"/v1")
	assert.Contains(t, txn.Status.Items[2].Message, "activation is false (kinds.exists(k, k.group == '"+l.group)
	l.NothingLeft("removed")
}

// A definition whose names are taken defines nothing, and is not waited for.
func TestADefinitionWhoseNamesAreTakenActivatesNothing(t *testing.T) {
	t.Parallel()
	l := newLamps(t)
	l.Start()
	l.Apply(l.fill("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: others.$G}, spec: {group: $G, scope: Namespaced, names: {kind: Lamp, plural: others, singular: lamp, listKind: LampList}, versions: [{name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}"))
	l.Served(l.group + "/v2 Lamp")
	txn := l.Run("taken", l.fill("changes:\n- "+defining+"\n- {name: note, "+isThere+", type: Create, target: {apiVersion: v1, kind: ConfigMap, name: note}, content: {data: {a: b}}}\n"))
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, []string{"", "NotActivated"}, reasonsOf(txn))
	l.NothingLeft("taken")
}

// An APIService counts once it is available, and one that a Transaction has deleted does not.
func TestAnActivationSeesAPIServices(t *testing.T) {
	t.Parallel()
	l := newLamps(t)
	l.Start()
	local := "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, name: v7.$G}"
	spec := l.fill("changes:\n- {name: api, type: Create, target: " + local + ", content: {spec: {group: $G, version: v7, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: missing, namespace: " + l.Namespace + "}}}}\n" +
		"- {name: note, activation: {apiVersion: $G/v7, kind: Lamp}, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: note}, content: {data: {a: b}}}\n")
	l.Submit("api", "timeout: 20s\n"+spec)
	txn := l.Await("api", "waiting for the API", func(txn *api.Transaction) bool {
		_, reason, _ := harness.Condition(txn, api.ConditionReconciling)
		return reason == errclass.NotInEffect || txn.Status.Phase.Terminal()
	})
	_, _, message := harness.Condition(txn, api.ConditionReconciling)
	assert.Contains(t, message, "APIService v7."+l.group+": it is not Available yet; until then the activation of item note is not decided")
	txn = l.Ended("api")
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, "it never answers: %s", harness.Describe(txn))
	l.NothingLeft("api")

	l.Apply(l.fill("{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v7.$G}, spec: {group: $G, version: v7, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: missing, namespace: " + l.Namespace + "}}}"))
	txn = l.Run("deleted", l.fill("changes:\n- {name: api, type: Delete, acceptLoss: true, target: "+local+"}\n"+
		"- {name: note, activation: {apiVersion: $G/v7, kind: Lamp}, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: note}, content: {data: {a: b}}}\n"))
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, []string{"", "NotActivated"}, reasonsOf(txn))
	l.NothingLeft("deleted")
}

// Where no earlier change has to do with it, it is decided before anything is done; and so it is for a
// target of a kind that nobody knows and no change defines.
func TestAnActivationIsDecidedAtTheBeginningWhereItCanBe(t *testing.T) {
	t.Parallel()
	l := newLamps(t)
	l.Start()
	txn := l.Run("beginning", "dryRun: true\n"+l.fill(`
changes:
- {name: has, activation: {expression: "kinds.exists(k, k.group == '' && k.version == 'v1' && k.kind == 'ConfigMap')"}, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: one}, content: {data: {a: b}}}
- {name: lacks, `+someLamp+`, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: two}, content: {data: {a: b}}}
- `+defining+`
- {name: unknown, activation: {apiVersion: $G/v9, kind: Torch}, type: Create, target: {apiVersion: $G/v9, kind: Torch, name: torch}, content: {a: b}}
- {name: after, activation: {apiVersion: v1, kind: ConfigMap}, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: three}, content: {data: {a: b}}}
`))
	require.Equal(t, api.PhasePlanned, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, []string{"", "NotActivated", "", "NotActivated", ""}, reasonsOf(txn))
	for i, want := range []any{true, false, nil, false, true} {
		if want == nil {
			assert.Empty(t, txn.Status.Items[i].Results)
			continue
		}
		assert.Equal(t, map[api.ConditionName]bool{api.ConditionActivation: want.(bool)}, results(txn.Status.Items[i]), txn.Status.Items[i].Name)
	}
}

func TestAnActivationThatCannotBeEvaluatedIsRefused(t *testing.T) {
	t.Parallel()
	l := newLamps(t)
	l.Start()
	const on = "type: Create, target: {apiVersion: v1, kind: ConfigMap, name: a}, content: {data: {a: b}}"
	for activation, want := range map[string]string{
		"{}":               "needs either apiVersion and kind, or expression",
		"{apiVersion: v1}": "needs either apiVersion and kind, or expression",
		"{apiVersion: v1, kind: Pod, expression: \"true\"}": "needs either apiVersion and kind, or expression",
		"{expression: \"\"}": "spec.changes[0].activation.expression",
	} {
		require.ErrorContains(t, l.TrySubmit("refused", "changes:\n- {activation: "+activation+", "+on+"}\n"), want)
	}
	for name, c := range map[string]struct{ text, want string }{
		"field":    {"kinds.exists(k, k.groop == 'x')", "undefined field 'groop'"},
		"object":   {"object != null", "undeclared reference to 'object'"},
		"no-truth": {"size(kinds)", "it is of type int, and must be true or false"},
		"no-such":  {"kinds[100000].group == 'x'", "evaluate activation of ConfigMap"},
	} {
		txn := l.Run(name, "changes:\n- {activation: {expression: \""+c.text+"\"}, "+on+"}\n")
		assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
		assert.Equal(t, errclass.Invalid, txn.Status.Items[0].Reason)
		assert.Contains(t, txn.Status.Items[0].Message, c.want)
	}
	// In the turn of a change, what cannot be evaluated rolls back what was made.
	txn := l.Run("in-turn", l.fill("changes:\n- "+defining+"\n- {activation: {expression: \"kinds[100000].group == 'x'\"}, "+on+"}\n"))
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	_, err := l.Dynamic.Resource(definitions).Get(t.Context(), "lamps."+l.group, metav1.GetOptions{})
	require.Error(t, err)
	l.NothingLeft("in-turn")
}
