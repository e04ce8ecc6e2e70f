package lifecycle

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// revisionsOf lists the ControllerRevisions of the namespace, by number.
func revisionsOf(t *testing.T, e *harness.Env) []appsv1.ControllerRevision {
	t.Helper()
	list, err := e.Kube.AppsV1().ControllerRevisions(e.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=janus"})
	require.NoError(t, err)
	slices.SortFunc(list.Items, func(a, b appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	return list.Items
}

func namesOf(revisions []appsv1.ControllerRevision) (out []string) {
	for _, r := range revisions {
		out = append(out, r.Name)
	}
	return out
}

// setTo is a spec that sets the version of a, and remembers so many Transactions.
func setTo(version string, limit int) string {
	return fmt.Sprintf(`{revisionHistoryLimit: %d, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: %q}}}]}`, limit, version)
}

func TestTheLastCommittedTransactionsOfANamespaceAreRemembered(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start()

	var all []*api.Transaction
	for i := range 4 {
		txn := e.Run(fmt.Sprintf("release-%d", i), setTo(fmt.Sprint(i+2), 2))
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		assert.Equal(t, int64(i+1), txn.Status.Revision)
		assert.NotEmpty(t, txn.Status.RevisionDigest)
		e.NothingLeft(txn.Name)
		all = append(all, txn)
	}
	assert.Equal(t, []string{"janus-revision-3", "janus-revision-4"}, namesOf(revisionsOf(t, e)))
	for i, txn := range all {
		there := e.Object("ConfigMap/"+txn.Status.RollbackRef.Name) != nil
		assert.Equal(t, i >= 2, there, "before-images of %s", txn.Name)
		assert.NotNil(t, e.Transaction(txn.Name))
	}

	last := revisionsOf(t, e)[1]
	assert.Equal(t, int64(4), last.Revision)
	assert.Equal(t, all[3].UID, last.OwnerReferences[0].UID)
	assert.Equal(t, "release-3", last.Labels["janus.io/transaction"])
	var content struct {
		Items []struct {
			Type, Set string
			Before    api.BeforeImage
		}
	}
	require.NoError(t, json.Unmarshal(last.Data.Raw, &content))
	require.Len(t, content.Items, 1)
	assert.Equal(t, "Patch", content.Items[0].Type)
	assert.Equal(t, *all[3].Status.Items[0].Before, content.Items[0].Before)
	assert.NotEmpty(t, content.Items[0].Set)

	e.Delete("release-3", metav1.DeletePropagationBackground)
	e.Gone("release-3")
	e.Until("its revision goes with it", func() bool { return len(revisionsOf(t, e)) == 1 })
	assert.Equal(t, int64(5), e.Run("next", setTo("9", 2)).Status.Revision, "a number is never given again")
}

// Who counts on its own may lose the counter: then the numbers in use are not given again.
func TestNumbersGoOnWithoutTheirCounter(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	first := e.Start()
	assert.Equal(t, int64(1), e.Run("one", setTo("2", 5)).Status.Revision)
	first.Stop()
	require.NoError(t, e.Kube.AppsV1().ControllerRevisions(e.Namespace).Delete(t.Context(), "janus-revisions", metav1.DeleteOptions{}))
	e.Start()
	assert.Equal(t, int64(2), e.Run("two", setTo("3", 5)).Status.Revision)
	require.NoError(t, e.Kube.AppsV1().ControllerRevisions(e.Namespace).Delete(t.Context(), "janus-revisions", metav1.DeleteOptions{}))
	assert.Equal(t, int64(3), e.Run("three", setTo("4", 5)).Status.Revision, "the process finds out that it is gone")
}

func TestATransactionWithoutAHistoryLimitIsHistoryIncompleteAndForgetsNothing(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start()
	e.Run("remembered", setTo("2", 1))
	txn := e.Run("plain", setTo("3", 0))
	assert.Zero(t, txn.Status.Revision)
	assert.Nil(t, txn.Status.RollbackRef)
	e.NothingLeft("plain")
	assert.Equal(t, []string{"janus-revision-1"}, namesOf(revisionsOf(t, e)))
}

func TestWhatHasNotCommittedIsHistoryIncomplete(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Refuse()
	e.Start()
	txn := e.Run("back", "revisionHistoryLimit: 5"+fixture.PatchAB+fixture.RefusedAtCommit)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, int64(1), txn.Status.Revision, "it has held its locks")
	assert.Empty(t, txn.Status.RevisionDigest)
	assert.Empty(t, revisionsOf(t, e))
	refused := e.Run("refused", "revisionHistoryLimit: 5\nchanges: [{target: {apiVersion: v1, kind: ConfigMap, name: nowhere}, type: Patch, content: {data: {a: b}}}]")
	require.Equal(t, api.PhaseFailed, refused.Status.Phase, harness.Describe(refused))
	assert.Zero(t, refused.Status.Revision, "it has held no locks")
	assert.Equal(t, int64(2), e.Run("release", setTo("2", 5)).Status.Revision)
	undo := e.Run("undo", "undoOf: {name: back}")
	assert.Contains(t, harness.Describe(undo), "NotRemembered")
}

// A number that another client has taken, or another Transaction takes at the same time, is
// stepped over, and each Transaction has one revision.
func TestNoTwoTransactionsHaveTheSameNumber(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply("{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: janus-revision-3}, revision: 3, data: {made-by: person}}")
	for range 2 {
		e.Start(harness.WithWorkers(4))
	}
	const n = 8
	for i := range n {
		e.Apply(fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c-%d}, data: {version: \"1\"}}", i))
	}
	for i := range n {
		e.Submit(fmt.Sprintf("txn-%d", i), fmt.Sprintf(
			`{revisionHistoryLimit: 100, changes: [{target: {apiVersion: v1, kind: ConfigMap, name: c-%d}, type: Patch, content: {data: {version: "2"}}}]}`, i))
	}
	numbers := map[int64]string{}
	for i := range n {
		txn := e.Ended(fmt.Sprintf("txn-%d", i))
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		require.NotZero(t, txn.Status.Revision)
		assert.Empty(t, numbers[txn.Status.Revision], "%s has the number %d too", txn.Name, txn.Status.Revision)
		numbers[txn.Status.Revision] = txn.Name
	}
	assert.NotContains(t, numbers, int64(3), "it is another client's")
	revisions := revisionsOf(t, e)
	assert.Len(t, revisions, n)
	for _, r := range revisions {
		assert.Equal(t, numbers[r.Revision], r.OwnerReferences[0].Name)
	}
	assert.Equal(t, "person", e.Value("apps/v1 ControllerRevision/janus-revision-3", "data", "made-by"))
}

func TestARevisionHasNoContentOfASecret(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: before-canary}}`)
	e.Start()
	patch := func(name, change string) appsv1.ControllerRevision {
		txn := e.Run(name, `{revisionHistoryLimit: 5, changes: [{name: `+change+`, target: {apiVersion: v1, kind: Secret, name: s}, type: Patch, content: {stringData: {password: after-canary}}}]}`)
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		assert.NotNil(t, e.Object("Secret/"+txn.Status.RollbackRef.Name), "its before-image is kept in a Secret")
		assert.Nil(t, e.Object("ConfigMap/"+txn.Status.RollbackRef.Name))
		all := revisionsOf(t, e)
		return all[len(all)-1]
	}
	first := patch("one", "password")
	assert.NotContains(t, string(first.Data.Raw), "canary")
	assert.NotContains(t, string(first.Data.Raw), `"set"`, "a digest of a short text tells the text")

	second := patch("two", "the-same")
	const label = "janus.io/changes"
	assert.Equal(t, first.Labels[label], second.Labels[label], "they make the same change")
	e.Apply(fixture.AB)
	e.Run("three", setTo("2", 5))
	all := revisionsOf(t, e)
	assert.NotEqual(t, first.Labels[label], all[len(all)-1].Labels[label])
}

// What it costs to be remembered is on the page about history.
func TestRequestsOfARememberedTransaction(t *testing.T) {
	e := harness.New(t)
	e.Apply(fixture.AB)
	policy := harness.FastPolicy
	policy.Lateness = time.Hour
	e.Start(harness.WithPolicy(policy))
	begin, before := time.Now(), requests{}
	count := func(name, spec string) requests {
		e.Run(name, spec)
		e.AwaitEvent(name, string(api.PhaseCommitted))
		all := requestsOf(e, begin)
		delete(all, "create events") // On a slow machine phases last.
		defer func() { before = all }()
		return all.minus(before)
	}
	plain := count("plain", setTo("2", 0))
	first := count("first", setTo("3", 1)).minus(plain)
	t.Log("\n" + first.String())
	assert.Equal(t, requests{
		"get controllerrevisions": 1, "list controllerrevisions": 2, "create controllerrevisions": 2, "delete configmaps": -1,
		"create selfsubjectaccessreviews": -2, // The rights were asked for a moment ago.
	}, first, "it makes the counter of the namespace")
	second := count("second", setTo("4", 1)).minus(plain)
	t.Log("\n" + second.String())
	assert.Equal(t, requests{
		"update controllerrevisions": 1, "list controllerrevisions": 1, "create controllerrevisions": 1,
		"get transactions": 1, "get configmaps": 1, "delete controllerrevisions": 1,
		"create selfsubjectaccessreviews": -2,
	}, second, "the before-images of the old one are deleted in place of its own")
}

func (r requests) minus(other requests) requests {
	out := requests{}
	for what, n := range r {
		out[what] = n - other[what]
	}
	for what, n := range other {
		out[what] = r[what] - n
	}
	for what, n := range out {
		if n == 0 {
			delete(out, what)
		}
	}
	return out
}

// Nothing of what it has left for itself stands in the way of a deletion: the garbage
// collector has to be able to take the Transaction off the revision.
func TestARememberedTransactionIsDeletedWithoutWhatItOwns(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start()
	require.Equal(t, api.PhaseCommitted, e.Run("release", "revisionHistoryLimit: 10"+fixture.PatchAB).Status.Phase)
	e.Delete("release", metav1.DeletePropagationOrphan)
	e.Gone("release")
	left := e.Object("apps/v1 ControllerRevision/janus-revision-1")
	require.NotNil(t, left)
	assert.Empty(t, left.GetOwnerReferences())
	// It has no owner now, and its number is not given again.
	txn := e.Run("next", "revisionHistoryLimit: 10\nchanges: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: \"7\"}}}]")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, int64(2), txn.Status.Revision)
}

// Anyone who may make ControllerRevisions could take the highest number that there is.
func TestARevisionOfAnAbsurdNumberUsesUpNoNumbers(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	one := e.Run("one", "revisionHistoryLimit: 10\nchanges:\n  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Create, content: {data: {a: b}}}\n")
	e.Apply(fmt.Sprintf("{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: janus-revision-%d, labels: {app.kubernetes.io/managed-by: janus}, "+
		"ownerReferences: [{apiVersion: backup.janus.io/v1alpha1, kind: Transaction, name: one, uid: %s, controller: true}]}, revision: 1, data: {}}", math.MaxInt64, one.UID))

	two := e.Run("two", "revisionHistoryLimit: 10\nchanges:\n  - {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {a: c}}}\n")

	assert.Equal(t, one.Status.Revision+1, two.Status.Revision, harness.Describe(two))
}

// Running the same again pushes out no older revision, whether it writes nothing or puts back what
// another client has changed; and it does not pile up.
func TestRunningTheSameAgainPushesOutNothing(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.AB)
	e.Start()
	e.Run("one", setTo("2", 2))
	second := e.Run("two", setTo("3", 2))
	for i := range 4 {
		same := e.Run(fmt.Sprint("same-", i), setTo("3", 2))
		require.Equal(t, api.PhaseCommitted, same.Status.Phase, harness.Describe(same))
		assert.True(t, same.Status.Items[0].Unchanged)
		assert.NotEmpty(t, same.Status.Items[0].Before.After)
		assert.Equal(t, second.Status.Items[0].Before.After, same.Status.Items[0].Before.After)
	}
	assert.Equal(t, []string{"janus-revision-1", "janus-revision-2", "janus-revision-5", "janus-revision-6"}, namesOf(revisionsOf(t, e)))
	assert.Equal(t, "true", revisionsOf(t, e)[2].Labels["janus.io/unchanged"])

	e.Merge("person", "ConfigMap/a", `{"data": {"version": "9"}}`)
	back := e.Run("back", setTo("3", 2))
	assert.False(t, back.Status.Items[0].Unchanged)
	left := revisionsOf(t, e)
	assert.Equal(t, []string{"janus-revision-1", "janus-revision-2", "janus-revision-6", "janus-revision-7"}, namesOf(left))
	assert.Equal(t, left[1].Labels["janus.io/state"], left[3].Labels["janus.io/state"])
	assert.NotEqual(t, left[0].Labels["janus.io/state"], left[3].Labels["janus.io/state"])
	assert.NotContains(t, left[3].Labels, "janus.io/unchanged")

	e.Run("three", setTo("4", 2))
	assert.Equal(t, []string{"janus-revision-2", "janus-revision-6", "janus-revision-7", "janus-revision-8"}, namesOf(revisionsOf(t, e)), "what counts pushes out the oldest")
	assert.Empty(t, e.Run("plain", setTo("5", 0)).Status.Items[0].Before.After, "it is of use to the history alone")
}

// What a custom resource and a Deployment are to have is compared by its meaning, with the defaults
// that the API server adds.
func TestWhatMeansTheSameLeavesTheSameState(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	deployment := func(name, kind, more, cpu, memory string) string {
		txn := e.Run(name, fmt.Sprintf(`{revisionHistoryLimit: 9, changes: [{target: {apiVersion: apps/v1, kind: Deployment, name: web}, type: %s, content: {metadata: {labels: {app: web}}, spec: {%s replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web, resources: {limits: {cpu: %q, memory: %q}}}]}}}}}]}`, kind, more, cpu, memory))
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		for _, r := range revisionsOf(t, e) {
			if r.Revision == txn.Status.Revision {
				require.NotEmpty(t, r.Labels["janus.io/state"])
				return r.Labels["janus.io/state"]
			}
		}
		return ""
	}
	first := deployment("one", "Create", "", "1", "1Gi")
	other := deployment("two", "Update", "", "2", "1Gi")
	assert.NotEqual(t, first, other)
	assert.Equal(t, first, deployment("three", "Update", "revisionHistoryLimit: 10, ", "1000m", "1024Mi"), "10 is the default")
}
