package simulation

import (
	"math/rand/v2"

	api "janus.io/janus/api/v1alpha1"
)

// onKinds are activations that hold, and some that do not: of a kind that is served or not, and of others by an
// expression.
var onKinds = []api.Activation{
	{APIVersion: "example.com/v1", Kind: "Widget"},
	{APIVersion: "example.com/v2", Kind: "Widget"},
	{Expression: "kinds.exists(k, k.group == 'example.com' && k.kind == 'Widget')"},
	{Expression: "!kinds.exists(k, k.group == 'example.com' && k.kind == 'Gadget')"},
	{Expression: "kinds.exists(k, k.kind == 'Gadget' || k.kind == 'Widget' && !k.namespaced)"},
	{Expression: "kinds.filter(k, k.kind == 'ConfigMap').all(k, k.version != 'v1')"},
}

// activate gives one change of some Transactions an activation, beside its other conditions.
func activate(random *rand.Rand, s *scenario) {
	for i := range s.transactions {
		if changes := s.transactions[i].Changes; len(changes) > 0 && random.IntN(6) == 0 {
			changes[random.IntN(len(changes))].Activation = &onKinds[random.IntN(len(onKinds))]
		}
	}
}

// activated are small workloads with changes that are made only if the cluster serves a kind.
func activated(one func(name string, objects []thing, changes ...api.Change) scenario) []scenario {
	alpha, beta, gamma, omega := pool[0], pool[1], pool[2], thing{configMap, "omega"}
	news := map[string]string{"a": "new", "c": "new"}
	on := func(n int, name string, c api.Change) api.Change {
		c.Name, c.Activation = name, &onKinds[n]
		return c
	}
	wanted := on(3, "gamma", gamma.change(api.Create, news))
	wanted.When = "objects.beta != null"
	depends := omega.change(api.Create, news)
	depends.DependsOn = []string{"beta", "gamma"}
	return []scenario{
		one("activated", []thing{alpha, beta},
			on(0, "alpha", alpha.change(api.Patch, news)), on(4, "beta", beta.change(api.Delete, nil)), wanted, depends),
		one("activated-back", []thing{alpha, beta},
			on(2, "alpha", alpha.change(api.Patch, news)), on(1, "beta", beta.change(api.Delete, nil)), thing{configMap, "refused"}.change(api.Create, old)),
	}
}
