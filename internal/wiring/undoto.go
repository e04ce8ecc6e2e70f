package wiring

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/revision/inverse"
)

// composed returns the changes that undo several revisions, given the newest first: one change for
// each target.
func composed(all []*past) []inverted {
	var steps []inverse.Step
	var what []made
	for n := len(all) - 1; n >= 0; n-- {
		for at, item := range all[n].of.Items {
			step := inverse.Step{Target: item.Target, Type: item.Type, Existed: item.Type != api.Create && item.Before != nil && item.Before.UID != ""}
			step.Idle = item.Index < len(all[n].original.Status.Items) && all[n].original.Status.Items[item.Index].Unchanged
			steps, what = append(steps, step), append(what, made{all[n], at})
		}
	}
	var out []inverted
	for _, c := range inverse.Compose(steps) {
		one := inverted{steps: make([]made, len(c.Steps))}
		for n, step := range c.Steps {
			one.steps[n] = what[step]
		}
		newest, oldest := one.steps[0], one.steps[len(one.steps)-1]
		one.change = api.Change{Name: composedName(newest), Type: c.Type, Target: newest.item().Target}
		if c.Type != api.Delete {
			one.change.ReadyWhen = oldest.readyWhen()
		}
		out = append(out, one.releasing())
	}
	return out
}

// maxName is how long the name of an item may be.
const maxName = 63

// composedName is the name of an item that undoes changes of several Transactions: no two of them
// have the same newest change. A name that is too long gets a digest in place of its end.
func composedName(newest made) string {
	name := fmt.Sprintf("r%d-%s", newest.number, newest.item().Name)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxName-9] + "-" + hex.EncodeToString(sum[:4])
}

// relateUndo records what each item of an undo depends on: a change is undone before those that it
// depends on, so to undo them depends on that it is undone. What depends on a change that has
// nothing to be undone stands in for it.
func relateUndo(t *api.Transaction, undone *undoing) {
	names := map[namedChange]string{}
	var all []*past
	for _, c := range undone.changes {
		for _, step := range c.steps {
			names[namedChange{step.past, step.item().Name}] = c.change.Name
			if len(all) == 0 || all[len(all)-1] != step.past {
				all = append(all, step.past)
			}
		}
	}
	dependants := map[namedChange][]namedChange{}
	related := map[*past]bool{}
	for _, p := range all {
		if related[p] {
			continue
		}
		related[p] = true
		for i := range p.original.Status.Items {
			for _, name := range plan.DependsOn(p.original, i) {
				on := namedChange{p, name}
				dependants[on] = append(dependants[on], namedChange{p, p.original.Status.Items[i].Name})
			}
		}
	}
	for i := range t.Status.Items {
		item := &t.Status.Items[i]
		item.DependsOn = nil
		seen := map[string]bool{item.Name: true}
		for _, step := range undone.steps(item.Name) {
			for _, name := range undoneBefore(dependants, names, namedChange{step.past, step.item().Name}) {
				// One change for each target may come in another order than theirs did.
				if !seen[name] && plan.IndexOf(t.Status.Items[:i], name) >= 0 {
					item.DependsOn = append(item.DependsOn, name)
				}
				seen[name] = true
			}
		}
	}
}

// namedChange is a change of a Transaction that is undone.
type namedChange struct {
	*past
	name string
}

// undoneBefore names the items that undo what depends on a change.
func undoneBefore(dependants map[namedChange][]namedChange, names map[namedChange]string, on namedChange) []string {
	var out []string
	seen := map[namedChange]bool{on: true}
	for next := dependants[on]; len(next) > 0; {
		var through []namedChange
		for _, one := range next {
			if seen[one] {
				continue
			}
			if seen[one] = true; names[one] != "" {
				out = append(out, names[one])
			} else {
				through = append(through, dependants[one]...)
			}
		}
		next = through
	}
	return out
}
