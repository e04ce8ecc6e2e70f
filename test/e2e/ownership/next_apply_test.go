package ownership

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// The tests of this file look at what comes after a Transaction: the next write of
// those who wrote before.

const imageAndReplicas = `
changes:
  - {target: {apiVersion: apps/v1, kind: Deployment, name: web}, type: Patch, content: {spec: {replicas: 3, template: {spec: {containers: [{name: web, image: 'example.com/web:2', env: [{name: A, value: a2}]}]}}}}}`

func TestTheNextServerSideApplyOfTheOldOwnersFileDoesNotConflict(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		more  string
		phase api.Phase
	}{
		"after a commit":   {"", api.PhaseCommitted},
		"after a rollback": {fixture.RefusedAtCommit, api.PhaseRolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			e := harness.New(t)
			e.Refuse()
			kubectlApply(t, e, sharedWeb, "--server-side")
			before := managersOf(e.Object(webRef))
			e.Start()
			txn := e.Run("txn", imageAndReplicas+row.more)
			require.Equal(t, row.phase, txn.Status.Phase, harness.Describe(txn))
			assert.Equal(t, before, managersOf(e.Object(webRef)), "of the fields that it changed nobody else is the owner")

			assert.Equal(t, "deployment.apps/web serverside-applied", kubectlApply(t, e, sharedWeb, "--server-side"))
			now := e.Object(webRef)
			assert.Equal(t, int64(2), field(t, now, "spec", "replicas"))
			assert.Equal(t, "example.com/web:0", deep(now.Object, "spec", "template", "spec", "containers", "0", "image"))
			assert.Equal(t, "a", variable(now, "A")["value"])
			assert.Equal(t, before, managersOf(now))
			next := strings.NewReplacer("replicas: 2", "replicas: 4", "web:0", "web:5").Replace(sharedWeb)
			kubectlApply(t, e, next, "--server-side")
			assert.Equal(t, int64(4), field(t, e.Object(webRef), "spec", "replicas"))
		})
	}
}

func TestASecondTransactionDoesNotConflictWithTheFirst(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	e.Apply(fixture.ConfigMap)
	e.Start()
	patch := func(value, more string) string {
		return "changes:\n  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, " + more + "content: {data: {new: " + value + "}}}"
	}
	committedAll(t, e.Run("first", patch("one", "")))
	assert.Empty(t, harness.JanusManagers(e.Object("ConfigMap/app")), "nobody had the field before")
	committedAll(t, e.Run("second", patch("two", "")))
	committedAll(t, e.Run("unforced", patch("three", "force: false, ")))
	txn := e.Run("rolled-back", patch("four", "force: false, ")+fixture.RefusedAtCommit)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "three", e.Value("ConfigMap/app", "data", "new"))
	committedAll(t, e.Run("unforced-again", patch("five", "force: false, ")))
	assert.Equal(t, "five", e.Value("ConfigMap/app", "data", "new"))
	assert.Empty(t, harness.JanusManagers(e.Object("ConfigMap/app")))
	for _, item := range e.Transaction("second").Status.Items {
		assert.Empty(t, item.Taken, "what an earlier Transaction left is taken from nobody")
	}
}

func TestAPatchWithoutForceFailsOnAFieldOfAnotherManager(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.TwoConfigMaps)
	_, err := newOutsider(t, e, "gitops").apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: app-2}, data: {theirs: x}}", false)
	require.NoError(t, err)
	first, second := e.Object("ConfigMap/app"), e.Object("ConfigMap/app-2")
	e.Start()
	patch := func(value string) string {
		return patchApp + "  - {target: {apiVersion: v1, kind: ConfigMap, name: app-2}, type: Patch, force: false, content: {data: {theirs: " + value + "}}}"
	}

	txn := e.Run("other-value", patch("other"))

	refusedBefore(t, txn, errclass.FieldConflict, "gitops", ".data.theirs", "app-2", "force")
	e.Same(first, "ConfigMap/app")
	e.Same(second, "ConfigMap/app-2")
	e.NothingLeft("other-value")
	committedAll(t, e.Run("same-value", patch("x")))
}

func TestTheStatusListsWhatIsTakenFromWhom(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	sharedScene(t, e)
	e.Start()

	txn := e.Run("txn", imageAndReplicas)

	committedAll(t, txn)
	const container = `.spec.template.spec.containers[name="web"]`
	assert.ElementsMatch(t, []api.OwnedFields{
		{Manager: "kubectl", Fields: []string{container + `.env[name="A"].value`}},
		{Manager: "gitops", Fields: []string{container + ".image"}},
		{Manager: "autoscaler", Subresource: "scale", Fields: []string{".spec.replicas"}},
	}, txn.Status.Items[0].Taken)
	now := e.Object(webRef)
	assert.Equal(t, []string{"annotator Update", "autoscaler Update scale", "gitops Apply", "kubectl Apply"}, managersOf(now), "and given back")
}

