package ordering

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// There is a ConfigMap with the switch, one with settings, one that its owner has, and a Deployment whose
// Pods mount the settings.
const shop = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: switch}, data: {wanted: "no"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {made-by: person}}, data: {v: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: apart}, data: {v: "1"}}
---
` + web

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: example.com/web}]
      volumes: [{name: settings, configMap: {name: settings}}]
`

// shopping has the settings wanted as long as the switch is on. The Deployment depends on them, by what its
// content mounts or by its name.
const (
	aside    = "{name: aside, type: Await, target: {apiVersion: v1, kind: ConfigMap, name: switch}, readyWhen: {expression: object != null}}\n"
	settings = "{name: settings, when: objects.aside.data.wanted == 'yes', whenFalse: Delete, type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: settings}, content: {data: {v: '2'}}}\n"
	apart    = "{name: apart, type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: apart}, content: {data: {v: '2'}}}\n"
)

var mounting = "{name: web, type: Patch, DEPENDS target: {apiVersion: apps/v1, kind: Deployment, name: web}, content: {spec: {replicas: 0, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com/web}], volumes: [{name: settings, configMap: {name: settings}}]}}}}}\n"

var shopping = map[string]string{
	"list":  "changes:\n- " + aside + "- " + settings + "- " + apart + "- " + strings.Replace(mounting, "DEPENDS", "", 1),
	"graph": "changes:\n- " + strings.Replace(mounting, "DEPENDS", "dependsOn: [settings],", 1) + "- " + strings.Replace(settings, "when:", "dependsOn: [aside], when:", 1) + "- " + apart + "- " + aside,
}

func itemNamed(t *testing.T, txn *api.Transaction, name string) api.Item {
	t.Helper()
	for _, item := range txn.Status.Items {
		if item.Name == name {
			return item
		}
	}
	t.Fatalf("there is no item %s: %s", name, harness.Describe(txn))
	return api.Item{}
}

// What is not wanted is deleted, and before it what depends on it. An undo makes both again, and a second
// run of the same finds nothing to delete.
func TestAWhenThatIsFalseDeletes(t *testing.T) {
	t.Parallel()
	for name, spec := range shopping {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Start()
			e.Apply(shop)
			planned := e.Run("planned", "dryRun: true\n"+spec)
			require.Equal(t, api.PhasePlanned, planned.Status.Phase, harness.Describe(planned))
			assert.Equal(t, "its when is asked when its turn comes; if it is false, the target is deleted, and before it those of items web", itemNamed(t, planned, "settings").Plan.Deferred)
			assert.Equal(t, []string{"settings"}, itemNamed(t, planned, "web").DeletedWith)
			assert.Empty(t, itemNamed(t, planned, "apart").DeletedWith)

			txn := e.Run("unwanted", spec+"revisionHistoryLimit: 3\n")
			require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
			for _, name := range []string{"settings", "web"} {
				item := itemNamed(t, txn, name)
				assert.Equal(t, api.ItemCommitted, item.State, item.Message)
				assert.Equal(t, api.Delete, item.Type)
			}
			assert.Equal(t, map[api.ConditionName]bool{api.ConditionWhen: false}, results(itemNamed(t, txn, "settings")))
			assert.Equal(t, []string{"web"}, itemNamed(t, txn, "settings").DependsOn)
			assert.Empty(t, itemNamed(t, txn, "web").DependsOn)
			assert.Empty(t, itemNamed(t, txn, "apart").Type)
			assert.Nil(t, e.Object("ConfigMap/settings"))
			assert.Nil(t, e.Object("apps/v1 Deployment/web"))
			assert.Equal(t, "2", e.Value("ConfigMap/apart", "data", "v"))

			undone := e.Run("undone", "undoOf: {name: unwanted}\n")
			require.Equal(t, api.PhaseCommitted, undone.Status.Phase, harness.Describe(undone))
			assert.Equal(t, "1", e.Value("ConfigMap/settings", "data", "v"))
			assert.Equal(t, "person", e.Value("ConfigMap/settings", "metadata", "labels", "made-by"))
			assert.NotNil(t, e.Object("apps/v1 Deployment/web"))
			e.NothingLeft("undone")

			require.Equal(t, api.PhaseCommitted, e.Run("again", spec+"revisionHistoryLimit: 3\n").Status.Phase)
			none := e.Run("none", spec)
			require.Equal(t, api.PhaseCommitted, none.Status.Phase, harness.Describe(none))
			assert.Equal(t, "WhenFalse", itemNamed(t, none, "settings").Reason)
			assert.Equal(t, "DependencyDeleted", itemNamed(t, none, "web").Reason)
			assert.Equal(t, api.ItemSkipped, itemNamed(t, none, "web").State)
			e.NothingLeft("none")

			e.Merge("person", "ConfigMap/switch", `{"data":{"wanted":"yes"}}`)
			missing := e.Run("missing", spec)
			require.Equal(t, api.PhaseRolledBack, missing.Status.Phase, "a Patch is of what exists: %s", harness.Describe(missing))
			assert.Equal(t, errclass.NotFound, itemNamed(t, missing, "settings").Reason)
			require.Equal(t, api.PhaseCommitted, e.Run("back", "undoOf: {name: again}\n").Status.Phase)
			on := e.Run("wanted", spec)
			require.Equal(t, api.PhaseCommitted, on.Status.Phase, harness.Describe(on))
			assert.Equal(t, "2", e.Value("ConfigMap/settings", "data", "v"))
			assert.NotNil(t, e.Object("apps/v1 Deployment/web"))
			assert.Empty(t, itemNamed(t, on, "settings").Type)
			e.NothingLeft("wanted")
		})
	}
}

