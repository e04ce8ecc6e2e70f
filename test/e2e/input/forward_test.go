package input

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

// unusual is a Transaction that looks wrong and works. It is run twice: with one
// more change that fails, so that it is rolled back, and as it is.
type unusual struct {
	name    string
	setup   string
	arrange func(*testing.T, *harness.Env)
	// changes is a list in YAML; $NS is the namespace.
	changes string
	// targets are as before when it is rolled back.
	targets []string
	// then looks at what a commit leaves.
	then func(*testing.T, *harness.Env)
}

func TestATransactionThatLooksWrongWorksAndCanBeRolledBack(t *testing.T) {
	t.Parallel()
	for _, row := range unusuals {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			fill := func(s string) string { return strings.ReplaceAll(s, "$NS", e.Namespace) }
			e.Apply(fill(row.setup))
			if row.arrange != nil {
				row.arrange(t, e)
			}
			var before []*unstructured.Unstructured
			for _, ref := range row.targets {
				before = append(before, e.Object(fill(ref)))
			}
			e.Start(failingAt(strings.Count(row.changes, "- {target:"))(e)...)

			txn := e.Run("back", fill("changes:"+row.changes+fixture.CreateLate))
			lateExists.In(e).Check(t, e, txn)
			for i, ref := range row.targets {
				e.Same(before[i], fill(ref))
			}
			e.NothingLeft("back")

			txn = e.Run("forward", fill("changes:"+row.changes))
			assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			row.then(t, e)
			e.NothingLeft("forward")
		})
	}
}

// changeApp is a change of ConfigMap app.
func changeApp(kind, content string) string {
	if content != "" {
		content = ", content: " + content
	}
	return "\n  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: " + kind + content + "}"
}

func dataIs(want map[string]any) func(*testing.T, *harness.Env) {
	return func(t *testing.T, e *harness.Env) {
		t.Helper()
		app := e.Object("ConfigMap/app")
		if want == nil {
			assert.Nil(t, app)
			return
		}
		require.NotNil(t, app)
		assert.Equal(t, want, app.Object["data"])
	}
}

var appAlone = []string{"ConfigMap/app"}

