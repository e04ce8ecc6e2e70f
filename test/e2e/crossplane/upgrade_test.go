package crossplane

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/crossplane"
	"janus.io/janus/test/testcluster"
)

const sizeAndColor = `{type: object, properties: {size: {type: integer}, color: {type: string}}}`

// installed has a provider with a kind, and a custom resource of it.
func (w *world) installed() {
	w.t.Helper()
	w.push("bucket", "v1.0.0", "Bucket", size)
	w.committed("install %s:v1.0.0", w.source("bucket"))
	w.Served("acme.io/v1 Bucket")
	w.Apply("apiVersion: acme.io/v1\nkind: Bucket\nmetadata: {name: mine}\nspec: {size: 3}\n")
}

func TestAnUpgradeThatFailsIsRolledBackAndDataStays(t *testing.T) {
	w := newWorld(t)
	w.installed()
	before := w.Object("acme.io/v1 Bucket/mine")
	revision := w.Value("pkg.crossplane.io/v1 Provider/acme-bucket", "status", "currentRevision")

	// The tag moves between the plan and the Transaction.
	w.push("bucket", "v1.1.0", "Bucket", sizeAndColor)
	planned := w.types("kubectl janus package plan install %s:v1.1.0 --service-account installer --crossplane-version v2.1.3 --package-timeout 15s -o yaml 2>&1 | grep -v ^warning", w.source("bucket"))
	w.push("bucket", "v1.1.0", "Bucket", `{type: object, properties: {size: {type: string}}}`)
	made := w.created(planned)

	require.Equal(t, api.PhaseRolledBack, made.Status.Phase, describe(made))
	assert.Equal(t, "acme-bucket", made.Status.FailedItem, describe(made))
	assert.Contains(t, describe(made), "the tag has moved since the plan was made: plan again")
	assert.Equal(t, w.source("bucket")+":v1.0.0", w.Value("pkg.crossplane.io/v1 Provider/acme-bucket", "spec", "package"))
	assert.Equal(t, revision, w.Value("pkg.crossplane.io/v1 Provider/acme-bucket", "status", "currentRevision"))
	after := w.Object("acme.io/v1 Bucket/mine")
	require.NotNil(t, after, "the custom resource is gone")
	assert.Equal(t, before.GetUID(), after.GetUID())
	assert.Equal(t, before.Object["spec"], after.Object["spec"])
	assert.True(t, w.healthy("acme-bucket"), "the rollback has ended before the old version works")
	w.NothingLeft(made.Name)
}

func TestAnUpgradeMovesADependencyFirst(t *testing.T) {
	w := newWorld(t)
	w.push("family", "v1.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.committed("install %s:v1.0.0", w.source("bucket"))
	w.push("family", "v2.0.0", "Config", sizeAndColor)
	w.push("bucket", "v1.1.0", "Bucket", sizeAndColor, crossplane.Needs(w.source("family"), ">=v2.0.0"))
	w.committed("install %s:v1.1.0", w.source("bucket"))
	assert.Equal(t, w.source("family")+":v2.0.0", w.Value("pkg.crossplane.io/v1 Provider/acme-family", "spec", "package"))
	assert.True(t, w.healthy("acme-family") && w.healthy("acme-bucket"))
	assert.Contains(t, w.types("kubectl get crd buckets.acme.io -o yaml"), "color")
}

// What was planned with is what is changed, or nothing is.
func TestAPlanThatIsOutOfDateChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.push("bucket", "v1.0.0", "Bucket", size)
	w.push("queue", "v1.0.0", "Queue", size)
	planned := w.types("kubectl janus package plan install %s:v1.0.0 --service-account installer --crossplane-version v2.1.3 -o yaml", w.source("bucket"))
	w.committed("install %s:v1.0.0", w.source("queue"))
	made := w.created(planned)
	require.Equal(t, api.PhaseRolledBack, made.Status.Phase, describe(made))
	assert.Contains(t, describe(made), "the packages have changed since the plan was made: plan again")
	assert.Nil(t, w.provider("acme-bucket"))
}

