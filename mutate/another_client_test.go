package mutate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
)

// The rows of the table "another client, between commit and rollback": a Deployment
// written by an apply, by a GitOps applier, by an autoscaler through /scale and by
// an annotator; a change of Janus; and then another client.

const (
	shop = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {app: shop}}
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - {name: web, image: 'example.com/web:1', env: [{name: A, value: a}, {name: B, value: b}], command: [serve, --quiet]}
      - {name: logs, image: 'example.com/logs:1'}
`
	shopChanged = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - {name: web, image: 'example.com/web:2', env: [{name: A, value: a2}, {name: C, value: c}], command: [serve]}
      - {name: proxy, image: 'example.com/proxy:1', env: [{name: PORT, value: "80"}]}
`
)

// shopItem has the Deployment as four managers have written it, and a change of it
// in effect.
func shopItem(t *testing.T) *item {
	t.Helper()
	e := newEnv(t)
	obj := e.create(shop)
	e.apply("gitops", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, labels: {team: a}}}")
	e.merge("autoscaler", obj, `{"spec":{"replicas":5}}`, "scale")
	e.merge("annotator", obj, `{"metadata":{"annotations":{"checked":"yes"}}}`)
	e.age(obj)
	return e.prepare(0, api.Patch, shopChanged).done()
}

func deploymentPatch(spec string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop}, spec: {template: {spec: {containers: [" + spec + "]}}}}"
}

// containers returns the containers by name, in order.
func containers(t *testing.T, obj *unstructured.Unstructured) (names []string, byName map[string]map[string]any) {
	t.Helper()
	byName = map[string]map[string]any{}
	for _, c := range value(t, obj, "spec", "template", "spec", "containers").([]any) {
		container := c.(map[string]any)
		names = append(names, container["name"].(string))
		byName[container["name"].(string)] = container
	}
	return names, byName
}

// variables returns the environment of a container as NAME=value.
func variables(container map[string]any) string {
	var out []string
	list, _ := container["env"].([]any)
	for _, v := range list {
		variable := v.(map[string]any)
		out = append(out, variable["name"].(string)+"="+variable["value"].(string))
	}
	return strings.Join(out, " ")
}

// webAsBefore asserts that the change of the container web is rolled back.
func webAsBefore(t *testing.T, now *unstructured.Unstructured) {
	t.Helper()
	_, all := containers(t, now)
	assert.Equal(t, "example.com/web:1", all["web"]["image"])
	assert.Contains(t, variables(all["web"]), "A=a ")
	assert.NotContains(t, variables(all["web"]), "C=c")
	assert.Equal(t, []any{"serve", "--quiet"}, all["web"]["command"])
	assert.True(t, owns(now, "kubectl", `.spec.template.spec.containers[name="web"].image`), "the owner is back: %v", entries(now))
}

func TestSomebodyDidNothing(t *testing.T) {
	t.Parallel()
	i := shopItem(t)
	i.undone()
	i.restored()
	assert.Empty(t, i.report)
}

func TestSomebodyWroteAnAnnotationASidecarAndAnotherVariable(t *testing.T) {
	t.Parallel()
	i := shopItem(t)
	i.merge("somebody", i.object, `{"metadata":{"annotations":{"note":"x"}}}`)
	i.apply("meshd", deploymentPatch("{name: mesh, image: 'example.com/mesh:1'}"))
	i.apply("meshd2", deploymentPatch("{name: web, env: [{name: D, value: d}]}"))
	i.undone()
	now := i.now()
	webAsBefore(t, now)
	names, all := containers(t, now)
	assert.Equal(t, []string{"web", "logs", "mesh"}, names, "those that were are in their order, and theirs stays")
	assert.Equal(t, "A=a B=b D=d", variables(all["web"]))
	assert.Equal(t, "x", now.GetAnnotations()["note"])
	assert.Equal(t, int64(5), value(t, now, "spec", "replicas"))
	assert.True(t, owns(now, "autoscaler", ".spec.replicas"))
	assert.NotContains(t, strings.Join(managers(now), " "), "janus")
}

