package wiring

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
)

const rolesGroup = "rbac.authorization.k8s.io"

// grants: a role that has the right, or a binding of the Transaction's ServiceAccount.
func grants(e, later step, err error) bool {
	if e.ref.GVK.Group != rolesGroup || e.kind == api.Delete || e.ref.Namespace != "" && e.ref.Namespace != later.ref.Namespace {
		return false
	}
	switch e.ref.GVK.Kind {
	case "Role", "ClusterRole":
		return slices.ContainsFunc(listAt(e.content, "rules"), func(rule any) bool { return covers(rule, later, errclass.VerbOf(err)) })
	case "RoleBinding", "ClusterRoleBinding":
		return slices.ContainsFunc(listAt(e.content, "subjects"), func(subject any) bool { return mutate.Includes(subject, e.ref.Namespace, later.account) })
	}
	return false
}

// covers reports whether a rule of a role allows a verb on the target of a change.
func covers(rule any, later step, verb string) bool {
	fields, _ := rule.(map[string]any)
	names := listAt(fields, "resourceNames")
	return anyOf(listAt(fields, "verbs"), verb) && anyOf(listAt(fields, "apiGroups"), later.ref.GVR.Group) &&
		anyOf(listAt(fields, "resources"), later.ref.GVR.Resource) && (len(names) == 0 || slices.Contains(names, any(later.ref.Name)))
}

// anyOf reports whether a list of a role has a word, or the star for all of them.
func anyOf(list []any, word string) bool {
	return slices.Contains(list, any(word)) || slices.Contains(list, any("*"))
}

// listAt returns a list in an object; nil if there is none.
func listAt(object map[string]any, name string) []any {
	list, _ := object[name].([]any)
	return list
}