// A rollback makes again what was deleted, the last first, as it was.
func TestWhatAWhenHasDeletedIsRolledBack(t *testing.T) {
	t.Parallel()
	for name, spec := range shopping {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := harness.New(t)
			e.Start()
			e.Apply(shop)
			cfg, deployment := e.Object("ConfigMap/settings"), e.Object("apps/v1 Deployment/web")
			refused := "- {name: last, type: Await, target: {apiVersion: v1, kind: ConfigMap, name: none}, readyWhen: {expression: object != null, timeout: 1s}}\n"
			if name == "graph" {
				refused = "- {name: refused, dependsOn: [settings], type: Await, target: {apiVersion: v1, kind: ConfigMap, name: none}, readyWhen: {expression: object != null, timeout: 1s}}\n- {name: late, type: Await, target: {apiVersion: v1, kind: ConfigMap, name: settings}, readyWhen: {expression: object == null}}\n- {name: last, dependsOn: [late], type: Await, target: {apiVersion: v1, kind: ConfigMap, name: none}, readyWhen: {expression: object != null, timeout: 1s}}\n"
			}
			txn := e.Run("back", spec+refused)
			require.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
			for _, name := range []string{"settings", "web"} {
				item := itemNamed(t, txn, name)
				assert.Equal(t, api.ItemRolledBack, item.State, item.Message)
				assert.Equal(t, api.Delete, item.Type)
				assert.NotEmpty(t, item.RecreatedUID)
			}
			if name == "graph" {
				assert.Equal(t, "DependencyDeleted", itemNamed(t, txn, "refused").Reason, "an Await that depends on it is not begun")
			}
			assert.Equal(t, cfg.Object["data"], e.Object("ConfigMap/settings").Object["data"])
			assert.Equal(t, cfg.GetLabels(), e.Object("ConfigMap/settings").GetLabels())
			assert.Equal(t, deployment.Object["spec"], e.Object("apps/v1 Deployment/web").Object["spec"])
			assert.Equal(t, "1", e.Value("ConfigMap/apart", "data", "v"))
			e.NothingLeft("back")
		})
	}
}

