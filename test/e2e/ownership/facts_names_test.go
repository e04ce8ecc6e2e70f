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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// sized is an object with so many bytes in one field, and what the API server makes
// of it.
type sized struct {
	name, object string
	field        []string
	bytes, code  int
	reason       string
}

const (
	plain  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: sized}}"
	custom = "{apiVersion: input.example.com/v1, kind: Gadget, metadata: {name: sized}}"
)

var (
	data       = []string{"data", "a"}
	annotation = []string{"metadata", "annotations", "a"}
	blob       = []string{"spec", "blob"}
)

var sizes = []sized{
	{"data at the cap", plain, data, 1_048_576, http.StatusCreated, ""},
	{"data beyond the cap", plain, data, 1_048_577, http.StatusUnprocessableEntity, errclass.Invalid},
	// The name of the annotation counts too.
	{"annotations at the cap", plain, annotation, 262_144 - len("a"), http.StatusCreated, ""},
	{"annotations beyond the cap", plain, annotation, 262_145 - len("a"), http.StatusUnprocessableEntity, errclass.Invalid},
	{"a request of 3 MiB", plain, data, 3 << 20, http.StatusRequestEntityTooLarge, errclass.TooLarge},
	{"a custom resource of 1.4 MiB", custom, blob, 14 << 20 / 10, http.StatusCreated, ""},
	{"a custom resource of 1.6 MiB", custom, blob, 16 << 20 / 10, http.StatusInternalServerError, errclass.TooLarge},
}

func TestW9ObjectsHaveLargestSizes(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	fixture.InstallGadgets(t, e)
	o := newOutsider(t, e, "outsider")
	for _, row := range sizes {
		t.Run(row.name, func(t *testing.T) {
			obj := parsed(t, row.object)
			require.NoError(t, unstructured.SetNestedField(obj.Object, strings.Repeat("x", row.bytes), row.field...))
			made, err := o.post(obj)
			if row.code == http.StatusCreated {
				require.NoError(t, err)
				o.remove(made)
				return
			}
			assert.Equal(t, row.code, codeOf(err))
			terminal(t, err, row.reason)
		})
	}
	e.Apply(fixture.ConfigMap + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: noted}}")
	o.makeSized(plain, data, 600_000)
	o.makeSized(custom, blob, 900_000)
	e.Start()
	for i, row := range outgrown {
		t.Run("Janus and "+row.name, func(t *testing.T) { row.run(t, e, fmt.Sprintf("txn-%d", i)) })
	}
}

// makeSized makes an object with so many bytes in one field.
func (o outsider) makeSized(object string, path []string, bytes int) {
	o.t.Helper()
	obj := parsed(o.t, object)
	require.NoError(o.t, unstructured.SetNestedField(obj.Object, strings.Repeat("x", bytes), path...))
	_, err := o.post(obj)
	require.NoError(o.t, err)
}

// outgrowing is a Patch after which an object is too large. Its target and content
// are JSON, which is faster to read than YAML.
type outgrowing struct {
	name, target, content string
	bytes                 int
	ends                  harness.Ending
}

var outgrown = []outgrowing{
	{
		"data", `"apiVersion": "v1", "kind": "ConfigMap", "name": "sized"`, `{"data": {"b": "TEXT"}}`, 600_000,
		harness.Ending{Phase: api.PhaseFailed, Reason: errclass.Invalid, Says: []string{"ConfigMap", "sized", "1048576"}},
	},
	{
		"annotations", `"apiVersion": "v1", "kind": "ConfigMap", "name": "noted"`, `{"metadata": {"annotations": {"a": "TEXT"}}}`, 262_144,
		harness.Ending{Phase: api.PhaseFailed, Reason: errclass.Invalid, Says: []string{"ConfigMap", "noted", "metadata.annotations", "262144"}},
	},
	{
		"a custom resource", `"apiVersion": "input.example.com/v1", "kind": "Gadget", "name": "sized"`, `{"spec": {"more": "TEXT"}}`, 800_000,
		harness.Ending{Phase: api.PhaseRolledBack, Reason: errclass.TooLarge, Validated: metav1.ConditionTrue, Says: []string{"Gadget", "sized", "request is too large"}},
	},
}

func (g outgrowing) run(t *testing.T, e *harness.Env, name string) {
	content := strings.Replace(g.content, "TEXT", strings.Repeat("x", g.bytes), 1)
	txn := e.Run(name, `{"changes": [{"target": {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}, "type": "Patch", "content": {"data": {"version": "2.0"}}}, `+
		`{"target": {`+g.target+`}, "type": "Patch", "content": `+content+`}]}`)
	g.ends.Check(t, e, txn)
	assert.Zero(t, txn.Status.Recoveries, "it is not tried again")
	assert.Equal(t, "1.0", e.Value("ConfigMap/app", "data", "version"))
}