// The size is that of the object as JSON, so that growth shows.
func TestTwoHundredTransactionsLeaveNoEntry(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.ConfigMap)
	e.Start()
	size := func() int {
		text, err := e.Object("ConfigMap/app").MarshalJSON()
		require.NoError(t, err)
		return len(text)
	}
	first, managers := 0, []string(nil)
	for n := 1; n <= 200; n++ {
		name := fmt.Sprintf("txn-%03d", n)
		committedAll(t, e.Run(name, fmt.Sprintf("changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {version: 'v%03d', ours: 'v%03d'}}}]", n, n)))
		if n == 1 {
			first, managers = size(), managersOf(e.Object("ConfigMap/app"))
		}
		e.Delete(name, metav1.DeletePropagationBackground)
	}
	now := e.Object("ConfigMap/app")
	t.Logf("the object has %d bytes after 1 Transaction and %d after 200; its managers are %v", first, size(), managersOf(now))
	assert.Empty(t, harness.JanusManagers(now))
	assert.Equal(t, managers, managersOf(now))
	// A resourceVersion may have grown by some digits.
	assert.InDelta(t, first, size(), 8)
	assert.Equal(t, "v200", e.Value("ConfigMap/app", "data", "ours"))
}

// Helm writes a merge patch as an update, a GitOps tool a forced apply. A twin that
// no Transaction has touched shows how they work without Janus.
func TestOtherAppliersWorkAfterwardsAsBefore(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"after a commit": "", "after a rollback": fixture.RefusedAtCommit} {
		t.Run(name, func(t *testing.T) {
			e := harness.New(t)
			e.Refuse()
			gitops := newOutsider(t, e, "gitops")
			release := func(object, tag string) {
				_, err := gitops.apply(strings.NewReplacer("name: web}, spec", "name: "+object+"}, spec").Replace(webImage(tag)), true)
				require.NoError(t, err)
				e.Merge("helm", "apps/v1 Deployment/"+object, `{"spec":{"replicas":`+tag+`,"revisionHistoryLimit":`+tag+`}}`)
			}
			for _, object := range []string{"web", "twin"} {
				kubectlApply(t, e, strings.Replace(sharedWeb, "name: web, labels", "name: "+object+", labels", 1), "--server-side")
				release(object, "3")
			}
			e.Start()
			e.Run("txn", imageAndReplicas+more)
			for _, tag := range []string{"4", "5"} {
				release("web", tag)
				release("twin", tag)
				web, twin := e.Object(webRef), e.Object("apps/v1 Deployment/twin")
				assert.Equal(t, "example.com/web:"+tag, deep(web.Object, "spec", "template", "spec", "containers", "0", "image"))
				assert.Equal(t, ownedFields(twin), ownedFields(web))
			}
			kubectlApply(t, e, sharedWeb, "--server-side", "--force-conflicts")
			kubectlApply(t, e, strings.Replace(sharedWeb, "name: web, labels", "name: twin, labels", 1), "--server-side", "--force-conflicts")
			assert.Equal(t, ownedFields(e.Object("apps/v1 Deployment/twin")), ownedFields(e.Object(webRef)))
		})
	}
}

// ownedFields returns what each manager owns, as the API server writes it.
func ownedFields(obj *unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource != "status" {
			out[entry.Manager+" "+string(entry.Operation)+" "+entry.Subresource] = string(entry.FieldsV1.GetRawBytes())
		}
	}
	return out
}

func TestAnUnforcedApplyOfAnotherAfterACommitConflictsWithNobodyNew(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	sharedScene(t, e)
	e.Start()
	committedAll(t, e.Run("txn", imageAndReplicas))
	_, err := newOutsider(t, e, "gitops").apply(webImage("3"), false)
	require.NoError(t, err, "its own field")
	_, err = newOutsider(t, e, "stranger").apply(webImage("4"), false)
	assert.Equal(t, http.StatusConflict, codeOf(err))
	require.ErrorContains(t, err, "gitops")
	assert.NotContains(t, err.Error(), "janus")

	txn := e.Run("unforced", strings.Replace(imageAndReplicas, "type: Patch,", "type: Patch, force: false,", 1))
	refusedBefore(t, txn, errclass.FieldConflict, "gitops", `.spec.template.spec.containers[name="web"].image`)
	_, _, message := harness.Condition(txn, api.ConditionReady)
	assert.NotContains(t, message, "janus-", "the first Transaction's managers")
}
