package ownership

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

const patchApp = `
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {version: "2.0"}}}
`

func TestW1AnApplyWithAResourceVersionAloneCreatesWhatHasVanished(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	o := newOutsider(t, e, "outsider")
	gone := o.make(fixture.ConfigMap)
	body := func(uid, resourceVersion string) error {
		obj := named(gone)
		obj.SetUID(types.UID(uid))
		obj.SetResourceVersion(resourceVersion)
		_, err := o.applyObject(obj, true)
		return err
	}
	assert.Equal(t, http.StatusUnprocessableEntity, codeOf(body("another", "")), "another uid, and it is there")
	o.remove(gone)
	assert.Equal(t, http.StatusConflict, codeOf(body("another", "")), "another uid, and it is not there")
	assert.Equal(t, http.StatusConflict, codeOf(body(string(gone.GetUID()), gone.GetResourceVersion())), "both")
	assert.Nil(t, o.now(gone))
	require.NoError(t, body("", gone.GetResourceVersion()))
	made := o.now(gone)
	assert.NotNil(t, made, "a resourceVersion alone makes it")
	o.remove(made)

	for _, recreate := range []bool{false, true} {
		name := map[bool]string{false: "vanished", true: "recreated"}[recreate]
		t.Run(name, func(t *testing.T) {
			target := o.make(fixture.ConfigMap)
			j := e.Start(justBefore(0, func() {
				o.remove(target)
				if recreate {
					target = o.make(fixture.ConfigMap)
				}
			}))
			defer j.Stop()
			txn := e.Run(name, patchApp)
			rolledBack(t, txn, 0, errclass.Drifted)
			if recreate {
				e.Same(target, "ConfigMap/app")
				assert.Equal(t, target.GetUID(), e.Object("ConfigMap/app").GetUID())
				return
			}
			assert.Nil(t, e.Object("ConfigMap/app"))
		})
	}
}

func TestW2TwoAppliesByOneManagerDropEachOthersFields(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	o := newOutsider(t, e, "one")
	const head = "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: "
	first, err := o.apply(head+"{a: a}}", true)
	require.NoError(t, err)
	second, err := o.apply(head+"{b: b}}", true)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"b": "b"}, second.Object["data"])
	for length, want := range map[int]int{128: http.StatusOK, 129: http.StatusUnprocessableEntity} {
		_, err = newOutsider(t, e, strings.Repeat("m", length)).apply(head+"{c: c}}", true)
		assert.Equal(t, want, codeOf(err), "a manager of %d bytes: %v", length, err)
	}
	o.remove(first)

	o.make(fixture.ConfigMap)
	var manager []string
	e.Start(justBefore(1, func() { manager = harness.JanusManagers(e.Object("ConfigMap/app")) }))
	txn := e.Run("txn", `
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {a: a}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {b: b}}}`)
	committedAll(t, txn)
	assert.Equal(t, map[string]any{"version": "1.0", "other": "kept", "a": "a", "b": "b"}, e.Object("ConfigMap/app").Object["data"])
	require.Len(t, manager, 1, "of the first item, when the second is made")
	assert.LessOrEqual(t, len(manager[0]), 128)
}

