package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
)

// An activation is decided when the Transaction begins, unless an earlier change may install or
// remove what it asks for: then it is decided when the turn of its change comes.

// Undecided reports whether the activation of change i is decided only when its turn comes, and was
// not yet. What was decided is on record.
func Undecided(t *api.Transaction, i int) bool {
	if i >= len(t.Spec.Changes) || t.Spec.Changes[i].Activation == nil || t.Status.Items[i].State != api.ItemPending {
		return false
	}
	return !slices.ContainsFunc(t.Status.Items[i].Results, func(r api.ConditionResult) bool { return r.Condition == api.ConditionActivation })
}

// AskedInTurn reports whether it is asked only when the turn of change i comes whether it is wanted.
func AskedInTurn(t *api.Transaction, i int) bool {
	return i < len(t.Spec.Changes) && (ChangeOf(t, i).When != "" || Undecided(t, i))
}

// Deciders lists the changes that may decide the activation of change i: those that are made before
// it, and are of what makes the cluster serve kinds, or serve them no more.
func Deciders(t *api.Transaction, i int) []int {
	a := t.Spec.Changes[i].Activation
	if a == nil {
		return nil
	}
	var out []int
	for _, j := range ScheduleOf(t).allBefore(i) {
		if t.Status.Items[j].State != api.ItemSkipped && decides(&t.Spec.Changes[j], a) {
			out = append(out, j)
		}
	}
	return out
}

// decides reports whether a change is of a definition or an API that an activation asks about.
func decides(c *api.Change, a *api.Activation) bool {
	gv, err := schema.ParseGroupVersion(c.Target.APIVersion)
	if err != nil || c.Type == api.Await {
		return false
	}
	wanted, err := schema.ParseGroupVersion(a.APIVersion)
	anything := err != nil || a.Expression != ""
	switch {
	case gv.Group == "apiextensions.k8s.io" && c.Target.Kind == "CustomResourceDefinition":
		_, group, _ := strings.Cut(c.Target.Name, ".")
		return anything || group == wanted.Group
	case gv.Group == "apiregistration.k8s.io" && c.Target.Kind == "APIService":
		return anything || c.Target.Name == wanted.Version+"."+wanted.Group
	}
	return false
}

// allBefore lists the changes that are done before change i is begun.
func (s Schedule) allBefore(i int) []int {
	if s.needs == nil {
		return s.Order[:max(slices.Index(s.Order, i), 0)]
	}
	before := walk{needs: s.needs, seen: make([]int, len(s.Order))}
	if before.visit(i) != nil {
		return nil
	}
	return before.order[:len(before.order)-1]
}

// NotActivated says why a change is not made whose activation does not hold.
func NotActivated(item *api.Item, a *api.Activation) string {
	if a.Expression != "" {
		return fmt.Sprintf("%s is left as it is: activation is false (%s)", item.Target.String(), a.Expression)
	}
	return fmt.Sprintf("%s is left as it is: the cluster serves no kind %s in %s", item.Target.String(), a.Kind, a.APIVersion)
}
