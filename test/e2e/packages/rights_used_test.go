package packages

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

// A right is one verb on one resource that a user was given.
type right struct {
	role string
	// namespace is where it holds; empty for everywhere.
	namespace             string
	verb, group, resource string
	// names are those that it is restricted to, if it is.
	names []string
}

func (r right) String() string {
	where := "everywhere"
	if r.namespace != "" {
		where = "in " + r.namespace
	}
	return fmt.Sprintf("%s: %s %s.%s %s", r.role, r.verb, r.resource, r.group, where)
}

// A request is what a user asked of the API server.
type request struct{ verb, group, resource, namespace, name string }

func (q request) String() string {
	return fmt.Sprintf("%s %s.%s in %q", q.verb, q.resource, q.group, q.namespace)
}

// allows says whether the request may be made by this right.
func (r right) allows(q request) bool {
	return r.verb == q.verb && r.group == q.group && r.resource == q.resource &&
		(r.namespace == "" || r.namespace == q.namespace) &&
		(len(r.names) == 0 || slices.Contains(r.names, q.name))
}

// unused returns the rights that no request needed. A right that holds everywhere is not
// needed for what a Role allows as well, nor for what is in janusd's own namespace, where a
// Role would do.
func unused(rights []right, requests []request) []string {
	var roles []right
	for _, r := range rights {
		if r.namespace != "" {
			roles = append(roles, r)
		}
	}
	var out []string
	for _, r := range rights {
		needed := slices.ContainsFunc(requests, func(q request) bool {
			if !r.allows(q) {
				return false
			}
			narrower := func(role right) bool { return role.allows(q) }
			return r.namespace != "" || q.namespace != ownNamespace && !slices.ContainsFunc(roles, narrower)
		})
		if !needed {
			out = append(out, r.String())
		}
	}
	return out
}

// list returns the rights that rules give one by one.
func list(t *testing.T, role, namespace string, rules []rbacv1.PolicyRule) (out []right) {
	t.Helper()
	for _, rule := range rules {
		require.Empty(t, rule.NonResourceURLs, "%s: an audit log of requests for resources does not show their use", role)
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					out = append(out, right{role, namespace, verb, group, resource, rule.ResourceNames})
				}
			}
		}
	}
	return out
}

// rightsOf reads what the bindings of the cluster give to a user or ServiceAccount.
func (d *desk) rightsOf(who rbacv1.Subject) (out []right) {
	d.t.Helper()
	names := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == who.Kind && s.Name == who.Name && s.Namespace == who.Namespace
		})
	}
	for _, b := range read[rbacv1.ClusterRoleBindingList](d, "kubectl get clusterrolebindings").Items {
		if names(b.Subjects) {
			out = append(out, d.rightsIn(b.RoleRef, "", "")...)
		}
	}
	for _, b := range read[rbacv1.RoleBindingList](d, "kubectl get rolebindings -A").Items {
		if names(b.Subjects) {
			out = append(out, d.rightsIn(b.RoleRef, b.Namespace, b.Namespace)...)
		}
	}
	require.NotEmpty(d.t, out, "%s has no rights", who.Name)
	return out
}

func (d *desk) rightsIn(ref rbacv1.RoleRef, from, namespace string) []right {
	d.t.Helper()
	role := ref.Kind + " " + ref.Name
	if ref.Kind == "ClusterRole" {
		return list(d.t, role, namespace, read[rbacv1.ClusterRole](d, "kubectl get clusterrole "+ref.Name).Rules)
	}
	return list(d.t, role, namespace, read[rbacv1.Role](d, "kubectl get role -n "+from+" "+ref.Name).Rules)
}

// A log is what the API server was asked by one user since some moment, as that user.
// What it did as another user is that one's, but for the act of doing so.
type log struct{ done, refused []request }

// approving is the field manager of the requests by which someone approves a plan.
const approving = "packages-approving"