func TestSomebodyTheAutoscalerMovedOnAndReclaimsItsReplicas(t *testing.T) {
	t.Parallel()
	i := shopItem(t)
	i.merge("autoscaler", i.object, `{"spec":{"replicas":7}}`, "scale")
	i.undone()
	now := i.now()
	assert.Equal(t, int64(7), value(t, now, "spec", "replicas"))
	assert.Equal(t, []errclass.Field{{Path: ".spec.replicas", Managers: []string{"autoscaler"}, Subresource: "scale", Now: "7", Before: "5"}}, i.report.Reclaimed)
	webAsBefore(t, now)
}

// As long as nobody owns the replicas, the API server does not record who scales.
func TestSomebodyTheAutoscalerReclaimsReplicasThatNobodyOwned(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	obj := e.create(strings.Replace(shop, "  replicas: 1\n", "", 1))
	e.merge("autoscaler", obj, `{"spec":{"replicas":5}}`, "scale")
	require.Equal(t, []string{"kubectl Apply"}, managers(e.live(obj)))
	i := e.prepare(0, api.Patch, shopChanged).done()
	i.merge("autoscaler", i.object, `{"spec":{"replicas":7}}`, "scale")
	i.undone()
	assert.Equal(t, int64(7), value(t, i.now(), "spec", "replicas"))
	assert.Equal(t, []errclass.Field{{Path: ".spec.replicas", Managers: []string{"autoscaler"}, Subresource: "scale", Now: "7", Before: "5"}}, i.report.Reclaimed)
}

