package lifecycle

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/test/harness"
)

// TestRequestsOfATransactionOfNPatches pins what a Transaction costs the API
// server: 4N+9 writes that last (a lock, the patch, the hand-over of the fields and the
// release for each change), N dry runs, and what is read.
func TestRequestsOfATransactionOfNPatches(t *testing.T) {
	for name, account := range map[string]string{"lists": "", "reads": "serviceAccountName: reader\n"} {
		for _, n := range []int{1, 10, 50} {
			t.Run(fmt.Sprint(n, " targets that the ServiceAccount ", name), func(t *testing.T) { nPatches(t, account, n) })
		}
	}
}

// nPatches counts the requests of n patches by a ServiceAccount, which may list the targets if none
// is named.
func nPatches(t *testing.T, account string, n int) {
	e := harness.New(t)
	e.Apply(mayPatch)
	spec := account + patches(e, n)
	e.Start(harness.WithPolicy(unhurried()), harness.WithTrust(time.Hour))
	begin := time.Now()
	e.Submit("txn", spec)
	txn := e.Ended("txn")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	e.AwaitEvent("txn", string(api.PhaseCommitted))

	counts := requestsOf(e, begin)

	t.Log("\n" + counts.String())
	expected := requests{
		"patch transactions":                     2, // the finalizer
		"update transactions/status":             4, // Preparing, Committing, all in effect, Committed
		"get transactions":                       1,
		"create leases":                          n,
		"list leases":                            1, // those that stand in for some of the namespace
		"delete leases":                          n,
		"get serviceaccounts":                    1, // janusd reads it four times a second
		"create selfsubjectaccessreviews":        2, // get and patch of ConfigMaps
		"get configmaps, impersonated":           2 * n,
		"dry-run patch configmaps, impersonated": n,
		"patch configmaps, impersonated":         2 * n,
		"create configmaps":                      1, // the before-images
		"patch configmaps":                       1, // their finalizer
		"delete configmaps":                      1,
		"get configmaps":                         1,                              // the before-images
		"create events":                          1 + phasesThatLasted(e, "txn"), // Committed
	}
	if n > 1 {
		expected["create selfsubjectaccessreviews"] = 3 // list of ConfigMaps
	}
	if n > 1 && account == "" {
		expected["list configmaps, impersonated"] = 1
		expected["get configmaps, impersonated"] = n
	}
	assert.Equal(t, expected, counts)
	assert.LessOrEqual(t, counts.writes()-phasesThatLasted(e, "txn"), 4*n+10, "with the event")
}

// patches makes n ConfigMaps, and returns the spec of a Transaction that patches them.
func patches(e *harness.Env, n int) string {
	var changes strings.Builder
	changes.WriteString("changes:\n")
	for i := range n {
		e.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}, data: {version: \"1\"}}", i))
		fmt.Fprintf(&changes, "- {target: {apiVersion: v1, kind: ConfigMap, name: c-%d}, type: Patch, content: {data: {version: \"2\"}}}\n", i)
	}
	return changes.String()
}

// TestRequestsOfLocksOfANamespace: with one Lease for all locks of a namespace, all are taken by one
// request, and released by one.
func TestRequestsOfLocksOfANamespace(t *testing.T) {
	const n = 20
	e := harness.New(t)
	spec := patches(e, n)
	e.Start(harness.WithPolicy(unhurried()), harness.WithTrust(time.Hour), harness.LocksInTables())
	begin := time.Now()
	txn := e.Run("txn", spec)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	counts := requestsOf(e, begin)
	t.Log("\n" + counts.String())
	leases := requests{}
	for what, n := range counts {
		if strings.HasSuffix(what, " leases") {
			leases[what] = n
		}
	}
	assert.Equal(t, requests{"create leases": 1, "list leases": 1, "delete leases": 1}, leases)
	assert.LessOrEqual(t, counts.writes()-phasesThatLasted(e, "txn"), 2*n+12, "with the event")
	e.NothingLeft("txn")
}

