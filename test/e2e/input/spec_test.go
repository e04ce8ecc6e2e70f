package input

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
)

func TestTheAPIServerRefusesATransactionThatCanNeverBeRight(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(fixture.ConfigMap)
	app := e.Object("ConfigMap/app")
	for _, row := range []struct{ name, spec, says string }{
		{"an unknown type of change", fixture.OneChange("Replace", "{}"), `supported values: "Create", "Update", "Patch", "Delete"`},
		{"a Create without content", `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: new}, type: Create}]`, "content is demanded"},
		{"an Update without content", `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Update}]`, "content is demanded"},
		{"a Patch without content", `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch}]`, "content is demanded"},
		{"a Patch with null as content", fixture.OneChange("Patch", "null"), "content is demanded"},
		{"a Delete with content", fixture.OneChange("Delete", "{data: {a: b}}"), "has no meaning for Delete"},
		{"content that is text", fixture.OneChange("Patch", `"data"`), "must be of type object"},
		{"content that is a list", fixture.OneChange("Patch", `[data]`), "must be of type object"},
		{"no change at all", `changes: []`, "should have at least 1 items"},
		{"two changes of one name", `
changes:
  - {name: a, target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Delete}
  - {name: a, target: {apiVersion: v1, kind: Secret, name: app}, type: Delete}`, "name of a change must be unique"},
		{"a change with the default name of another", `
changes:
  - {name: "1", target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Delete}
  - {target: {apiVersion: v1, kind: Secret, name: app}, type: Delete}`, "name of a change must be unique"},
		{"a lockTimeout that is no duration", "lockTimeout: soon\n" + fixture.OneChange("Patch", "{}"), "spec.lockTimeout"},
		{"a lockTimeout without unit", "lockTimeout: \"5\"\n" + fixture.OneChange("Patch", "{}"), "spec.lockTimeout"},
		{"a lockTimeout that is negative", "lockTimeout: -5m\n" + fixture.OneChange("Patch", "{}"), "spec.lockTimeout"},
		{"a lockTimeout below a second", "lockTimeout: 10ms\n" + fixture.OneChange("Patch", "{}"), "must be a duration from 1s to 24h"},
		{"a lockTimeout that overflows", "lockTimeout: 99999999999999999999h\n" + fixture.OneChange("Patch", "{}"), "spec.lockTimeout"},
		{"a timeout above a week", "timeout: 169h\n" + fixture.OneChange("Patch", "{}"), "must be a duration from 1s to 168h"},
		{"no ServiceAccount", "serviceAccountName: \"\"\n" + fixture.OneChange("Patch", "{}"), "spec.serviceAccountName"},
		{"a ServiceAccount of another namespace", "serviceAccountName: other:deployer\n" + fixture.OneChange("Patch", "{}"), "spec.serviceAccountName"},
		{"a target whose name is a path", `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: ../secrets/a}, type: Delete}]`, "target.name"},
		{"a target without a name", `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: ""}, type: Delete}]`, "target.name"},
		{"a field that does not exist", fixture.OneChange("Patch", "{}") + "\nforce: true", `unknown field "spec.force"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := e.TrySubmit("bad", row.spec)
			require.Error(t, err)
			assert.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v", err)
			assert.Contains(t, err.Error(), row.says)
			assert.Nil(t, e.Transaction("bad"))
		})
	}
	e.Same(app, "ConfigMap/app")
}

func TestAMistakeInTheChangesFailsBeforeAnythingIsDone(t *testing.T) {
	t.Parallel()
	runAll(t, contradictions, identities, unknownKinds, strictErrors, invalidObjects, existence, severalMistakes)
}

var unknownKinds = []badInput{
	{
		name: "a kind of a group that nobody serves",
		spec: `changes: [{target: {apiVersion: example.org/v1, kind: Gizmo, name: g}, type: Create, content: {spec: {}}}]`,
		ends: harness.Ending{Reason: "KindNotFound", Says: []string{"Gizmo g", "serves no kind Gizmo in example.org/v1", "kubectl api-resources"}},
	},
	{
		name: "a kind that its group does not have",
		spec: `changes: [{target: {apiVersion: apps/v1, kind: Deploymint, name: g}, type: Delete}]`,
		ends: harness.Ending{Reason: "KindNotFound", Says: []string{"Deploymint g", "serves no kind Deploymint in apps/v1", "kubectl api-resources"}},
	},
	{
		name: "a version that is not served",
		spec: `changes: [{target: {apiVersion: apps/v9, kind: Deployment, name: g}, type: Patch, content: {spec: {replicas: 2}}}]`,
		ends: harness.Ending{Reason: "KindNotFound", Says: []string{"Deployment g", "serves no kind Deployment in apps/v9", "kubectl api-resources"}},
	},
	{
		name: "a resource in the place of a kind",
		spec: `changes: [{target: {apiVersion: v1, kind: configmaps, name: g}, type: Delete}]`,
		ends: harness.Ending{Reason: "KindNotFound", Says: []string{"configmaps g", "kubectl api-resources"}},
	},
	{
		name: "a namespace for a cluster-scoped kind",
		spec: `changes: [{target: {apiVersion: v1, kind: Namespace, name: g, namespace: default}, type: Create, content: {}}]`,
		ends: harness.Ending{Reason: "Invalid", Says: []string{"Namespace default/g", "cluster-scoped", "leave out target.namespace"}},
	},
}

var contradictions = []badInput{
	contradicting("kind", `{kind: Secret, data: {}}`, `content.kind is "Secret" but the target's is "ConfigMap"`),
	contradicting("apiVersion", `{apiVersion: apps/v1, data: {}}`, `content.apiVersion is "apps/v1" but the target's is "v1"`),
	contradicting("name", `{metadata: {name: other}, data: {}}`, `content.metadata.name is "other" but the target's is "app"`),
	contradicting("namespace", `{metadata: {namespace: kube-system}, data: {}}`, `content.metadata.namespace is "kube-system" but the target's is "$NS"`),
	contradicting("kind, which is a number", `{kind: 5, data: {}}`, `content.kind`),
	contradicting("name, which is a number", `{metadata: {name: 5}, data: {}}`, `content.metadata.name`),
	contradicting("metadata, which is text", `{metadata: app, data: {}}`, `content.metadata`),
}

func contradicting(what, content, says string) badInput {
	return badInput{
		name:  "content that contradicts the target in " + what,
		setup: fixture.ConfigMap, spec: fixture.OneChange("Update", content), same: []string{"ConfigMap/app", "Secret/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", says, "leave it out of the content"}},
	}
}

var identities = []badInput{
	identity("generateName", "app-", "Create"),
	identity("uid", "0b5c9e1e-0000-4000-8000-000000000000", "Update"),
	identity("resourceVersion", `"1"`, "Update"),
	identity("managedFields", "[]", "Patch"),
}

func identity(field, value, kind string) badInput {
	return badInput{
		name:  "content with a " + field,
		setup: fixture.ConfigMap, spec: fixture.OneChange(kind, "{metadata: {"+field+": "+value+"}, data: {a: b}}"), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", "content.metadata." + field, "leave it out of the content"}},
	}
}

var strictErrors = []badInput{
	{
		name: "a Create with an unknown field",
		spec: fixture.OneChange("Create", "{data: {a: b}, dota: {a: b}}"), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", "unknown field", "dota"}},
	},
	{
		name: "an Update with an unknown field", setup: fixture.ConfigMap,
		spec: fixture.OneChange("Update", "{data: {a: b}, dota: {a: b}}"), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", "unknown field", "dota"}},
	},
	{
		name: "a Patch with an unknown field", setup: fixture.ConfigMap,
		spec: fixture.OneChange("Patch", "{data: {a: b}, dota: {a: b}}"), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", "dota"}},
	},
	{
		name: "a Patch of a custom resource with an unknown field", arrange: fixture.MakeGadget,
		spec: `changes: [{target: {apiVersion: input.example.com/v1, kind: Gadget, name: app}, type: Patch, content: {spec: {sise: 2}}}]`,
		same: []string{"input.example.com/v1 Gadget/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"Gadget $NS/app", "sise"}},
	},
	{
		name: "a Create of a custom resource with an unknown field", arrange: fixture.InstallGadgets,
		spec: `changes: [{target: {apiVersion: input.example.com/v1, kind: Gadget, name: app}, type: Create, content: {spec: {sise: 2}}}]`,
		same: []string{"input.example.com/v1 Gadget/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"Gadget $NS/app", "unknown field", "sise"}},
	},
	{
		name: "a Create with a value of the wrong type",
		spec: fixture.OneChange("Create", "{data: {a: 5}}"), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app"}},
	},
	{
		name: "a Create with an annotation that is not text",
		spec: fixture.OneChange("Create", "{metadata: {annotations: {a: 5, b: text}}, data: {}}"), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", "annotations"}},
	},
	{
		name: "a Create with annotations that are a list",
		spec: fixture.OneChange("Create", "{metadata: {annotations: [a]}, data: {}}"), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", "annotations"}},
	},
	{
		name: "a Patch with a value of the wrong type", setup: fixture.ConfigMap,
		spec: fixture.OneChange("Patch", "{data: [a]}"), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app"}},
	},
}

var invalidObjects = []badInput{
	{
		name: "a Create of an object that validation refuses",
		spec: fixture.OneChange("Create", `{data: {"a/b": c}}`), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", "a/b"}},
	},
	{
		name: "an Update to an object that validation refuses", setup: fixture.ConfigMap,
		spec: fixture.OneChange("Update", `{data: {"a/b": c}}`), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", "a/b"}},
	},
	{
		name: "a Patch to an object that validation refuses", setup: fixture.ConfigMap,
		spec: fixture.OneChange("Patch", `{data: {"a/b": c}}`), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", "a/b"}},
	},
	{
		name: "a Patch of an immutable object", setup: fixture.ConfigMap + "immutable: true",
		spec: fixture.OneChange("Patch", `{data: {a: b}}`), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", "immutable"}},
	},
	{
		name: "a custom resource that its schema refuses", arrange: fixture.MakeGadget,
		spec: `changes: [{target: {apiVersion: input.example.com/v1, kind: Gadget, name: app}, type: Patch, content: {spec: {size: -1}}}]`,
		same: []string{"input.example.com/v1 Gadget/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"Gadget $NS/app", "spec.size", "greater than or equal to 0"}},
	},
	{
		name: "a Create with a name that its kind does not allow",
		spec: `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: "Not_A_Name"}, type: Create, content: {data: {a: b}}}]`,
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/Not_A_Name", "RFC 1123"}},
	},
	{
		name: "a ConfigMap above 1 MiB",
		spec: fixture.OneChange("Create", `{data: {a: `+strings.Repeat("x", 1<<20+1)+`}}`), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Invalid", Says: []string{"ConfigMap $NS/app", "may not be more than 1048576 bytes"}},
	},
}

var existence = []badInput{
	{
		name: "a Create of what exists", setup: fixture.ConfigMap,
		spec: fixture.OneChange("Create", "{data: {a: b}}"), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "AlreadyExists", Says: []string{"ConfigMap $NS/app", "it exists already", "use Patch or Update"}},
	},
	{
		name: "an Update of what does not exist",
		spec: fixture.OneChange("Update", "{data: {a: b}}"), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "NotFound", Says: []string{"ConfigMap $NS/app", "does not exist", "make it with a Create"}},
	},
	{
		name: "a Patch of what does not exist",
		spec: fixture.OneChange("Patch", "{data: {a: b}}"), same: []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "NotFound", Says: []string{"ConfigMap $NS/app", "does not exist", "make it with a Create"}},
	},
	{
		name: "a Create in a namespace that does not exist", arrange: func(_ *testing.T, e *harness.Env) { e.ClusterWide() },
		spec: `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app, namespace: $NS-none}, type: Create, content: {data: {a: b}}}]`,
		ends: harness.Ending{Reason: "NamespaceNotFound", Says: []string{"ConfigMap $NS-none/app", `namespaces "$NS-none" not found`}},
	},
	{
		name: "a Patch in a namespace that does not exist", arrange: func(_ *testing.T, e *harness.Env) { e.ClusterWide() },
		spec: `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app, namespace: $NS-none}, type: Patch, content: {data: {a: b}}}]`,
		ends: harness.Ending{Reason: "NotFound", Says: []string{"ConfigMap $NS-none/app", "does not exist", "make it with a Create"}},
	},
	terminatingTarget("Create", ", content: {data: {a: b}}"),
	terminatingTarget("Update", ", content: {data: {a: b}}"),
	terminatingTarget("Patch", ", content: {data: {a: b}}"),
	terminatingTarget("Delete", ""),
}

func terminatingTarget(kind, content string) badInput {
	return badInput{
		name:    "a " + kind + " of what is being deleted",
		arrange: func(t *testing.T, e *harness.Env) { terminating(t, e, "app") },
		spec:    "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: app}, type: " + kind + content + "}]",
		same:    []string{"ConfigMap/app"},
		ends: harness.Ending{Reason: "Terminating", Says: []string{
			"ConfigMap $NS/app", "is being deleted and waits for its finalizers example.com/hold", "wait until it is gone"}},
	}
}

var severalMistakes = []badInput{
	{
		name: "three mistakes in one Transaction, all reported", setup: fixture.ConfigMap,
		spec: `
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, content: {data: {a: b}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: none-1}, type: Patch, content: {data: {a: b}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: app-2}, type: Create, content: {dota: {a: b}}}
  - {target: {apiVersion: v1, kind: ConfigMap, name: none-3}, type: Update, content: {data: {a: b}}}`,
		same: []string{"ConfigMap/app", "ConfigMap/none-1", "ConfigMap/app-2", "ConfigMap/none-3"},
		ends: harness.Ending{Reason: "ValidationFailed", Says: []string{"$NS/none-1", "$NS/app-2", "$NS/none-3", "make it with a Create"}},
	},
	{
		name: "so many mistakes that the message is cut",
		spec: "changes:\n" + strings.Repeat("  - {target: {apiVersion: example.org/v1, kind: Gizmo, name: a-name-of-some-length}, type: Delete}\n", 40),
		ends: harness.Ending{Reason: "KindNotFound", Says: []string{"Gizmo a-name-of-some-length", "…"}},
	},
}