var unusuals = []unusual{
	{name: "a Delete of what does not exist", changes: changeApp("Delete", ""), targets: appAlone, then: dataIs(nil)},
	{
		name: "two Patches of one target", setup: fixture.ConfigMap, targets: appAlone,
		changes: changeApp("Patch", `{data: {version: "2.0"}}`) + changeApp("Patch", `{data: {version: "3.0", more: x}}`),
		then:    dataIs(map[string]any{"version": "3.0", "other": "kept", "more": "x"}),
	},
	{
		name: "an Update and a Patch of one target", setup: fixture.ConfigMap, targets: appAlone,
		changes: changeApp("Update", `{data: {version: "2.0"}}`) + changeApp("Patch", `{data: {more: x}}`),
		then:    dataIs(map[string]any{"version": "2.0", "more": "x"}),
	},
	{
		name: "a Create and a Patch of one target", targets: appAlone,
		changes: changeApp("Create", `{data: {version: "2.0"}}`) + changeApp("Patch", `{data: {more: x}}`),
		then:    dataIs(map[string]any{"version": "2.0", "more": "x"}),
	},
	{
		name: "a Delete and a Create of one target", setup: fixture.ConfigMap, targets: appAlone,
		changes: changeApp("Delete", "") + changeApp("Create", `{data: {more: x}}`),
		then:    dataIs(map[string]any{"more": "x"}),
	},
	{
		name: "a Patch and a Delete of one target", setup: fixture.ConfigMap, targets: appAlone,
		changes: changeApp("Patch", `{data: {version: "2.0"}}`) + changeApp("Delete", ""),
		then:    dataIs(nil),
	},
	{
		name: "a Create and a Delete of one target", targets: appAlone,
		changes: changeApp("Create", `{data: {version: "2.0"}}`) + changeApp("Delete", ""),
		then:    dataIs(nil),
	},
	{
		name: "a Patch, a Delete and a Create of one target", setup: fixture.ConfigMap, targets: appAlone,
		changes: changeApp("Patch", `{data: {version: "2.0"}}`) + changeApp("Delete", "") + changeApp("Create", `{data: {more: x}}`),
		then:    dataIs(map[string]any{"more": "x"}),
	},
	{
		name: "a ClusterRole with colons in its name",
		setup: `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:$NS:Reader_1"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`,
		arrange: func(t *testing.T, e *harness.Env) {
			t.Helper()
			e.ClusterWide()
			t.Cleanup(func() {
				for _, name := range []string{":Reader_1", ":new"} {
					_ = e.Kube.RbacV1().ClusterRoles().Delete(context.Background(), "system:"+e.Namespace+name, metav1.DeleteOptions{})
				}
			})
		},
		changes: `
  - {target: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: "system:$NS:Reader_1"}, type: Patch, content: {metadata: {labels: {a: b}}}}
  - {target: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: "system:$NS:new"}, type: Create, content: {rules: []}}`,
		targets: []string{"rbac.authorization.k8s.io/v1 ClusterRole/system:$NS:Reader_1", "rbac.authorization.k8s.io/v1 ClusterRole/system:$NS:new"},
		then: func(t *testing.T, e *harness.Env) {
			t.Helper()
			assert.Equal(t, "b", e.Value("rbac.authorization.k8s.io/v1 ClusterRole/system:"+e.Namespace+":Reader_1", "metadata", "labels", "a"))
			assert.NotNil(t, e.Object("rbac.authorization.k8s.io/v1 ClusterRole/system:"+e.Namespace+":new"))
		},
	},
	{
		name: "a Namespace and an object in it",
		arrange: func(t *testing.T, e *harness.Env) {
			t.Helper()
			e.ClusterWide()
			t.Cleanup(func() {
				_ = e.Kube.CoreV1().Namespaces().Delete(context.Background(), e.Namespace+"-new", metav1.DeleteOptions{})
			})
		},
		changes: `
  - {target: {apiVersion: v1, kind: Namespace, name: $NS-new}, type: Create, content: {}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: inside, namespace: $NS-new}, type: Create, content: {data: {a: b}}}`,
		targets: []string{"Namespace/$NS-new"},
		then: func(t *testing.T, e *harness.Env) {
			t.Helper()
			assert.Equal(t, "b", e.In(e.Namespace+"-new").Value("ConfigMap/inside", "data", "a"))
			leases, err := e.Kube.CoordinationV1().Leases(e.Namespace+"-new").List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			assert.Empty(t, leases.Items)
		},
	},
	{
		name: "a CRD and an object of it",
		arrange: func(t *testing.T, e *harness.Env) {
			t.Helper()
			e.ClusterWide()
			t.Cleanup(func() { removeCRD(e, "gadgets."+e.Namespace+".example.com") })
		},
		changes: `
  - {target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: gadgets.$NS.example.com}, type: Create, content: {spec: ` + fixture.InGroup(fixture.GadgetSpec, "$NS.example.com") + `}}
  - {target: {apiVersion: $NS.example.com/v1, kind: Gadget, name: first}, type: Create, content: {spec: {size: 3}}}`,
		targets: []string{"apiextensions.k8s.io/v1 CustomResourceDefinition/gadgets.$NS.example.com"},
		then: func(t *testing.T, e *harness.Env) {
			t.Helper()
			e.Served(e.Namespace + ".example.com/v1 Gadget")
			assert.NotNil(t, e.Object(e.Namespace+".example.com/v1 Gadget/first"))
		},
	},
}

func TestAKindThatIsInstalledAfterJanusWasStarted(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start(failingAt(1)(e)...)
	first := "changes: [{target: {apiVersion: " + e.Namespace + ".example.com/v1, kind: Gadget, name: first}, type: Create, content: {spec: {size: 3}}}]"

	txn := e.Run("early", first)
	harness.Ending{Reason: "KindNotFound", Says: []string{"Gadget first", "kubectl api-resources"}}.Check(t, e, txn)

	e.Apply(fixture.InGroup(fixture.GadgetCRD, e.Namespace+".example.com"))
	t.Cleanup(func() { removeCRD(e, "gadgets."+e.Namespace+".example.com") })
	e.Served(e.Namespace + ".example.com/v1 Gadget")
	txn = e.Run("back", patchThenLate(first))
	lateExists.In(e).Check(t, e, txn)
	assert.Nil(t, e.Object(e.Namespace+".example.com/v1 Gadget/first"))

	txn = e.Run("forward", first)
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.NotNil(t, e.Object(e.Namespace+".example.com/v1 Gadget/first"))
	e.NothingLeft("early")
	e.NothingLeft("back")
	e.NothingLeft("forward")
}
