package simulation

import (
	"fmt"
	"math/rand/v2"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// branch gives some of the Transactions of a scenario an order of their own, and their
// changes conditions.
func branch(random *rand.Rand, s *scenario) {
	for i := range s.transactions {
		if random.IntN(3) > 0 {
			continue
		}
		spec := &s.transactions[i]
		for n := range spec.Changes {
			spec.Changes[n].Name = fmt.Sprintf("c%d", n)
		}
		if random.IntN(2) == 0 {
			depend(random, spec)
		}
		for n := range spec.Changes {
			if random.IntN(4) == 0 {
				gate(random, &spec.Changes[n], random.IntN(len(spec.Changes)))
				deleteIfFalse(random, &spec.Changes[n])
			}
		}
	}
	for i := range s.transactions {
		for n := range s.transactions[i].Changes {
			if c := &s.transactions[i].Changes[n]; c.Type != api.Create && c.Type != api.Await && random.IntN(5) == 0 {
				restore(random, c)
			}
			if c := &s.transactions[i].Changes[n]; c.Type == api.Await {
				c.Guard = random.IntN(2) == 0
			}
		}
	}
}

// restore has the compensation of a change waited for.
func restore(random *rand.Rand, c *api.Change) {
	short, hold := api.Duration("20s"), api.Duration("3s")
	c.Rollback = &api.ChangeRollback{ReadyWhen: api.ReadyWhen{Timeout: &short}}
	c.Rollback.ReadyWhen.Expression = []string{"object != null", "object.data.a != 'new'", "object.status.seen.startsWith('seen')", "false"}[random.IntN(4)]
	if random.IntN(3) == 0 {
		c.Rollback.ReadyWhen.HoldFor = &hold
	}
}

// depend makes changes depend on others, so that there is an order which allows it and
// which changes of one object do not contradict.
func depend(random *rand.Rand, spec *api.TransactionSpec) {
	if random.IntN(2) == 0 {
		width := int32(1 + random.IntN(2)) //nolint:gosec // it is small
		spec.Parallelism = &width
	}
	place := random.Perm(len(spec.Changes))
	for i := range spec.Changes {
		for j := range i {
			if spec.Changes[i].Target == spec.Changes[j].Target {
				place[i] = max(place[i], place[j]+1)
			}
		}
	}
	for i := range spec.Changes {
		for j := range spec.Changes {
			if place[j] < place[i] && random.IntN(2) == 0 {
				spec.Changes[i].DependsOn = append(spec.Changes[i].DependsOn, spec.Changes[j].Name)
			}
		}
	}
	if !plan.InBranches(spec) {
		spec.Order = api.OrderGraph
	}
}

// gate gives a change a condition, which may ask for the target of another.
func gate(random *rand.Rand, c *api.Change, other int) {
	short := api.Duration("20s")
	switch random.IntN(8) {
	case 0:
		c.When = "object != null"
	case 1:
		c.When = "object == null"
	case 2:
		c.When = fmt.Sprintf("objects.c%d != null && has(objects.c%d.data)", other, other)
	case 3:
		c.Activation = &api.Activation{APIVersion: "example.com/v1", Kind: []string{"Widget", "Gadget"}[random.IntN(2)]}
	case 4:
		await(random, c, other)
	default:
		ready := []string{
			"object != null", "object.status.seen.startsWith('seen')", "false", fmt.Sprintf("object != null || objects.c%d != null", other),
		}[random.IntN(4)]
		if c.Type == api.Delete {
			c.GoneWhen = &api.GoneWhen{Expression: "object == null", Timeout: &short}
		} else {
			c.ReadyWhen = &api.ReadyWhen{Expression: ready, Timeout: &short}
		}
	}
}

// deleteIfFalse has changes that are made only under a condition delete their targets otherwise, or not.
func deleteIfFalse(random *rand.Rand, c *api.Change) {
	if c.When != "" && c.Type != api.Delete && c.Type != api.Await && random.IntN(2) == 0 {
		c.WhenFalse = api.WhenFalseDelete
	}
}

// await makes of a change a wait, for its target or for that of another.
func await(random *rand.Rand, c *api.Change, other int) {
	short, hold := api.Duration("20s"), api.Duration("3s")
	*c = api.Change{Name: c.Name, Target: c.Target, DependsOn: c.DependsOn, Type: api.Await, ReadyWhen: &api.ReadyWhen{Timeout: &short}}
	c.ReadyWhen.Expression = []string{
		"object != null", "object == null", fmt.Sprintf("objects.c%d != null", other), "object.data.a == 'new'", "false",
	}[random.IntN(5)]
	if random.IntN(3) == 0 {
		c.ReadyWhen.HoldFor = &hold
	}
	if random.IntN(3) == 0 {
		c.FailWhen = &api.FailWhen{Expression: "object.data.a == 'new'", MessageExpression: "'a is ' + object.data.a"}
	}
}

// branched are small workloads whose order is not that of the list, or whose changes have
// conditions.
func branched(one func(name string, objects []thing, changes ...api.Change) scenario) []scenario {
	alpha, beta, gamma := pool[0], pool[1], pool[2]
	news := map[string]string{"a": "new", "c": "new"}
	minute := api.Duration("60s")
	with := func(c api.Change, name string, edit func(c *api.Change)) api.Change {
		c.Name = name
		edit(&c)
		return c
	}
	diamond := func(last api.Change) []api.Change {
		return []api.Change{
			with(last, "last", func(c *api.Change) { c.DependsOn = []string{"left", "right"} }),
			with(alpha.change(api.Patch, news), "left", func(c *api.Change) {
				c.DependsOn = []string{"first"}
				c.ReadyWhen = &api.ReadyWhen{Expression: "object.data.a == 'new'", Timeout: &minute}
			}),
			with(beta.change(api.Update, news), "right", func(c *api.Change) { c.DependsOn = []string{"first"} }),
			with(gamma.change(api.Create, news), "first", func(*api.Change) {}),
		}
	}
	release := func(of thing) api.Change {
		return api.Change{Name: of.name, Target: of.target(), Type: api.Patch, Release: &api.Release{Managers: []string{"annotator", "kubectl"}}}
	}
	refused := thing{configMap, "refused"}.change(api.Create, old)
	return []scenario{
		one("diamond", []thing{alpha, beta}, diamond(thing{configMap, "omega"}.change(api.Create, news))...),
		one("diamond-back", []thing{alpha, beta}, diamond(refused)...),
		one("skipped", []thing{alpha, beta},
			with(alpha.change(api.Patch, news), "alpha", func(c *api.Change) { c.When = "objects.beta == null" }),
			with(beta.change(api.Patch, news), "beta", func(c *api.Change) { c.When = "object != null" }),
			with(gamma.change(api.Create, news), "gamma", func(c *api.Change) { c.DependsOn = []string{"alpha"} })),
		one("deletes", []thing{alpha, beta},
			with(alpha.change(api.Patch, news), "alpha", func(c *api.Change) {
				c.When, c.WhenFalse = "objects.gamma != null", api.WhenFalseDelete
			}),
			with(beta.change(api.Update, news), "beta", func(c *api.Change) { c.DependsOn = []string{"alpha"} }),
			with(gamma.change(api.Create, news), "gamma", func(c *api.Change) { c.DependsOn = []string{"beta"} })),
		one("deletes-what-it-would-create", []thing{alpha, beta},
			with(alpha.change(api.Patch, news), "alpha", func(c *api.Change) {
				c.When, c.WhenFalse = "object == null", api.WhenFalseDelete
			}),
			with(beta.change(api.Create, news), "beta", func(c *api.Change) { c.DependsOn = []string{"alpha"} }),
			with(gamma.change(api.Patch, news), "gamma", func(c *api.Change) { c.DependsOn = []string{"beta"} })),
		one("deletes-in-a-list", []thing{alpha, beta},
			with(alpha.change(api.Patch, news), "alpha", func(c *api.Change) {
				c.When, c.WhenFalse = "object == null", api.WhenFalseDelete
			}),
			with(beta.change(api.Patch, news), "beta", func(*api.Change) {}),
			with(alpha.change(api.Patch, news), "again", func(*api.Change) {})),
		one("deletes-diamond-back", []thing{alpha, beta}, append(func() []api.Change {
			changes := diamond(thing{configMap, "omega"}.change(api.Create, news))
			changes[1].When, changes[1].WhenFalse, changes[1].ReadyWhen = "object == null", api.WhenFalseDelete, nil
			return changes
		}(), with(refused, "refused", func(c *api.Change) { c.DependsOn = []string{"right", "first"} }))...),
		one("release", []thing{alpha, beta}, release(alpha), with(alpha.change(api.Patch, news), "again", func(*api.Change) {}), release(beta)),
		one("release-back", []thing{alpha, beta}, release(alpha), release(beta), refused),
		one("never-ready-back", []thing{alpha, beta}, beta.change(api.Patch, news),
			with(alpha.change(api.Patch, news), "alpha", func(c *api.Change) {
				timeout := api.Duration("2s")
				c.ReadyWhen = &api.ReadyWhen{Expression: "object.data.a == 'never'", Timeout: &timeout}
			})),
		one("await", []thing{alpha, beta}, beta.change(api.Patch, news),
			with(alpha.change(api.Patch, nil), "alpha", func(c *api.Change) {
				hold := api.Duration("2s") // Without a timeout: a process that hangs may take longer than any.
				*c = api.Change{Name: "alpha", Target: c.Target, Type: api.Await, ReadyWhen: &api.ReadyWhen{Expression: "object != null", HoldFor: &hold}}
			}),
			with(gamma.change(api.Create, news), "gamma", func(c *api.Change) { c.When = "objects.alpha != null" })),
		one("await-failed-back", []thing{alpha, beta}, beta.change(api.Patch, news),
			with(alpha.change(api.Patch, nil), "alpha", func(c *api.Change) {
				*c = api.Change{
					Name: "alpha", Target: c.Target, Type: api.Await, ReadyWhen: &api.ReadyWhen{Expression: "object == null", Timeout: &minute},
					FailWhen: &api.FailWhen{Expression: "object != null", MessageExpression: "object.metadata.name"},
				}
			})),
		one("guard", []thing{alpha, beta}, guardOf(alpha, "object != null"), beta.change(api.Patch, news), gamma.change(api.Create, news)),
		one("guard-after", []thing{alpha, beta}, alpha.change(api.Patch, news), guardOf(alpha, "object.data.a == 'new'"), beta.change(api.Patch, news)),
		one("guard-broken-back", []thing{alpha}, guardOf(alpha, "object.data.a == 'old-a'"), alpha.change(api.Patch, news)),
		one("restored-back", []thing{alpha, beta}, beta.change(api.Patch, news),
			with(alpha.change(api.Update, news), "alpha", func(c *api.Change) {
				hold := api.Duration("2s")
				c.Rollback = &api.ChangeRollback{ReadyWhen: api.ReadyWhen{Expression: "object.data.a == 'old-a'", HoldFor: &hold, Timeout: &minute}}
			}), refused),
		one("restored-diamond-back", []thing{alpha, beta}, func() []api.Change {
			changes := diamond(refused)
			for i := range changes {
				if changes[i].Name == "left" || changes[i].Name == "right" {
					changes[i].Rollback = &api.ChangeRollback{ReadyWhen: api.ReadyWhen{Expression: "object.data.a != 'new'", Timeout: &minute}}
				}
			}
			return changes
		}()...),
		one("never-restored", []thing{alpha, beta}, beta.change(api.Patch, news),
			with(alpha.change(api.Delete, nil), "alpha", func(c *api.Change) {
				timeout := api.Duration("2s")
				c.Rollback = &api.ChangeRollback{ReadyWhen: api.ReadyWhen{Expression: "object.data.a == 'never'", Timeout: &timeout}}
			}), refused),
		goingOn(one("continues", []thing{alpha, beta},
			with(refused, "refused", func(*api.Change) {}),
			with(alpha.change(api.Patch, news), "alpha", func(c *api.Change) { c.DependsOn = []string{"refused"} }),
			with(beta.change(api.Update, news), "beta", func(*api.Change) {}),
			with(gamma.change(api.Create, news), "gamma", func(c *api.Change) { c.DependsOn = []string{"beta"} }))),
		goingOn(one("continues-in-a-list", []thing{alpha, beta},
			alpha.change(api.Patch, news), refused, beta.change(api.Delete, nil), gamma.change(api.Create, news))),
		goingOn(one("continues-unready", []thing{alpha, beta},
			with(alpha.change(api.Patch, news), "alpha", func(c *api.Change) {
				timeout := api.Duration("2s")
				c.ReadyWhen = &api.ReadyWhen{Expression: "object.data.a == 'never'", Timeout: &timeout}
			}),
			with(gamma.change(api.Create, news), "gamma", func(c *api.Change) { c.When = "objects.alpha != null" }),
			beta.change(api.Patch, news))),
		one("gone", []thing{alpha}, with(alpha.change(api.Delete, nil), "alpha", func(c *api.Change) {
			c.GoneWhen = &api.GoneWhen{Expression: "object == null", Timeout: &minute}
		})),
	}
}

// guardOf is a guard of a thing.
func guardOf(t thing, expression string) api.Change {
	return api.Change{Name: "guard-" + t.name, Target: t.target(), Type: api.Await, Guard: true, ReadyWhen: &api.ReadyWhen{Expression: expression}}
}

// goingOn has the Transactions of a workload go on when a change fails.
func goingOn(s scenario) scenario {
	for i := range s.transactions {
		s.transactions[i].OnFailure = api.FailureContinue
	}
	return s
}
