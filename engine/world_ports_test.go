package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// journal is the durable Transaction.
type journal struct{ *world }

func (j journal) Checkpoint(_ context.Context, t *api.Transaction) (out *api.Transaction, err error) {
	return out, j.call("checkpoint", func() (string, error) {
		if err := j.current(t); err != nil {
			return "", err
		}
		if size := len(jsonOf(t.Status)); j.room > 0 && size > j.room {
			return "", errclass.New(errclass.Terminal, errclass.TooLarge, "write", "Transaction", "its status takes %d bytes", size)
		}
		for _, c := range t.Status.Conditions {
			if c.Reason == "" { // The API server refuses it.
				return "", errclass.New(errclass.Terminal, errclass.Invalid, "write", "Transaction", "its condition %s has no reason", c.Type)
			}
		}
		if err := legalStatus(j.stored, t); err != nil {
			j.t.Errorf("%v; the transcript:\n%s", err, j.transcript())
		}
		j.stored.Status = *t.Status.DeepCopy()
		j.bump()
		out = j.stored.DeepCopy()
		j.reached = append(j.reached, out)
		return describe(out), nil
	})
}

// jsonOf is how a status is stored.
func jsonOf(status api.TransactionStatus) string {
	text, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (j journal) current(t *api.Transaction) error {
	if j.stored == nil {
		return errclass.New(errclass.Terminal, errclass.NotFound, "write", "Transaction", "not found")
	}
	if t.ResourceVersion != j.stored.ResourceVersion {
		return errclass.New(errclass.Retryable, errclass.StaleVersion, "write", "Transaction", "another client has written it")
	}
	return nil
}

func (j journal) Unwritten(_ context.Context, t *api.Transaction) error {
	return j.call("look at the Transaction", func() (string, error) {
		return "look at the Transaction", j.current(t)
	})
}

func (j journal) AddFinalizer(_ context.Context, t *api.Transaction) (out *api.Transaction, err error) {
	return out, j.call("add the finalizer", func() (string, error) {
		if err := j.current(t); err != nil {
			return "", err
		}
		j.stored.Finalizers = append(j.stored.Finalizers, api.Finalizer)
		j.bump()
		out = j.stored.DeepCopy()
		return "add the finalizer", nil
	})
}

func (j journal) Delete(_ context.Context, t *api.Transaction) error {
	return j.call("delete the Transaction", func() (string, error) {
		if j.stored == nil {
			return "delete the Transaction (it is gone)", nil
		}
		if err := j.current(t); err != nil {
			return "", err
		}
		if len(j.stored.Finalizers) > 0 {
			j.t.Errorf("deleted with finalizers %v; the transcript:\n%s", j.stored.Finalizers, j.transcript())
		}
		clear(j.images) // as the garbage collector does
		j.gone, j.stored = j.stored, nil
		return "delete the Transaction", nil
	})
}

func (j journal) RemoveFinalizer(_ context.Context, t *api.Transaction) (out *api.Transaction, err error) {
	return out, j.call("remove the finalizer", func() (string, error) {
		if j.stored == nil {
			out = t
			return "remove the finalizer (the Transaction is gone)", nil
		}
		if err := j.current(t); err != nil {
			return "", err
		}
		j.stored.Finalizers = slices.DeleteFunc(j.stored.Finalizers, func(f string) bool { return f == api.Finalizer })
		j.bump()
		out = j.stored.DeepCopy()
		if j.stored.DeletionTimestamp != nil && len(j.stored.Finalizers) == 0 {
			j.gone, j.stored = j.stored, nil
		}
		return "remove the finalizer", nil
	})
}

// describe writes a checkpoint on one line.
func describe(t *api.Transaction) string {
	var items []string
	for _, item := range t.Status.Items {
		text := item.Name + " " + string(item.State)
		if item.Type == api.Delete {
			text += "(deletes)"
		}
		if plan.Restoring(&item) {
			text += "(restored)"
		}
		if item.Reason != "" {
			text += "(" + item.Reason + ")"
		}
		for _, c := range item.Conflicts {
			text += "(conflict " + c.Field + ")"
		}
		items = append(items, text)
	}
	line := fmt.Sprintf("checkpoint %d %s: %s", t.Status.Version, t.Status.Phase, strings.Join(items, ", "))
	if waiting := plan.WaitingFor(t); waiting != "" && !t.Status.Phase.Terminal() {
		if a := t.Status.Approval; a != nil && a.Digest != "" {
			waiting = strings.ReplaceAll(waiting, a.Digest, fmt.Sprint(a.Plans)) // Of all that the spec may have.
		}
		line += " [waits: " + waiting + "]"
	}
	switch {
	case t.Status.RevisionDigest != "":
		line += fmt.Sprintf(" [revision %d]", t.Status.Revision)
	case t.Status.Revision > 0:
		line += fmt.Sprintf(" [number %d]", t.Status.Revision)
	}
	if reason, _ := plan.RecordedCause(&t.Status); reason != "" {
		line += " [because: " + reason + "]"
	}
	return line
}

// planner accepts everything that is not to be refused.
type planner struct{ *world }

func (p planner) Validate(_ context.Context, t *api.Transaction, enough func() bool) (found plan.Preflight, err error) {
	return found, p.call("validate", func() (string, error) {
		if p.unfinished > 0 {
			p.unfinished--
			if p.clock.Step(stepTime); !enough() {
				return "", errors.New("it is to go on")
			}
			found.Unfinished = true
			return "validate: is to be resumed", nil
		}
		items := []api.Item(nil)
		for _, c := range t.Spec.Changes {
			item := api.Item{Name: c.Name, Target: c.Target, Resource: "configmaps", DeferredBy: p.deferredBy[c.Name]}
			if item.Guard = c.Guard; c.Type == api.Await {
				item.Type = c.Type
			}
			item.DependsOn = slices.Concat(c.DependsOn, p.refers[c.Name])
			plan.SetItemState(&item, api.ItemPending)
			if plan.ShowsPlan(t) {
				item.Plan = &api.Plan{Effect: api.EffectChange, Digest: p.targets[c.Target.Name]}
			}
			items = append(items, item)
		}
		found = plan.Preflight{Items: items, Account: "acc0", Problems: p.problems}
		shown := t.DeepCopy()
		shown.Status.Items = items
		if err := plan.RelateDeletions(shown, p.referred(items)); err != nil {
			return "", err
		}
		for i, later := range plan.Later(shown) {
			if later {
				found.Deferred = append(found.Deferred, plan.Deferral{Item: i, Why: "item a1 changes it first"})
			}
		}
		if len(p.problems) > 0 {
			return fmt.Sprintf("validate: %d problems", len(p.problems)), nil
		}
		return "validate", nil
	})
}

// referred are the items that the content of each refers to.
func (p planner) referred(items []api.Item) [][]int {
	out := make([][]int, len(items))
	for i := range items {
		for _, name := range p.refers[items[i].Name] {
			out[i] = append(out[i], plan.IndexOf(items, name))
		}
	}
	return out
}

func (p planner) Prepare(_ context.Context, t *api.Transaction, items []int, lost func()) (out Prepared, err error) {
	defer func() { tellLost(err, lost) }()
	return out, p.call("save", func() (string, error) {
		out = Prepared{Account: "acc0", Ref: &api.RollbackRef{Name: "deploy-rollback", Objects: []string{"ConfigMap/deploy-rollback"}}}
		var names []string
		for _, i := range items {
			item := t.Status.Items[i]
			p.images[item.Name] = p.targets[item.Target.Name]
			image := api.BeforeImage{Key: item.Name, Digest: "d", UID: types.UID("uid-" + item.Target.Name), ResourceVersion: "1"}
			if p.targets[item.Target.Name] == "" {
				image.UID, image.ResourceVersion = "", ""
			}
			out.Items = append(out.Items, PreparedItem{Image: image, Plan: p.targets[item.Target.Name]})
			names = append(names, item.Name)
		}
		return "save " + strings.Join(names, ", "), nil
	})
}

func (p planner) Discard(_ context.Context, _ *api.Transaction, keep bool, search Search) error {
	p.searched = append(p.searched, search)
	who := "discard the before-images"
	if keep {
		who = "keep the before-images"
	}
	return p.call(who, func() (string, error) {
		if !keep {
			clear(p.images)
		}
		return who, nil
	})
}

func (p planner) Forget(*api.Transaction) { p.forgotten++ }

// changes leave a target as "item wrote it".
type changes struct{ *world }

func wrote(item string) string { return item + " wrote it" }

func (c changes) Do(ctx context.Context, in Intent) error {
	name, target := c.itemOf(in)
	if err := in.Confirm(ctx, false); err != nil {
		return err
	}
	return c.call("do "+name, func() (string, error) {
		if c.targets[target] != c.images[name] {
			return "", errclass.New(errclass.Conflict, errclass.Drifted, "patch", in.Item().Target.String(), "another client has written it")
		}
		c.mayBeMade(in)
		if plan.NeedsApproval(c.stored) && !plan.Approved(c.stored) {
			c.t.Errorf("%s is made, and nobody has approved it:\n%s", name, c.transcript())
		}
		c.mayBeDeleted(in)
		c.targets[target] = wrote(name)
		c.dos[name]++
		if c.idle[name] {
			in.Unchanged()
		}
		return "do " + name, nil
	})
}

func (c changes) Observe(_ context.Context, in Intent) (finding outcome.Finding, err error) {
	name, target := c.itemOf(in)
	return finding, c.call("observe "+name, func() (string, error) {
		switch c.targets[target] {
		case wrote(name):
			finding = outcome.Applied
		case c.images[name]:
			finding = outcome.NotApplied
		case "going":
			finding = outcome.Applying
		default:
			finding = outcome.Diverged
		}
		return "observe " + name + ": " + finding.String(), nil
	})
}

func (c changes) HandOver(context.Context, *api.Transaction) (map[int]string, error) {
	return nil, c.call("hand over", func() (string, error) { return "hand over", nil })
}

func (c changes) Undo(ctx context.Context, in Intent) (outcome.Undone, error) {
	name, target := c.itemOf(in)
	if c.target(target) != c.images[name] {
		if err := in.Confirm(ctx, false); err != nil {
			return outcome.Undone{}, err
		}
	}
	return outcome.Undone{Recreated: c.anew[name]}, c.call("undo "+name, func() (string, error) {
		switch c.targets[target] {
		case "to be made anew":
			if err := in.MayCreate(); err != nil {
				return "", err
			}
			fallthrough
		case wrote(name), "going":
			c.mayBeUndone(in)
			c.targets[target] = c.images[name]
			c.undos[name]++
			return "undo " + name, nil
		case c.images[name]:
			return "undo " + name + " (it is undone)", nil
		}
		return "", errclass.New(errclass.Conflict, errclass.Drifted, "restore", in.Item().Target.String(), "field .data.version was written by %q", "kubectl")
	})
}

func (c changes) target(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.targets[name]
}

// mayBeMade checks that what a change depends on is done.
func (c changes) mayBeMade(in Intent) {
	for _, name := range in.Change().DependsOn {
		_, waits := c.unready[name]
		inEffect := c.dos[name] > c.undos[name]
		if skipped := c.itemNamed(name).State == api.ItemSkipped; skipped || !inEffect || waits {
			c.t.Errorf("%s is made although %s is not done (in effect: %t, awaited: %t, skipped: %t):\n%s",
				in.Change().Name, name, inEffect, waits, skipped, c.transcript())
		}
	}
}

// mayBeDeleted checks that what depends on a target is deleted before it, or was not there.
func (c changes) mayBeDeleted(in Intent) {
	name := in.Item().Name
	if in.Item().Type != api.Delete {
		return
	}
	for _, other := range c.stored.Status.Items {
		switch kind := c.stored.Spec.Changes[plan.IndexOf(c.stored.Status.Items, other.Name)].Type; {
		case !slices.Contains(other.DeletedWith, name) || other.State == api.ItemSkipped:
		case other.Type != api.Delete || kind == api.Delete || kind == api.Await || c.dos[other.Name] <= c.undos[other.Name]:
			c.t.Errorf("%s is deleted while %s, which depends on it, is %s (%s, deleted %d times):\n%s",
				name, other.Name, other.State, other.Type, c.dos[other.Name], c.transcript())
		}
	}
}

// mayBeUndone checks that nothing which depends on a change is in effect any more, but for what
// was refused and may need this one to be rolled back first.
func (c changes) mayBeUndone(in Intent) {
	name := in.Item().Name
	for _, other := range c.stored.Status.Items {
		inEffect := c.dos[other.Name] > c.undos[other.Name]
		waits := other.SetAside && slices.Contains(other.SetAsideFor, name)
		if slices.Contains(other.DependsOn, name) && inEffect && !waits {
			c.t.Errorf("%s is rolled back while %s, which depends on it, is in effect and %s:\n%s", name, other.Name, other.State, c.transcript())
		}
		if slices.Contains(c.upTo(other.Name), name) && plan.Restoring(&other) {
			c.t.Errorf("%s is rolled back while %s, which is rolled back before it, is not ready:\n%s", name, other.Name, c.transcript())
		}
	}
}

// upTo are the changes that are rolled back after another.
func (c changes) upTo(name string) []string {
	at := plan.IndexOf(c.stored.Status.Items, name)
	if plan.InBranches(&c.stored.Spec) {
		on := c.stored.Spec.Changes[at].DependsOn
		for _, next := range on {
			on = slices.Concat(on, c.upTo(next))
		}
		return on
	}
	var out []string
	for _, earlier := range c.stored.Status.Items[:at] {
		out = append(out, earlier.Name)
	}
	return out
}

func (c changes) itemNamed(name string) api.Item {
	return c.stored.Status.Items[plan.IndexOf(c.stored.Status.Items, name)]
}

// gates say what the world says of an item.
type gates struct{ *world }

func (g gates) Admits(_ context.Context, t *api.Transaction, i int) (wanted bool, err error) {
	name := t.Spec.Changes[i].Name
	return wanted, g.call("ask for "+name, func() (string, error) {
		wanted = !g.unasked[name]
		return fmt.Sprintf("ask for %s: %t", name, wanted), nil
	})
}

func (g gates) Activates(_ context.Context, t *api.Transaction, i int) (holds bool, err error) {
	name := t.Spec.Changes[i].Name
	return holds, g.call("ask for the kind of "+name, func() (string, error) {
		holds = !g.unasked[name]
		return fmt.Sprintf("ask for the kind of %s: %t", name, holds), nil
	})
}

func (g gates) Ready(_ context.Context, t *api.Transaction, i int) (found Readiness, err error) {
	name := t.Spec.Changes[i].Name
	return found, g.call("look at "+name, func() (string, error) {
		var waits bool
		if found, waits = g.unready[name]; !waits {
			found.Ready = true
		}
		g.clock.Step(g.slow)
		return fmt.Sprintf("look at %s: ready=%t failed=%t", name, found.Ready, found.Failed), nil
	})
}

func (g gates) Restored(_ context.Context, t *api.Transaction, i int) (found Readiness, err error) {
	name := t.Spec.Changes[i].Name
	return found, g.call("look at "+name, func() (string, error) {
		if g.targets[t.Spec.Changes[i].Target.Name] != g.images[name] {
			g.t.Errorf("%s is looked at as if it were restored:\n%s", name, g.transcript())
		}
		var waits bool
		if found, waits = g.unrestored[name]; !waits {
			found.Ready = true
		}
		return fmt.Sprintf("look at %s, which is restored: ready=%t failed=%t", name, found.Ready, found.Failed), nil
	})
}

// worldRecorder checks that it hears of what is durable, in order.
type worldRecorder struct{ *world }

func (v worldRecorder) Checkpointed(before, after *api.Transaction) {
	if after.Status.Version != before.Status.Version+1 {
		v.t.Errorf("the witness saw version %d after %d", after.Status.Version, before.Status.Version)
	}
}

func (v worldRecorder) Abandoned(t *api.Transaction) {
	v.told = t
	v.say("-- abandoned")
}

func (v worldRecorder) Expired(*api.Transaction, bool) { v.say("-- expired") }