// asked reads the audit log.
func (d *desk) asked(user string, since time.Time) (out log) {
	d.t.Helper()
	events, err := testcluster.Shared(d.t).Audit(user)
	require.NoError(d.t, err)
	for _, e := range events {
		if e.User != user && e.ImpersonatedUser != user || e.Received.Before(since) {
			continue
		}
		q := request{e.Verb, e.APIGroup, e.Resource, e.Namespace, e.Name}
		if e.Subresource != "" {
			q.resource += "/" + e.Subresource
		}
		account, acts := strings.CutPrefix(e.ImpersonatedUser, "system:serviceaccount:")
		switch {
		case e.User == user && acts:
			namespace, name, _ := strings.Cut(account, ":")
			out.done = append(out.done, request{"impersonate", "", "serviceaccounts", namespace, name})
		case e.Denied && !slices.Contains(out.refused, q):
			out.refused = append(out.refused, q)
		case e.Code/100 == 2 && strings.Contains(e.RequestURI, "fieldManager="+approving):
			// What a policy asks of the authorizer is in no audit log. It refuses this without the verb.
			out.done = append(out.done, q, request{"approve", v1alpha1.ApproveGroup, e.Resource, e.Namespace, e.Name})
		case e.Code/100 == 2, e.Code == 404 && e.Verb == "get": // It may be needed to know that something is not there.
			out.done = append(out.done, q)
		}
	}
	return out
}

// exactly wants the user to have used each of its rights, and to have been refused nothing
// but what is listed. A watch is in the log when it has ended, some moments after.
func (d *desk) exactly(user string, rights []right, since time.Time, refused ...string) {
	d.t.Helper()
	var seen log
	var left []string
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		seen = d.asked(user, since)
		if left = unused(rights, seen.done); len(left) == 0 {
			break
		}
	}
	assert.Empty(d.t, left, "these rights of %s were never needed", user)
	var denied []string
	for _, q := range seen.refused {
		denied = append(denied, q.String())
	}
	assert.ElementsMatch(d.t, refused, denied, "what %s was refused", user)
}

func TestARightThatIsNotNeededIsFound(t *testing.T) {
	everywhere := right{role: "all", verb: "get", resource: "secrets"}
	there := right{role: "there", namespace: "shop", verb: "get", resource: "secrets"}
	named := right{role: "named", namespace: "shop", verb: "impersonate", resource: "serviceaccounts", names: []string{"a", "b"}}
	get := func(namespace string) request {
		return request{verb: "get", resource: "secrets", namespace: namespace, name: "x"}
	}
	act := func(name string) request {
		return request{verb: "impersonate", resource: "serviceaccounts", namespace: "shop", name: name}
	}
	for name, c := range map[string]struct {
		rights   []right
		requests []request
		unused   []string
	}{
		"needed":                                {[]right{everywhere}, []request{get("shop")}, nil},
		"no request at all":                     {[]right{everywhere}, nil, []string{"all: get secrets. everywhere"}},
		"another verb, resource or group":       {[]right{everywhere}, []request{{verb: "list", resource: "secrets"}, {verb: "get", resource: "secrets/x"}, {verb: "get", group: "g", resource: "secrets"}}, []string{"all: get secrets. everywhere"}},
		"another namespace":                     {[]right{there}, []request{get("other")}, []string{"there: get secrets. in shop"}},
		"a Role would do":                       {[]right{everywhere, there}, []request{get("shop")}, []string{"all: get secrets. everywhere"}},
		"both, each for its part":               {[]right{everywhere, there}, []request{get("shop"), get("other")}, nil},
		"a Role in janusd's namespace would do": {[]right{everywhere}, []request{get(ownNamespace)}, []string{"all: get secrets. everywhere"}},
		"one of the names":                      {[]right{named}, []request{act("b")}, nil},
		"none of the names":                     {[]right{named}, []request{act("c")}, []string{"named: impersonate serviceaccounts. in shop"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.unused, unused(c.rights, c.requests)) })
	}
}