func TestSomebodySetOurImageToAnother(t *testing.T) {
	t.Parallel()
	i := shopItem(t)
	i.edit(i.object, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.com/web:3"}]`)
	err := patiently(i.undo)
	fails(t, err, errclass.Conflict, errclass.FieldConflict, `.spec.template.spec.containers[name="web"].image of somebody, now "example.com/web:3", was "example.com/web:1"`)
	now := i.now()
	_, all := containers(t, now)
	assert.Equal(t, "example.com/web:3", all["web"]["image"])
	assert.True(t, owns(now, "somebody", `.spec.template.spec.containers[name="web"].image`))
	assert.Equal(t, "A=a B=b", variables(all["web"]), "the rest is restored")
	assert.Equal(t, int64(5), value(t, now, "spec", "replicas"))
}

func TestSomebodySetOurImageToAnotherAndForceRestoresIt(t *testing.T) {
	t.Parallel()
	i := shopItem(t)
	i.edit(i.object, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.com/web:3"}]`)
	require.Error(t, patiently(i.undo))
	i.effect.Overwrite = true
	i.undone()
	i.restored()
	assert.Equal(t, []errclass.Field{{
		Path: `.spec.template.spec.containers[name="web"].image`, Managers: []string{"somebody"}, Now: `"example.com/web:3"`, Before: `"example.com/web:1"`,
	}}, i.report.Overwritten)
}

// A controller writes between the values and the owners, so that the restore begins
// again: what it has overwritten by then is not forgotten.
func TestSomebodyWritesWhileForceRestoresAndWhatWasOverwrittenIsStillTold(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Patch, settingsChanged).done()
	i.merge("somebody", i.object, `{"data":{"color":"green"}}`)
	i.effect.Overwrite = true
	i.wire.requests()
	i.wire.set(func(n int) {
		if n == 2 {
			e.merge("controller", i.object, `{"metadata":{"annotations":{"seen":"yes"}}}`)
		}
	})
	require.NoError(t, i.undo())
	i.sent("GET PATCH PATCH GET PATCH")
	assert.Equal(t, []errclass.Field{{Path: ".data.color", Managers: []string{"somebody"}, Now: `"green"`, Before: `"blue"`}}, i.report.Overwritten)
	assert.Equal(t, "blue", value(t, i.now(), "data", "color"))
}

// The values are restored, and the owners not: the process dies between the two. Another
// client removes one of the values before the next one goes on.
func TestSomebodyRemovesWhatWasRestoredBeforeItsOwnersAre(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	i := e.prepare(0, api.Update, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}").done()
	i.wire.refuseNth(2)
	require.Error(t, i.undo())
	require.Equal(t, "small", value(t, i.now(), "data", "size"))
	i.merge("somebody", i.object, `{"data":{"size":null}}`)

	i.undone()
	assert.Equal(t, "blue", value(t, i.now(), "data", "color"))
	assert.Equal(t, "<absent>", value(t, i.now(), "data", "size"), "it stays removed")
	assert.False(t, owns(i.now(), i.change.Names.Manager, ".data.color"))
}

func TestSomebodySetTheImageBack(t *testing.T) {
	t.Parallel()
	i := shopItem(t)
	i.edit(i.object, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"example.com/web:1"}]`)
	i.undone()
	assert.True(t, owns(i.now(), "somebody", `.spec.template.spec.containers[name="web"].image`), "it stays theirs")
	assert.False(t, owns(i.now(), "kubectl", `.spec.template.spec.containers[name="web"].image`))
}

func TestSomebodyDeletedTheContainerThatWeAdded(t *testing.T) {
	t.Parallel()
	i := shopItem(t)
	i.edit(i.object, `[{"op":"test","path":"/spec/template/spec/containers/2/name","value":"proxy"},{"op":"remove","path":"/spec/template/spec/containers/2"}]`)
	i.undone()
	names, _ := containers(t, i.now())
	assert.Equal(t, []string{"web", "logs"}, names)
	webAsBefore(t, i.now())
}

func TestSomebodySetAValueInsideTheContainerThatWeAdded(t *testing.T) {
	t.Parallel()
	i := shopItem(t)
	i.apply("somebody", deploymentPatch("{name: proxy, env: [{name: PORT, value: '8080'}]}"))
	fails(t, patiently(i.undo), errclass.Conflict, errclass.FieldConflict, `.spec.template.spec.containers[name="proxy"] of somebody`)
	_, all := containers(t, i.now())
	assert.Equal(t, "PORT=8080", variables(all["proxy"]))
	webAsBefore(t, i.now())
}

func TestSomebodyDeletedTheValueThatWeChanged(t *testing.T) {
	t.Parallel()
	i := shopItem(t)
	i.edit(i.object, `[{"op":"test","path":"/spec/template/spec/containers/0/env/0/name","value":"A"},{"op":"remove","path":"/spec/template/spec/containers/0/env/0"}]`)
	fails(t, patiently(i.undo), errclass.Conflict, errclass.FieldConflict, `.spec.template.spec.containers[name="web"].env[name="A"].value, removed, was "a"`)
	_, all := containers(t, i.now())
	assert.Equal(t, "B=b", variables(all["web"]))
}

func TestSomebodyAppendedToAnAtomicListThatWeSet(t *testing.T) {
	t.Parallel()
	i := shopItem(t)
	i.edit(i.object, `[{"op":"add","path":"/spec/template/spec/containers/0/command/-","value":"--loud"}]`)
	fails(t, patiently(i.undo), errclass.Conflict, errclass.FieldConflict, `.spec.template.spec.containers[name="web"].command of somebody, now ["serve","--loud"], was ["serve","--quiet"]`)
	_, all := containers(t, i.now())
	assert.Equal(t, []any{"serve", "--loud"}, all["web"]["command"])
	assert.Equal(t, "example.com/web:1", all["web"]["image"])
}

func TestSomebodyAppliesTheSameImageAsWeSet(t *testing.T) {
	t.Parallel()
	i := shopItem(t)
	i.apply("somebody", deploymentPatch("{name: web, image: 'example.com/web:2'}"))
	fails(t, patiently(i.undo), errclass.Conflict, errclass.FieldConflict, `.spec.template.spec.containers[name="web"].image of somebody, now "example.com/web:2", was "example.com/web:1"`)
	_, all := containers(t, i.now())
	assert.Equal(t, "example.com/web:2", all["web"]["image"])
}

// A CRD with a keyed list, a set, an atomic list, an atomic object and an object
// that preserves unknown fields.
func TestSomebodyWroteBesideUsIntoACustomResource(t *testing.T) {
	t.Parallel()
	for _, kind := range writes {
		t.Run(string(kind), func(t *testing.T) {
			e := newEnv(t)
			e.widgets()
			const head = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: gadget}, spec: {"
			e.create(head + "parts: [{name: lid, count: 1}, {name: box, count: 2}, {name: key}], tags: [a, b, c], steps: [first, second], selector: {a: b}, options: {empty: {}, deep: {none: null, list: [1]}}}}")
			i := e.prepare(0, kind, head+"parts: [{name: lid, count: 9}, {name: key}], tags: [c, d], steps: [second], selector: {c: d}, options: {empty: {x: 1}, deep: {none: 1, list: []}}}}").done()
			e.apply("somebody", head+"parts: [{name: tape, count: 4}], tags: [e], options: {theirs: 1, deep: {m: 2}}}}")
			i.undone()
			now := i.now()
			assert.Equal(t, map[string]any{
				"parts": []any{
					map[string]any{"name": "lid", "count": int64(1)}, map[string]any{"name": "box", "count": int64(2)},
					map[string]any{"name": "key"}, map[string]any{"name": "tape", "count": int64(4)},
				},
				"tags": []any{"a", "b", "c", "e"}, "steps": []any{"first", "second"}, "selector": map[string]any{"a": "b"}, "mode": "plain",
				"options": map[string]any{"empty": map[string]any{}, "deep": map[string]any{"none": nil, "list": []any{int64(1)}, "m": int64(2)}, "theirs": int64(1)},
			}, value(t, now, "spec"))
			assert.True(t, owns(now, "somebody", `.spec.parts[name="tape"].count`))
			assert.True(t, owns(now, "kubectl", ".spec.selector"), "%v", entries(now))
		})
	}
}

func TestSomebodyWroteBetweenThreeItemsOnOneObject(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(settings)
	patch := func(n int, data string) *item {
		return e.prepare(n, api.Patch, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {"+data+"}}").done()
	}
	items := []*item{patch(0, "color: red"), patch(1, "color: green, size: huge"), patch(2, "color: black, shape: round")}
	items[0].merge("third", items[0].object, `{"data":{"theirs":"x"}}`)
	for n := 2; n >= 0; n-- {
		items[n].undone()
	}
	now := items[0].now()
	assert.Equal(t, map[string]any{"color": "blue", "size": "small", "theirs": "x"}, value(t, now, "data"))
	e.merge("third", items[0].object, `{"data":{"theirs":null}}`)
	assert.Equal(t, entries(items[0].record.Before), entries(items[0].now()))
}

func TestUndoSaysNothingOfASecret(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create("{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: old}}")
	i := e.prepare(0, api.Patch, "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: new}}").done()
	e.merge("somebody", i.object, `{"stringData":{"a":"theirs"}}`)
	err := patiently(i.undo)
	fails(t, err, errclass.Conflict, errclass.FieldConflict, ".data.a of somebody")
	assert.Equal(t, []errclass.Field{{Path: ".data.a", Managers: []string{"somebody"}}}, errclass.FieldsOf(err))
}

// Nothing is tracked of an empty object. One that is re-created is marked until that is
// on record: whatever bears no mark is another client's, no matter who may have sent a creation.
func TestAnEmptyObjectInPlaceOfADeletedOneIsTheirs(t *testing.T) {
	t.Parallel()
	const empty = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}`
	e := newEnv(t)
	e.create(empty)
	i := e.prepare(0, api.Delete, empty).done()
	theirs := e.create(empty)
	require.Empty(t, theirs.GetManagedFields())
	for _, i.change.Fences.Fresh = range []bool{true, false} {
		fails(t, i.undo(), errclass.Conflict, errclass.AlreadyExists, "another client has created it", "kept")
		assert.Equal(t, theirs, i.now())
	}
}

func TestAnEmptyObjectIsMarkedUntilItIsOnRecordThatItWasMadeAnew(t *testing.T) {
	t.Parallel()
	const empty = `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}`
	e := newEnv(t)
	e.create(empty)
	i := e.prepare(0, api.Delete, empty).done()
	for range 2 { // The record gets lost.
		i.report.Recreated = ""
		fails(t, i.undo(), errclass.Retryable, errclass.StaleVersion, "recorded")
		assert.Equal(t, map[string]string{mutate.MarkerAnnotation: i.change.Names.Marker}, i.now().GetAnnotations())
		assert.Equal(t, i.now().GetUID(), i.report.Recreated)
	}
	e.merge("somebody", i.object, `{"data":{"theirs":"x"}}`)
	require.NoError(t, i.undo())
	now := i.now()
	assert.Empty(t, now.GetAnnotations())
	assert.Equal(t, []string{"somebody Update"}, managers(now))
	assert.Equal(t, map[string]any{"theirs": "x"}, value(t, now, "data"))
	i.wire.requests()
	require.NoError(t, i.undo())
	i.sent("GET")
}
