package faults

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/test/faultinject"
)

// act is what another client does just before a request of Janus is sent.
type act struct {
	name, class string
	// each is set when there is one for each target.
	each bool
	do   func(ctx context.Context, r *run, of target) error
}

// again is how long what is taken away stays away, where it is given back while the
// Transaction runs: longer than some repetitions of a request, and shorter than the
// time until a failed rollback is given up.
const again = 400 * time.Millisecond

var acts = []act{
	{"foreign-write", "foreign writes", true, foreignWrite},
	{"foreign-field", "foreign writes", true, foreignField},
	{"foreign-delete", "foreign deletes", true, foreignDelete},
	{"foreign-recreate", "foreign re-creations", true, foreignRecreate},
	{"clock-forward", "clock", false, func(_ context.Context, r *run, _ target) error {
		r.clock.Turn(lockTimeout + 10*time.Second)
		return nil
	}},
	{"clock-jump", "clock", false, func(_ context.Context, r *run, _ target) error {
		r.clock.Jump(lockTimeout+10*time.Second, 6)
		return nil
	}},
	{"second-janus", "second Janus", false, func(_ context.Context, r *run, _ target) error {
		r.start()
		return nil
	}},
	{"account-deleted", "rights", false, deleteAccount},
	{"account-away", "rights", false, forAWhile(deleteAccount)},
	{"rights-deleted", "rights", false, deleteRights},
	{"rights-away", "rights", false, forAWhile(deleteRights)},
	{"quota-filled", "quota", false, fillQuota},
	{"quota-away", "quota", false, forAWhile(fillQuota)},
	{"namespace-deleted", "namespace deleted", false, func(ctx context.Context, r *run, _ target) error {
		return r.Kube.CoreV1().Namespaces().Delete(ctx, r.at.namespace, metav1.DeleteOptions{})
	}},
	{"delete-background", "Transaction deleted", false, deleteTransaction(metav1.DeletePropagationBackground)},
	{"delete-foreground", "Transaction deleted", false, deleteTransaction(metav1.DeletePropagationForeground)},
	{"delete-orphan", "Transaction deleted", false, deleteTransaction(metav1.DeletePropagationOrphan)},
	{"delete-background" + rollback, "Transaction deleted", false, deleteTransaction(metav1.DeletePropagationBackground)},
	{"delete-foreground" + rollback, "Transaction deleted", false, deleteTransaction(metav1.DeletePropagationForeground)},
	{"delete-orphan" + rollback, "Transaction deleted", false, deleteTransaction(metav1.DeletePropagationOrphan)},
	{"suspended", "suspended", false, forAWhile(edit("suspend", "true"))},
	{"cancelled", "cancelled", false, edit("cancel", `"Rollback"`)},
	{"stopped", "cancelled", false, edit("cancel", `"Stop"`)},
	{"stopped-then-cancelled", "cancelled", false, forAWhile(edit("cancel", `"Stop"`))},
	{"sources-changed", "sources", false, changeSources},
	{"sources-recreated", "sources", false, recreateSources},
	{"image-edited", "before-images", false, editImages},
	{"image-deleted", "before-images", false, deleteImages},
	{"image-stripped", "before-images", false, stripImages},
}

// rollback ends the name of an act on a Transaction with onDelete Rollback.
const rollback = "-rollback"

// actOf finds an act by what a plan says, and the number of its target.
func actOf(what string) (act, int, bool) {
	name, number, _ := strings.Cut(what, ":")
	n, _ := strconv.Atoi(number)
	for _, a := range acts {
		if a.name == name {
			return a, n, true
		}
	}
	return act{}, 0, false
}

func isAct(what string) bool {
	_, _, ok := actOf(what)
	return ok
}

func actClass(what string) string {
	a, _, _ := actOf(what)
	return a.class
}

// injection turns what a plan says into what happens on the Line.
func (r *run) injection(e event) faultinject.Injection {
	a, n, ok := actOf(e.what)
	if !ok {
		return faultinject.Injection{At: e.at, Fault: faultinject.Fault(e.what)}
	}
	return faultinject.Injection{At: e.at, Act: func(ctx context.Context) {
		var of target
		if a.each {
			for _, t := range r.targets {
				if names := targetsOf(r.workload); n < len(names) && t.Name == strings.ReplaceAll(names[n], "RUN", r.at.run) {
					of = t
				}
			}
		}
		if err := a.do(ctx, r, of); err != nil {
			r.say("%s: %v", e.what, err)
		}
	}}
}

// has reports whether an act, or one of those that begin so, is part of the plan.
func (p scenario) has(prefix string) bool {
	for _, e := range p.events {
		if strings.HasPrefix(e.what, prefix) {
			return true
		}
	}
	return false
}

// cancels reports whether a Transaction is deleted that is to be rolled back then.
func (p scenario) cancels() bool {
	return slices.ContainsFunc(p.events, func(e event) bool { return isAct(e.what) && strings.HasSuffix(e.what, rollback) })
}

// deletes reports whether a Transaction is deleted.
func (p scenario) deletes() bool {
	return slices.ContainsFunc(p.events, func(e event) bool { return actClass(e.what) == "Transaction deleted" })
}

// foreign reports whether anyone but Janus acts.
func (p scenario) foreign() bool {
	for _, e := range p.events {
		if a, _, ok := actOf(e.what); ok && a.class != "clock" && a.class != "second Janus" && a.class != "suspended" {
			return true
		}
	}
	return false
}

// forAWhile does something and has it made good a little later.
func forAWhile(do func(context.Context, *run, target) error) func(context.Context, *run, target) error {
	return func(ctx context.Context, r *run, of target) error {
		err := do(ctx, r, of)
		r.all.Go(func() {
			time.Sleep(again)
			if err := r.restore(ctx); err != nil {
				r.say("give back: %v", err)
			}
		})
		return err
	}
}

// restored gives back what acts have taken away for good.
func (r *run) restored() error {
	if r.plan.has("stopped-then-cancelled") || r.plan.has("account-deleted") || r.plan.has("rights-deleted") || r.plan.has("quota-filled") {
		return r.restore(r.ctx)
	}
	return nil
}

// altered reports whether the place may not be what it was, or is not at once: the
// API server keeps quotas and rights in caches.
func (r *run) altered() bool {
	return r.Finalizes || r.plan.has("namespace-") || r.plan.has("rights-") || r.plan.has("quota-") || r.plan.has("account-")
}

func (r *run) restore(ctx context.Context) error {
	if err := r.goOn(ctx); err != nil || !r.altered() {
		return err
	}
	quotas := r.Kube.CoreV1().ResourceQuotas(r.at.namespace)
	if err := quotas.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("delete the quota: %w", err)
	}
	return r.entitle(r.Rights, r.at)
}
