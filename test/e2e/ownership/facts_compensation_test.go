package ownership

import (
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

const forcedWeb = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 5}
`

func TestK2UnapplyingTakesWhatAnotherHadSet(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	owner, forcer := newOutsider(t, e, "owner"), newOutsider(t, e, "forcer")
	threeReplicas := strings.Replace(webApp, "replicas: 1", "replicas: 3", 1)
	_, err := owner.apply(threeReplicas, false)
	require.NoError(t, err)
	_, err = owner.apply(fixture.ConfigMap, false)
	require.NoError(t, err)
	for _, forced := range []string{forcedWeb, "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {version: '2.0'}}"} {
		obj, err := forcer.apply(forced, true)
		require.NoError(t, err)
		_, err = forcer.applyObject(named(obj), true)
		require.NoError(t, err)
	}
	assert.Equal(t, int64(1), field(t, e.Object(webRef), "spec", "replicas"), "the default, and not 3")
	assert.Equal(t, map[string]any{"other": "kept"}, e.Object("ConfigMap/app").Object["data"])

	for _, text := range []string{threeReplicas, fixture.ConfigMap} {
		_, err = owner.apply(text, true)
		require.NoError(t, err)
	}
	e.Refuse()
	web, app := owner.age(e.Object(webRef)), owner.age(e.Object("ConfigMap/app"))
	e.Start()
	txn := e.Run("txn", patchApp+"  - {target: {apiVersion: apps/v1, kind: Deployment, name: web}, type: Patch, content: {spec: {replicas: 5}}}"+fixture.RefusedAtCommit)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(web, webRef)
	e.Same(app, "ConfigMap/app")
}

func TestK3OnePutDoesNotRestoreTheOwnersAndASecondDoes(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	o := newOutsider(t, e, "outsider")
	o.make(fixture.ConfigMap)
	_, err := newOutsider(t, e, "gitops").apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {theirs: x}}", false)
	require.NoError(t, err)
	before := o.age(e.Object("ConfigMap/app"))
	changed, err := newOutsider(t, e, "forcer").apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {version: '2.0', theirs: new}}", true)
	require.NoError(t, err)
	image := before.DeepCopy()
	image.SetResourceVersion(changed.GetResourceVersion())
	once, err := o.put(image)
	require.NoError(t, err)
	assert.Equal(t, before.Object["data"], once.Object["data"])
	assert.NotEqual(t, before.GetManagedFields(), once.GetManagedFields())
	image.SetResourceVersion(once.GetResourceVersion())
	twice, err := o.put(image)
	require.NoError(t, err)
	assert.Equal(t, before.GetManagedFields(), twice.GetManagedFields(), "with their times")

	e.Refuse()
	e.Start()
	for _, kind := range []string{"Patch", "Update", "Delete"} {
		content := map[string]string{"Delete": ""}
		if kind != "Delete" {
			content[kind] = ", content: {data: {version: '2.0', theirs: new}}"
		}
		txn := e.Run(strings.ToLower(kind), "changes:\n  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: "+kind+content[kind]+"}"+fixture.RefusedAtCommit)
		require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
		e.Same(before, "ConfigMap/app")
	}
}

func TestK5ImmutableCannotBeRolledBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ConfigMap", "Secret"} {
		t.Run(kind, func(t *testing.T) {
			e := harness.New(t)
			o := newOutsider(t, e, "outsider")
			object := "{apiVersion: v1, kind: " + kind + ", metadata: {name: frozen}, immutable: true}"
			obj := o.make(object)
			unstructured.RemoveNestedField(obj.Object, "immutable")
			_, err := o.put(obj)
			assert.Equal(t, http.StatusUnprocessableEntity, codeOf(err), "%v", err)
			o.remove(obj)

			e.Apply(fixture.ConfigMap)
			o.make("{apiVersion: v1, kind: " + kind + ", metadata: {name: thaw}}")
			freeze := "  - {target: {apiVersion: v1, kind: " + kind + ", name: thaw}, type: Patch, content: {immutable: true}"
			e.Start(justBefore(2, func() { e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: late}}") }))
			before := e.Object("v1 " + kind + "/thaw")
			txn := e.Run("first", "changes:\n"+freeze+"}"+strings.TrimPrefix(patchApp, "\nchanges:"))
			refusedBefore(t, txn, errclass.Irreversible, kind, "thaw", "immutable", "acceptLoss")
			e.Same(before, "v1 "+kind+"/thaw")

			txn = e.Run("lossy", "changes:\n"+freeze+", acceptLoss: true}"+strings.TrimPrefix(patchApp, "\nchanges:")+fixture.CreateLate)
			require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
			assert.Equal(t, api.ItemUnresolved, txn.Status.Items[0].State)
			assert.Contains(t, txn.Status.Items[0].Message, "immutable")
			assert.Equal(t, "1.0", e.Value("ConfigMap/app", "data", "version"))
			o.remove(e.Object("v1 " + kind + "/thaw"))

			o.make("{apiVersion: v1, kind: " + kind + ", metadata: {name: thaw}}")
			committedAll(t, e.Run("last", patchApp+freeze+"}"))
			assert.Equal(t, true, field(t, e.Object("v1 "+kind+"/thaw"), "immutable"))
		})
	}
}

// chained are changes of one target, of which each builds on the one before.
var chained = map[string]struct {
	absent  bool
	changes []string
}{
	"patch-patch":        {changes: []string{"Patch, content: {data: {version: '2.0'}}", "Patch, content: {data: {version: '3.0', more: x}}"}},
	"patch-update":       {changes: []string{"Patch, content: {data: {version: '2.0'}}", "Update, content: {data: {all: new}}"}},
	"update-patch":       {changes: []string{"Update, content: {data: {all: new}}", "Patch, content: {data: {version: '3.0'}}"}},
	"patch-delete":       {changes: []string{"Patch, content: {data: {version: '2.0'}}", "Delete"}},
	"delete-create":      {changes: []string{"Delete", "Create, content: {data: {all: new}}"}},
	"create-patch":       {absent: true, changes: []string{"Create, content: {data: {version: '1.0'}}", "Patch, content: {data: {version: '2.0'}}"}},
	"patch-update-patch": {changes: []string{"Patch, content: {data: {a: a}}", "Update, content: {data: {b: b}}", "Patch, content: {data: {c: c}}"}},
}

func TestK14TheBeforeImagesOfOneTargetAreAChain(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	o := newOutsider(t, e, "outsider")
	images := []*unstructured.Unstructured{o.make(fixture.ConfigMap)}
	images = append(images, e.Merge("outsider", "ConfigMap/app", `{"data":{"version":"2.0"}}`))
	e.Merge("outsider", "ConfigMap/app", `{"data":{"version":"3.0"}}`)
	for _, image := range images {
		image.SetResourceVersion("")
		_, err := o.put(image)
		require.NoError(t, err)
	}
	assert.Equal(t, "2.0", e.Value("ConfigMap/app", "data", "version"), "in the order of the list the first change stays")

	e.Refuse()
	e.Start()
	for name, row := range chained {
		t.Run(name, func(t *testing.T) {
			if now := e.Object("ConfigMap/app"); now != nil {
				o.remove(now)
			}
			var before *unstructured.Unstructured
			if !row.absent {
				before = o.age(o.make(fixture.ConfigMap))
			}
			spec := "changes:"
			for _, change := range row.changes {
				spec += "\n  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: " + change + "}"
			}
			txn := e.Run(name, spec+fixture.RefusedAtCommit)
			require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			assert.Equal(t, errclass.Rejected, txn.Status.Items[len(row.changes)+1].Reason, "every change of the target was made: %s", harness.Describe(txn))
			e.Same(before, "ConfigMap/app")
		})
	}
}

// revision is what the controller of Deployments writes.
const revision = "deployment.kubernetes.io/revision"

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func TestK15TheNextKubectlApplyOfTheSameFileChangesNothing(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	kubectlApply(t, e, webApp)
	annotation := e.Value(webRef, "metadata", "annotations", lastApplied)
	e.Merge("outsider", webRef, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"example.com/web:9"}]}}}}`)
	assert.Equal(t, "deployment.apps/web configured", kubectlApply(t, e, webApp), "another client's image is undone")
	assert.Equal(t, annotation, e.Value(webRef, "metadata", "annotations", lastApplied))

	for name, change := range map[string]string{
		"update": strings.TrimSpace(updateWeb),
		"patch":  "changes:\n- {target: {apiVersion: apps/v1, kind: Deployment, name: web}, type: Patch, content: {metadata: {annotations: {" + lastApplied + ": none}}, spec: {replicas: 3}}}",
		"delete": "changes:\n- {target: {apiVersion: apps/v1, kind: Deployment, name: web}, type: Delete}",
	} {
		t.Run(name, func(t *testing.T) {
			e := harness.New(t)
			e.Refuse()
			kubectlApply(t, e, webApp)
			e.Until("the controller has written it", func() bool { return e.Value(webRef, "metadata", "annotations", revision) != "<absent>" })
			before := newOutsider(t, e, "outsider").age(e.Object(webRef))
			e.Start(harness.Acting(harness.Around{Undo: func(_ string, item int) {
				if item == 0 && name != "delete" {
					e.Until("the controller has written it again", func() bool { return e.Value(webRef, "metadata", "annotations", revision) != "<absent>" })
				}
			}}))
			txn := e.Run(name, change+strings.ReplaceAll(fixture.RefusedAtCommit, "\n  ", "\n"))
			require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			assert.Equal(t, before.GetAnnotations()[lastApplied], e.Value(webRef, "metadata", "annotations", lastApplied))
			e.Same(before, webRef)
			assert.Equal(t, "deployment.apps/web unchanged", kubectlApply(t, e, webApp))
		})
	}
}