func TestW10SomeNamesHaveColonsAndCapitals(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.ClusterWide()
	o := newOutsider(t, e, "outsider")
	_, err := o.post(parsed(t, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: 'system:foo'}}"))
	assert.Equal(t, http.StatusUnprocessableEntity, codeOf(err), "a Lease: %v", err)
	_, err = o.post(parsed(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {'system:foo': a}}"))
	assert.Equal(t, http.StatusUnprocessableEntity, codeOf(err), "a key of a ConfigMap: %v", err)

	e.Refuse()
	e.Start()
	for i, name := range []string{"system:" + e.Namespace, "A_b:c:" + e.Namespace} {
		for _, kind := range []string{"Patch", "Delete"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				ref := "rbac.authorization.k8s.io/v1 ClusterRole/" + name
				e.Apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: '" + name + "'}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}")
				before := e.Object(ref)
				o.dropWhenDone(before)
				content := map[string]string{"Patch": ", content: {metadata: {labels: {a: b}}}", "Delete": ""}[kind]
				txn := e.Run(strings.ToLower(fmt.Sprintf("%s-%d", kind, i)), "changes:\n  - {target: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: '"+name+"'}, type: "+kind+content+"}"+fixture.RefusedAtCommit)
				require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
				e.Same(before, ref)
				assert.NotContains(t, txn.Status.Items[0].LockLease, ":")
				e.NothingLeft(txn.Name)
			})
		}
	}
}

func TestW11ImpersonatingAServiceAccountThatDoesNotExistSucceeds(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.TwoConfigMaps)
	ghost := "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: ghost}, " +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: ghost, namespace: " + e.Namespace + "}]}"
	e.Apply(ghost)
	config := rest.CopyConfig(e.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + e.Namespace + ":ghost"
	client, err := harness.NewClient(config)
	require.NoError(t, err)
	e.Until("the binding counts", func() bool {
		_, err := client.Kube.CoreV1().ConfigMaps(e.Namespace).Get(t.Context(), "app", metav1.GetOptions{})
		return err == nil
	})

	accounts := e.Kube.CoreV1().ServiceAccounts(e.Namespace)
	first, second := e.Object("ConfigMap/app"), e.Object("ConfigMap/app-2")
	e.Start(justBefore(1, func() {
		require.NoError(t, accounts.Delete(t.Context(), "ghost", metav1.DeleteOptions{}))
		e.Apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: ghost}}")
	}))
	refusedBefore(t, e.Run("never", "serviceAccountName: ghost\n"+fixture.TwoPatches), errclass.ServiceAccountGone, "ghost")
	e.Apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: ghost}}")
	txn := e.Run("another", "serviceAccountName: ghost\n"+fixture.TwoPatches)
	rolledBack(t, txn, 1, errclass.ServiceAccountGone)
	e.Same(first, "ConfigMap/app")
	e.Same(second, "ConfigMap/app-2")
}

func TestW12ManagedFieldsInAnApplyAreRefusedAndANullBecomesEmpty(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	o := newOutsider(t, e, "outsider")
	obj := o.make("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: null}}")
	assert.Equal(t, map[string]any{"a": ""}, obj.Object["data"])
	body := named(obj)
	body.SetManagedFields(obj.GetManagedFields())
	text, err := body.MarshalJSON()
	require.NoError(t, err)
	force := true
	_, err = o.at(obj).Patch(t.Context(), "app", types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: "outsider", Force: &force})
	assert.Equal(t, http.StatusBadRequest, codeOf(err), "%v", err)

	e.Refuse()
	e.Start()
	refusedBefore(t, e.Run("owners", fixture.OneChange("Patch", "{metadata: {managedFields: []}, data: {b: c}}")), errclass.Invalid, "managedFields")
	for _, kind := range []string{"Update", "Patch"} {
		name := strings.ToLower(kind)
		before := e.Object("ConfigMap/app")
		change := "changes:\n  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: " + kind + ", content: {data: {a: x, b: null}}}"
		txn := e.Run(name, change+fixture.RefusedAtCommit)
		if kind == "Patch" {
			refusedBefore(t, txn, errclass.Invalid, ".data.b")
			continue
		}
		require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
		e.Same(before, "ConfigMap/app")
	}
}

// A role without rules has an owner of its list of rules all the same.
func TestADeletedRoleWithoutRulesIsGivenBackItsOwners(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: empty}, rules: []}")
	e.Refuse()
	before := e.Object("rbac.authorization.k8s.io/v1 Role/empty")
	require.Equal(t, []string{"tester Apply"}, managersOf(before))
	e.Start()
	txn := e.Run("txn", "changes:\n  - {target: {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, name: empty}, type: Delete}"+fixture.RefusedAtCommit)
	require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, []string{"tester Apply"}, managersOf(e.Object("rbac.authorization.k8s.io/v1 Role/empty")))
}
