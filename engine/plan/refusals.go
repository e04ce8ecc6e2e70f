package plan

import (
	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

const (
	admissionGroup = "admissionregistration.k8s.io"
	rolesGroup     = "rbac.authorization.k8s.io"
	apiGroup       = "apiregistration.k8s.io"
)

// Decides reports whether the target of an item has a say in whether that of another may
// be written, as far as kinds and a reason tell.
func Decides(item, other *api.Item, reason string) bool {
	defines, rules := defines(item, other), rules(item, other)
	switch reason {
	case errclass.Invalid, errclass.TooLarge:
		return defines || groupOf(item) == admissionGroup
	case errclass.AccessDenied:
		return rules || groupOf(item) == rolesGroup
	case errclass.Rejected:
		return rules
	case errclass.NotFound:
		return groupOf(item) == rolesGroup && groupOf(other) == rolesGroup
	case errclass.KindNotFound:
		return defines
	case errclass.AlreadyAllocated:
		return is(item, "", "Service")
	}
	return false
}

func groupOf(item *api.Item) string { return item.Target.Identity().APIVersion }

func is(item *api.Item, group, kind string) bool {
	return groupOf(item) == group && item.Target.Kind == kind
}

// defines: a CustomResourceDefinition of the kind of the other.
func defines(item, other *api.Item) bool {
	return is(item, "apiextensions.k8s.io", "CustomResourceDefinition") && item.Target.Name == other.Resource+"."+groupOf(other)
}

// restricts: what refuses requests and makes none possible.
func restricts(item, other *api.Item) bool {
	near := item.Target.Namespace == other.Target.Namespace && other.Target.Namespace != ""
	return groupOf(item) == admissionGroup || near && (is(item, "", "ResourceQuota") || is(item, "", "LimitRange"))
}

// rules: the Namespace of the other counts too, by whose labels admission goes.
func rules(item, other *api.Item) bool {
	return restricts(item, other) || is(item, "", "Namespace") && item.Target.Name == other.Target.Namespace
}

// mayRefuse reports whether what change j has done may be why the compensation of item i was
// refused. To roll back the creation of a definition, a role or a Namespace makes nothing
// possible that was not.
func mayRefuse(t *api.Transaction, j, i int, refusal error) bool {
	item, other := &t.Status.Items[j], &t.Status.Items[i]
	reason, by := errclass.ReasonOf(refusal), errclass.RefuserOf(refusal)
	switch {
	case by == errclass.ByDeadAPI:
		return groupOf(item) == apiGroup
	case by == errclass.ByConversion:
		return defines(item, other) && !Creates(t, j)
	case by == errclass.ByUncountedQuota:
		return is(item, "", "ResourceQuota") && item.Target.Namespace == other.Target.Namespace
	case reason == errclass.WebhookUnavailable:
		behind := item.Target.Namespace != "" && item.Target.Namespace == errclass.BackendOf(refusal)
		return groupOf(item) == admissionGroup || behind
	case reason == errclass.AlreadyAllocated, Creates(t, j) && !restricts(item, other):
		return false
	}
	return Decides(item, other, reason)
}

// SetAside records that item i was refused and is to be rolled back once others are. What it
// depends on is rolled back before it only if it may be the reason.
func SetAside(t *api.Transaction, item *api.Item, i int, refusal error) {
	item.SetAside, item.SetAsideFor = true, nil
	for _, j := range below(dependencies(t, ScheduleOf(t).Order), i) {
		if mayRefuse(t, j, i, refusal) {
			item.SetAsideFor = append(item.SetAsideFor, t.Status.Items[j].Name)
		}
	}
}