const webApp = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'example.com/web:1'}]}
`

const webRef = "apps/v1 Deployment/web"

// updateWeb is a Transaction that replaces the Deployment by one with another image.
var updateWeb = "changes:\n- target: {apiVersion: apps/v1, kind: Deployment, name: web}\n  type: Update\n  content:\n" +
	"    " + strings.ReplaceAll(strings.TrimSpace(strings.ReplaceAll(webApp, "web:1", "web:2")), "\n", "\n    ") + "\n"

func TestW3APutWithoutAResourceVersionOverwritesBlindly(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	o := newOutsider(t, e, "outsider")
	old := o.make(webApp)
	o.scale("7")
	overwritten, err := o.put(parsed(t, webApp))
	require.NoError(t, err)
	assert.Equal(t, int64(1), field(t, overwritten, "spec", "replicas"), "the autoscaler's 7 is lost")
	o.remove(old)
	fixture.MakeGadget(t, e)
	_, err = o.put(parsed(t, fixture.Gadget))
	assert.Equal(t, http.StatusUnprocessableEntity, codeOf(err), "a custom resource demands one: %v", err)
	const lease = "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l}, spec: {holderIdentity: a}}"
	o.make(lease)
	_, err = o.put(parsed(t, lease))
	assert.Equal(t, http.StatusUnprocessableEntity, codeOf(err), "a Lease demands one: %v", err)

	o.make(webApp)
	e.Start(justBefore(0, func() { o.scale("7") }))
	txn := e.Run("txn", updateWeb)
	rolledBack(t, txn, 0, errclass.Drifted)
	assert.Contains(t, txn.Status.Items[0].Message, ".spec.replicas")
	assert.Equal(t, int64(7), field(t, e.Object(webRef), "spec", "replicas"))
}

// created are kinds of which an update makes what is missing.
var created = []struct{ ref, object string }{
	{"coordination.k8s.io/v1 Lease", "spec: {holderIdentity: a}"},
	{"rbac.authorization.k8s.io/v1 Role", "rules: []"},
	{"rbac.authorization.k8s.io/v1 RoleBinding", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: none}"},
	{"rbac.authorization.k8s.io/v1 ClusterRole", "rules: []"},
	{"rbac.authorization.k8s.io/v1 ClusterRoleBinding", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: none}"},
	{"v1 Service", "spec: {ports: [{port: 80}]}"},
	{"v1 Endpoints", "subsets: []"},
	{"v1 LimitRange", "spec: {limits: [{type: Pod, max: {cpu: '1'}}]}"},
	{"node.k8s.io/v1 RuntimeClass", "handler: none"},
}

func TestW4APutCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	o := newOutsider(t, e, "outsider")
	vanish := func() {}
	e.Start(justBefore(0, func() { vanish() }))
	for _, row := range created {
		version, kind, _ := strings.Cut(row.ref, " ")
		t.Run(kind, func(t *testing.T) {
			name := strings.ToLower(kind) + "-" + e.Namespace
			obj := parsed(t, "{apiVersion: "+version+", kind: "+kind+", metadata: {name: "+name+"}, "+row.object+"}")
			o.dropWhenDone(obj)
			withUID := obj.DeepCopy()
			withUID.SetUID("6b1b6f7e-0000-4000-8000-000000000000")
			_, err := o.put(withUID)
			assert.Equal(t, http.StatusConflict, codeOf(err), "a uid in the body stops it: %v", err)
			made, err := o.put(obj)
			require.NoError(t, err, "the update makes it")

			vanish = func() { o.remove(made) }
			txn := e.Run("update-"+strings.ToLower(kind), "changes: [{target: {apiVersion: "+version+", kind: "+kind+", name: "+name+"}, type: Update, content: {metadata: {labels: {a: b}}, "+row.object+"}}]")
			rolledBack(t, txn, 0, errclass.Drifted)
			assert.Nil(t, o.now(obj), "Janus has made it")
		})
	}
}

func TestW5ADeleteWithAUIDAloneDeletesALeaseThatAnotherHolderHas(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	o := newOutsider(t, e, "outsider")
	leases := e.Kube.CoordinationV1().Leases(e.Namespace)
	lease := o.make("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l}, spec: {holderIdentity: first}}")
	o.Merge("second", "coordination.k8s.io/v1 Lease/l", `{"spec":{"holderIdentity":"second"}}`)
	uid, version := lease.GetUID(), lease.GetResourceVersion()
	err := leases.Delete(t.Context(), "l", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	assert.Equal(t, http.StatusConflict, codeOf(err), "with both: %v", err)
	require.NoError(t, leases.Delete(t.Context(), "l", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
	assert.Nil(t, o.now(lease), "the second holder's Lease is gone")

	e.Apply(fixture.ConfigMap)
	var lock string
	e.Start(harness.Recording(harness.Journaling{After: harness.Once(harness.Committed(1), func() {
		lock = strings.TrimPrefix(e.Transaction("txn").Status.Items[0].LockLease, e.Namespace+"/")
		e.Merge("second", "coordination.k8s.io/v1 Lease/"+lock, `{"spec":{"holderIdentity":"second"}}`)
	})}))
	e.Run("txn", patchApp)
	assert.Equal(t, "second", e.Value("coordination.k8s.io/v1 Lease/"+lock, "spec", "holderIdentity"))
}

func TestW6UnknownFieldsAreDroppedInSilence(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	o := newOutsider(t, e, "outsider")
	dropped := o.make("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, dta: {a: b}}")
	assert.NotContains(t, dropped.Object, "dta")
	obj := parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: strict}, dta: {a: b}}")
	_, err := o.at(obj).Create(t.Context(), obj, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	assert.Equal(t, http.StatusBadRequest, codeOf(err), "%v", err)

	e.Start()
	old := e.Object("ConfigMap/app")
	for kind, name := range map[string]string{"Patch": "app", "Update": "app", "Create": "new"} {
		txn := e.Run(strings.ToLower(kind), "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: "+name+"}, type: "+kind+", content: {dta: {a: b}}}]")
		refusedBefore(t, txn, errclass.Invalid, "dta")
		assert.Nil(t, e.Object("ConfigMap/new"))
		e.Same(old, "ConfigMap/app")
	}
}

func TestW7AGeneratedNameAndALostReplyMakeTwoObjects(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	o := newOutsider(t, e, "outsider")
	const generated = "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: app-}}"
	lost, repeated := o.make(generated), o.make(generated)
	assert.NotEqual(t, lost.GetName(), repeated.GetName())

	line := harness.FaultAt("POST services/a", faultinject.LostReply)
	transport, _ := harness.Through(line)
	e.Start(transport)
	refusedBefore(t, e.Run("generated", fixture.OneChange("Create", "{metadata: {generateName: app-}}")), errclass.Invalid, "generateName")
	committedAll(t, e.Run("lost", "changes:"+fixture.RefusedAtCommit))
	assert.Empty(t, line.Missed())
	assert.Len(t, harness.Changing(line, e.Namespace, "services", "a"), 1)
	made := testcluster.Filter(e.Audit(), testcluster.InNamespace(e.Namespace), testcluster.OnResource("", "services"),
		testcluster.ByVerb("create"), testcluster.Persisted)
	assert.Len(t, made, 1)
}

func TestW8APutThatChangesNothingLeavesNoTrace(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Refuse()
	o := newOutsider(t, e, "outsider")
	old := o.make(fixture.ConfigMap)
	again, err := newOutsider(t, e, "another").put(old)
	require.NoError(t, err)
	assert.Equal(t, old.GetResourceVersion(), again.GetResourceVersion())
	assert.Equal(t, old.GetManagedFields(), again.GetManagedFields())
	empty := o.make("{apiVersion: v1, kind: ConfigMap, metadata: {name: empty}}")
	assert.Empty(t, empty.GetManagedFields(), "no field, no owner")

	// The reply to the update is lost, so Janus has to find out what became of it.
	for _, row := range []struct{ name, target, content string }{
		{"nothing", "app", "{data: {version: '1.0', other: kept}}"},
		{"all", "app", "{}"},
		{"something", "empty", "{data: {a: b}}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := e.Object("ConfigMap/" + row.target)
			change := "\n  - {target: {apiVersion: v1, kind: ConfigMap, name: " + row.target + "}, type: Update, content: " + row.content + "}"
			line := harness.FaultAt("PUT configmaps/"+row.target, faultinject.LostReply)
			transport, _ := harness.Through(line)
			j := e.Start(transport)
			defer j.Stop()
			txn := e.Run(row.name, "changes:"+change+fixture.RefusedAtCommit)
			require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			e.Same(before, "ConfigMap/"+row.target)
			if row.name != "nothing" {
				assert.Empty(t, line.Missed())
			} else {
				assert.Empty(t, harness.Changing(line, e.Namespace, "configmaps", row.target), "there is nothing to write, so nothing is sent")
				assert.Equal(t, before.GetResourceVersion(), e.Object("ConfigMap/app").GetResourceVersion())
			}
		})
	}
}