func TestK20AForegroundDeletionCollectsWhatIsOwnedThoughItsOwnerStays(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	fixture.Held(t, e, "owner")
	o := newOutsider(t, e, "outsider")
	child := o.make("{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, blockOwnerDeletion: true, uid: " + string(e.Object("ConfigMap/owner").GetUID()) + "}]}}")
	foreground := metav1.DeletePropagationForeground
	require.NoError(t, e.Kube.CoreV1().ConfigMaps(e.Namespace).Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	e.Until("the owned one is collected", func() bool { return o.now(child) == nil })
	assert.NotNil(t, e.Object("ConfigMap/owner"), "its own finalizer still holds")

	e.Apply(fixture.AB)
	a, b := e.Object("ConfigMap/a"), e.Object("ConfigMap/b")
	e.Refuse()
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.InPhase(api.PhaseRollingBack), func() {
		e.Delete("txn", foreground)
		e.Until("the before-images are being deleted", func() bool {
			image := e.Object("ConfigMap/txn-rollback")
			require.NotNil(t, image, "the before-images are lost")
			return image.GetDeletionTimestamp() != nil
		})
	})}))
	e.Submit("txn", fixture.PatchAB+fixture.RefusedAtCommit)
	e.Gone("txn")
	e.Same(a, "ConfigMap/a")
	e.Same(b, "ConfigMap/b")
	e.NothingLeft("txn")
}