// What a dependent has a finalizer for is waited for before the object that it depends on is deleted.
func TestWhatDependsOnAnObjectIsGoneBeforeItIsDeleted(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(shop)
	e.Merge("person", "apps/v1 Deployment/web", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	e.Submit("held", shopping["list"])
	e.Await("held", "deleting the Deployment", func(*api.Transaction) bool {
		web := e.Object("apps/v1 Deployment/web")
		return web != nil && web.GetDeletionTimestamp() != nil
	})
	e.NextSecond()
	require.NotNil(t, e.Object("ConfigMap/settings"), "it is deleted last")
	assert.Nil(t, e.Object("ConfigMap/settings").GetDeletionTimestamp())
	assert.Equal(t, "1", e.Value("ConfigMap/apart", "data", "v"))
	e.Merge("person", "apps/v1 Deployment/web", `{"metadata":{"finalizers":null}}`)
	txn := e.Ended("held")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Nil(t, e.Object("ConfigMap/settings"))
	e.NothingLeft("held")
}

// What a deletion could do is looked at before anything is done, whatever the when turns out to be.
func TestADeletionThatCannotBeRolledBackOrMayNotBeMadeIsRefused(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Apply(`
{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.com/main}]}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: cfg}, data: {a: b}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: patcher}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: patcher}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, create, patch, update]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: patcher}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: patcher}, subjects: [{kind: ServiceAccount, name: patcher}]}
`)
	const cfg = "{name: cfg, when: object != null, whenFalse: Delete, type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: cfg}, content: {data: {a: c}}"
	const job = "- {name: job, dependsOn: [cfg], type: Patch, target: {apiVersion: batch/v1, kind: Job, name: job}, content: {metadata: {labels: {a: b}}}}\n"
	txn := e.Run("job", "changes:\n- "+cfg+"}\n"+job)
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.Irreversible, txn.Status.Items[1].Reason)
	assert.Contains(t, txn.Status.Items[1].Message, "it would be deleted if the when of cfg is false")
	txn = e.Run("accepted", "changes:\n- "+cfg+", acceptLoss: true}\n"+job)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))

	txn = e.Run("self", "changes:\n- {when: object == null, whenFalse: Delete, acceptLoss: true, type: Patch, target: {apiVersion: v1, kind: Namespace, name: "+e.Namespace+"}, content: {metadata: {labels: {a: b}}}}\n")
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, txn.Status.Items[0].Message, "it would be deleted if its when is false: it holds the Transaction itself")

	txn = e.Run("denied", "serviceAccountName: patcher\nchanges:\n- "+cfg+"}\n")
	require.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.AccessDenied, txn.Status.Items[0].Reason)
	assert.Contains(t, txn.Status.Items[0].Message, "grant it delete on configmaps")
	txn = e.Run("allowed", "serviceAccountName: patcher\nchanges:\n- "+strings.Replace(cfg, "whenFalse: Delete, ", "", 1)+"}\n")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, "without whenFalse it needs no right to delete: %s", harness.Describe(txn))
}

// A definition that is not wanted and not there leaves no object of its kind to delete; one that is there
// goes after them.
func TestADefinitionThatIsNotWantedGoesAfterItsObjects(t *testing.T) {
	t.Parallel()
	l := newLamps(t)
	l.Start()
	l.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: switch}, data: {wanted: 'no'}}")
	optional := strings.Replace(defining, "name: definition", "name: definition, when: objects.aside.data.wanted == 'yes', whenFalse: Delete, acceptLoss: true", 1)
	spec := l.fill("changes:\n- " + aside + "- " + optional + "\n- {name: lamp, " + lamp + "}\n")
	txn := l.Run("none", spec)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, []string{"", "WhenFalse", "DependencyDeleted"}, reasonsOf(txn))
	l.NothingLeft("none")

	l.Merge("person", "ConfigMap/switch", `{"data":{"wanted":"yes"}}`)
	txn = l.Run("wanted", spec)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	require.NotNil(t, l.Object(l.group+"/v1 Lamp/lamp"))
	l.Merge("person", "ConfigMap/switch", `{"data":{"wanted":"no"}}`)
	txn = l.Run("unwanted", spec)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	for _, i := range []int{1, 2} {
		assert.Equal(t, api.ItemCommitted, txn.Status.Items[i].State, harness.Describe(txn))
		assert.Equal(t, api.Delete, txn.Status.Items[i].Type)
	}
	l.NothingLeft("unwanted")
}