// What Crossplane says is what the Transaction says, as soon as waiting is of no use.
func TestWhatCrossplaneRefusesIsToldInItsWords(t *testing.T) {
	w := newWorld(t)
	w.push("family", "v1.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	planned := w.types("kubectl janus package plan install %s:v1.0.0 --service-account installer --crossplane-version v2.1.3 -o yaml", w.source("bucket"))
	// Between the plan and the Transaction another controller makes the definition.
	owner := fmt.Sprintf("{apiVersion: v1, kind: Namespace, name: %s, uid: %s, controller: true}", crossplane.Namespace, w.Object("Namespace/"+crossplane.Namespace).GetUID())
	managed := strings.NewReplacer(
		"metadata: {name: buckets.acme.io}", "metadata: {name: buckets.acme.io, ownerReferences: ["+owner+"]}",
		"apiextensions.k8s.io/v1", "apiextensions.crossplane.io/v1alpha1", "CustomResourceDefinition", "ManagedResourceDefinition",
	).Replace(crossplane.Definition("Bucket", size))
	w.Apply(managed)
	began := time.Now()
	made := w.created(planned)
	require.Equal(t, api.PhaseRolledBack, made.Status.Phase, describe(made))
	assert.Contains(t, describe(made), "Crossplane: cannot establish control of object")
	assert.Less(t, time.Since(began), 30*time.Second, "it has waited for the time-out")
	assert.Nil(t, w.provider("acme-bucket"))
	assert.Nil(t, w.provider("acme-family"), "a dependency that came for it is left")
	w.types("kubectl delete managedresourcedefinition buckets.acme.io --ignore-not-found")
}

// An undo goes back to the version of before without a look at the custom resources, and says so.
func TestAnUndoOfAnUpgradeSaysThatCustomResourcesAreNotLookedAt(t *testing.T) {
	w := newWorld(t)
	w.push("bucket", "v1.0.0", "Bucket", size)
	w.push("bucket", "v1.1.0", "Bucket", sizeAndColor)
	made := w.committed("install %s:v1.0.0", w.source("bucket"))
	before := made.Status.Revision
	assert.NotContains(t, w.planOfUndo(made.Name), "Warning:", "what has been installed is deleted, and janusd looks at its custom resources")
	made = w.committed("install %s:v1.1.0", w.source("bucket"))
	w.Apply("apiVersion: acme.io/v1\nkind: Bucket\nmetadata: {name: mine}\nspec: {size: 3, color: red}\n")

	const warning = "Warning: an undo doesn't look at the custom resources of Provider acme-bucket: fields that the version of before doesn't have are lost. " +
		"kubectl janus package plan install with that version, and --allow-downgrade, looks at them first."
	assert.Contains(t, w.planOfUndo(made.Name), warning)
	assert.Contains(t, w.planOfUndo(fmt.Sprintf("--revision %d", made.Status.Revision)), warning)
	assert.Contains(t, w.planOfUndo(fmt.Sprintf("--to-revision %d", before)), warning)
	said := w.refused(2, "kubectl janus package plan install %s:v1.0.0 --allow-downgrade --service-account installer --crossplane-version "+testcluster.CrossplaneVersion, w.source("bucket"))
	assert.Contains(t, said, "which harms 1 of 1 custom resource: mine (loses spec.color)")
}

// planOfUndo is what is said of an undo that is not made.
func (w *world) planOfUndo(which string) string {
	w.t.Helper()
	out, err := w.shell.Run(w.t.Context(), "kubectl janus undo "+which+" --dry-run --service-account installer")
	var exit *exec.ExitError
	require.ErrorAs(w.t, err, &exit, out)
	require.Equal(w.t, 1, exit.ExitCode(), "it would change something: %s", out)
	return out
}
