package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/expression"
)

var lamps = Ref{definitions, "", "lamps.example.com"}

// define writes the definition of Lamps as another client; the API server serves it if it is Established.
func define(established, namesAccepted string) func(*world) {
	return func(w *world) {
		w.foreign(lamps, "tester", func(o tree) {
			o["spec"] = tree{
				"group": "example.com", "scope": "Namespaced", "names": tree{"kind": "Lamp", "plural": "lamps"},
				"versions": []any{tree{"name": "v1", "served": true}, tree{"name": "v2", "served": false}},
			}
			o["status"] = tree{"conditions": []any{
				tree{"type": "NamesAccepted", "status": namesAccepted}, tree{"type": "Established", "status": established},
			}}
		})
	}
}

// decided tells of a Transaction whose Create has an activation, which is said to hold or not after
// something has happened.
func decided(a api.Activation, holds bool, before, since func(*world)) *world {
	return commit(hooks{
		"lock": func(w *world) {
			w.evidence.Kinds = []expression.Kind{{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}}
			w.evidence.Runs[0].Spec.Changes[1].Activation = &a
			before(w)
		},
		"prepared": func(w *world) {
			w.checkpoint(func(tree) {})
			since(w)
			w.checkpoint(func(s tree) {
				s["items"].([]any)[1].(tree)["results"] = []any{tree{"condition": "activation", "holds": holds}}
			})
		},
	})
}

func TestActivationsThatWereNeverSoAreFound(t *testing.T) {
	some := func(text string) api.Activation { return api.Activation{Expression: text} }
	lamp, configMap := api.Activation{APIVersion: "example.com/v1", Kind: "Lamp"}, api.Activation{APIVersion: "v1", Kind: "ConfigMap"}
	served := define("True", "True")
	for name, w := range map[string]*world{
		"a kind that is always served":           decided(configMap, true, nothing, nothing),
		"a kind that is defined":                 decided(lamp, true, served, nothing),
		"a kind that is defined meanwhile":       decided(lamp, true, nothing, served),
		"an expression":                          decided(some("kinds.exists(k, k.kind == 'Lamp' && k.resource == 'lamps')"), true, served, nothing),
		"an expression that cannot be evaluated": decided(some("kinds[9].kind == 'Lamp'"), true, nothing, nothing),
	} {
		assert.Empty(t, w.breaches(), name)
	}
	owns := func(then func(*world)) func(*world) {
		return func(w *world) {
			w.evidence.Runs[0].Items = append(w.evidence.Runs[0].Items[:3:3], lamps)
			then(w)
		}
	}
	const never = "and was so at no time since @"
	for _, c := range []wrong{
		{"a kind that is not served", Order, "its activation (example.com/v1 Lamp) is said to be true", decided(lamp, true, nothing, nothing)},
		{"a version that is not served", Order, never, decided(api.Activation{APIVersion: "example.com/v2", Kind: "Lamp"}, true, served, nothing)},
		{"a kind that is not served yet", Order, never, decided(lamp, true, define("False", "True"), nothing)},
		{"a kind that is served", Order, "is said to be false", decided(configMap, false, nothing, nothing)},
		{"a kind that is defined, and served", Order, never, decided(lamp, false, served, nothing)},
		{"an expression that does not hold", Order, never, decided(some("kinds.exists(k, k.kind == 'Lamp')"), true, nothing, nothing)},
		{"what it has defined itself is not waited for", Order, never, decided(lamp, false, owns(define("False", "True")), nothing)},
		{"one that is not activated is prepared", Phases, "rests on activation being true, and says of it false (recorded: true)", decided(lamp, false, nothing, nothing)},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
	for name, w := range map[string]*world{
		"what another client defines need not be waited for": decided(lamp, false, define("False", "True"), nothing),
		"a definition whose names are taken defines nothing": decided(lamp, false, owns(define("False", "False")), nothing),
	} {
		for _, b := range w.breaches() {
			assert.NotContains(t, b.Message, never, name)
		}
	}
}