// mayPatch is a ServiceAccount that may patch ConfigMaps, and not list them.
const mayPatch = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
subjects: [{kind: ServiceAccount, name: reader}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
`

// unhurried is a policy under which a slow machine makes no difference.
func unhurried() plan.Policy {
	policy := harness.FastPolicy
	policy.Lateness = time.Hour
	return policy
}

// Of targets that do not exist two lists tell: before the locks, and under them. An answer that
// one does not exist is confirmed.
func TestRequestsOfATransactionOfNCreates(t *testing.T) {
	const n = 10
	for name, c := range map[string]struct {
		account     string
		lists, gets int
	}{
		"listed": {"", 2, 0},
		"read":   {"serviceAccountName: reader, ", 0, 4 * n},
	} {
		t.Run(name, func(t *testing.T) {
			e := harness.New(t)
			e.Apply(strings.ReplaceAll(mayPatch, "verbs: [get, patch]", "verbs: [get, patch, create, delete]"))
			var changes strings.Builder
			changes.WriteString("{" + c.account + "changes: [")
			for i := range n {
				fmt.Fprintf(&changes, "{target: {apiVersion: v1, kind: ConfigMap, name: c-%d}, type: Create, content: {data: {version: \"2\"}}},\n", i)
			}
			changes.WriteString("]}")
			e.Start(harness.WithPolicy(unhurried()), harness.WithTrust(time.Hour))
			begin := time.Now()
			txn := e.Run("txn", changes.String())
			require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			counts := requestsOf(e, begin)
			t.Log("\n" + counts.String())
			assert.Equal(t, c.lists, counts["list configmaps, impersonated"])
			assert.Equal(t, c.gets, counts["get configmaps, impersonated"])
			assert.Equal(t, n, counts["create configmaps, impersonated"])
		})
	}
}

// phasesThatLasted is how many events there are about phases that took more than a second, as
// on a slow machine.
func phasesThatLasted(e *harness.Env, name string) (n int) {
	for _, event := range e.Events(name) {
		switch api.Phase(event.Reason) {
		case api.PhasePreparing, api.PhasePrepared, api.PhaseCommitting:
			n++
		}
	}
	return n
}

// To run again what is there already costs one read of each target, and no write of any.
func TestRequestsOfATransactionThatChangesNothing(t *testing.T) {
	const n = 10
	e := harness.New(t)
	spec := patches(e, n)
	policy := harness.FastPolicy
	policy.Lateness = time.Hour
	e.Start(harness.WithPolicy(policy))
	begin, before := time.Now(), requests{}
	count := func(name string) requests {
		txn := e.Run(name, spec)
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		e.AwaitEvent(name, string(api.PhaseCommitted))
		all := requestsOf(e, begin)
		delete(all, "create events") // On a slow machine phases last.
		defer func() { before = all }()
		return all.minus(before)
	}
	first := count("first")
	again := count("again").minus(first)
	t.Log("\n" + again.String())
	assert.Equal(t, requests{
		"get configmaps, impersonated": n, "patch configmaps, impersonated": -2 * n,
		"get configmaps":                  -1, // the before-images, for the hand-over
		"create selfsubjectaccessreviews": -3, // asked a moment ago
	}, again)
}

// requests are counts of requests by what they are.
type requests map[string]int

func (r requests) String() string {
	var lines []string
	for what, n := range r {
		lines = append(lines, fmt.Sprintf("%4d %s", n, what))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// writes counts those that last, events among them.
func (r requests) writes() (total int) {
	for what, n := range r {
		verb, resource, _ := strings.Cut(what, " ")
		switch verb {
		case "create", "update", "patch", "delete":
			if resource != "selfsubjectaccessreviews" {
				total += n
			}
		}
	}
	return total
}

// requestsOf counts the requests that Janus has made for the Transactions of a
// namespace since a time. Discovery and the watch are those of the process.
func requestsOf(e *harness.Env, since time.Time) requests {
	counts := requests{}
	account := "system:serviceaccount:" + e.Namespace + ":"
	for _, r := range e.Audit() {
		impersonated := strings.HasPrefix(r.ImpersonatedUser, account)
		inSystem := r.Namespace == harness.SystemNamespace && r.Received.After(since)
		if r.Resource == "" || r.Namespace != e.Namespace && !impersonated && !inSystem {
			continue
		}
		if r.Resource == "transactions" && (r.Verb == "list" || r.Verb == "watch") {
			continue
		}
		what := r.Verb + " " + r.Resource
		if r.Subresource != "" {
			what += "/" + r.Subresource
		}
		if r.DryRun {
			what = "dry-run " + what
		}
		if impersonated && r.Resource != "selfsubjectaccessreviews" {
			what += ", impersonated"
		}
		counts[what]++
	}
	return counts
}
