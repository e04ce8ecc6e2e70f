package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/testcluster"
)

var (
	deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	service    = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	configMap  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secret     = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	volume     = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}
)

func TestTypesOfBuiltInKinds(t *testing.T) {
	f := onCluster(t)
	for _, tt := range []struct {
		kind schema.GroupVersionKind
		path string
		want string
	}{
		{deployment, "", "map"},
		{deployment, "spec.replicas", "numeric"},
		{deployment, "spec.selector", "atomic map"},
		{deployment, "spec.strategy.rollingUpdate.maxSurge", "anything"},
		{deployment, "spec.template.spec.containers", "list by name"},
		{deployment, "spec.template.spec.containers.[].image", "string"},
		{deployment, "spec.template.spec.containers.[].command", "atomic list"},
		{deployment, "spec.template.spec.containers.[].env", "list by name"},
		{deployment, "spec.template.spec.containers.[].ports", "list by containerPort+protocol"},
		{deployment, "spec.template.spec.containers.[].volumeMounts", "list by mountPath"},
		{deployment, "spec.template.spec.containers.[].resources.limits.[]", "untyped"},
		{deployment, "spec.template.spec.tolerations", "atomic list"},
		{deployment, "spec.template.spec.nodeSelector", "atomic map"},
		{deployment, "metadata.finalizers", "set"},
		{deployment, "metadata.ownerReferences", "list by uid"},
		{deployment, "metadata.labels", "map"},
		{deployment, "metadata.managedFields", "atomic list"},
		{deployment, "status.conditions", "list by type"},
		{service, "spec.ports", "list by port+protocol"},
		{service, "spec.selector", "atomic map"},
		{service, "spec.clusterIPs", "atomic list"},
		{configMap, "data", "map"},
		{configMap, "data.[]", "string"},
		{secret, "data", "map"},
		{secret, "data.[]", "string"},
		// An ObjectReference is atomic by itself, but not here.
		{volume, "spec.claimRef", "map"},
		{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
			"spec.versions.[].schema.openAPIV3Schema.properties.[].properties.[].type", "string"},
	} {
		t.Run(tt.kind.Kind+" "+tt.path, func(t *testing.T) {
			assert.Equal(t, tt.want, describe(at(t, f.must(t, tt.kind), tt.path)))
		})
	}
	assert.Empty(t, f.logs.All())
}

func TestTheDefaultOfAKeyIsKnown(t *testing.T) {
	f := onCluster(t)
	for kind, path := range map[schema.GroupVersionKind]string{
		deployment: "spec.template.spec.containers.[].ports.[]",
		service:    "spec.ports.[]",
	} {
		field, ok := fieldOf(at(t, f.must(t, kind), path), "protocol")
		require.True(t, ok)
		assert.Equal(t, "TCP", field.Default, kind)
	}
}

func TestTypesOfACustomResource(t *testing.T) {
	group := groupOf(t)
	widget := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}
	install(t, group, "Widget", `{type: object, properties: {
  keyed: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name, port],
    items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer, default: 80}, value: {type: string}}}},
  set: {type: array, x-kubernetes-list-type: set, items: {type: string}},
  atomic: {type: array, x-kubernetes-list-type: atomic, items: {type: string}},
  unsaid: {type: array, items: {type: string}},
  together: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}},
  apart: {type: object, additionalProperties: {type: string}},
  either: {x-kubernetes-int-or-string: true},
  free: {type: object, x-kubernetes-preserve-unknown-fields: true},
  partly: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}}}`)
	f := onCluster(t)
	f.awaitSchema(t, widget)

	pt := f.must(t, widget)
	for path, want := range map[string]string{
		"metadata.finalizers": "set", "apiVersion": "string",
		"spec.keyed": "list by name+port", "spec.set": "set", "spec.atomic": "atomic list", "spec.unsaid": "atomic list",
		"spec.together": "atomic map", "spec.apart": "map", "spec.apart.[]": "string", "spec.either": "anything",
		"spec.free": "map", "spec.free.[]": "anything", "spec.free.[].[].[]": "anything",
		"spec.partly": "map", "spec.partly.known": "set", "spec.partly.[]": "anything",
	} {
		assert.Equal(t, want, describe(at(t, pt, path)), path)
	}
	_, err := pt.FromUnstructured(decode(t, `
apiVersion: `+group+`/v1
kind: Widget
metadata: {name: a, finalizers: [x.io/y]}
spec:
  keyed: [{name: a, value: x}, {name: a, port: 81}]
  set: [a, b]
  free: {any: [{thing: 1}], other: {}}
  partly: {known: [a], more: {still: more}}
  either: "50%"`).Object, typed.AllowDuplicates)
	assert.NoError(t, err)
}

// A list that was one value becomes a list by key.
func TestASchemaThatChangesIsSeen(t *testing.T) {
	group := groupOf(t)
	gadget := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"}
	const before = `{type: object, properties: {list: {type: array, x-kubernetes-list-type: atomic, items: {type: object, required: [name], properties: {name: {type: string}}}}}}`
	made := install(t, group, "Gadget", before)
	f := onCluster(t)
	list := func() string {
		f.pass(indexLife + 1)
		if pt := f.must(t, gadget); pt.Schema != typed.DeducedParseableType.Schema {
			return describe(at(t, pt, "spec.list"))
		}
		return "deduced"
	}
	within(t, 20*time.Second, func() bool { return list() == "atomic list" })

	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/list/x-kubernetes-list-type", "value": "map"},
		{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/list/x-kubernetes-list-map-keys", "value": []string{"name"}},
	})
	require.NoError(t, err)
	_, err = dynamicClient(t).Resource(crds).Patch(t.Context(), made.GetName(), "application/json-patch+json", patch, metav1.PatchOptions{})
	require.NoError(t, err)
	within(t, 20*time.Second, func() bool { return list() == "list by name" })
}

// The first question about a kind does not wait for the index to grow old.
func TestAKindThatIsNewIsSeenAtOnce(t *testing.T) {
	group := groupOf(t)
	thing := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Thing"}
	f := onCluster(t)
	f.must(t, configMap) // The index is fresh, and knows no Thing.
	install(t, group, "Thing", `{type: object, properties: {a: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}`)
	other := onCluster(t)
	other.awaitSchema(t, thing)
	f.wire.requests()
	f.pass(time.Millisecond)
	assert.Equal(t, "set", describe(at(t, f.must(t, thing), "spec.a")))
	assert.Equal(t, "1 of the index, 1 of schemas", f.wire.requests())
	assert.Empty(t, f.logs.All())
}

// What an API server answers for a schema that is gone is empty, and no error.
func TestAnIndexThatIsOutdatedIsReadAgain(t *testing.T) {
	group := groupOf(t)
	relic := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Relic"}
	made := install(t, group, "Relic", `{type: object}`)
	finder, f := onCluster(t), onCluster(t)
	finder.awaitSchema(t, relic)
	f.must(t, configMap) // The index is fresh, and knows the Relic.

	require.NoError(t, dynamicClient(t).Resource(crds).Delete(t.Context(), made.GetName(), metav1.DeleteOptions{}))
	within(t, 20*time.Second, func() bool {
		paths, err := finder.client.Paths()
		return assert.NoError(t, err) && paths[pathOf(relic.GroupVersion())] == nil
	})
	f.pass(time.Millisecond)
	f.wire.requests()
	assert.Equal(t, typed.DeducedParseableType, f.must(t, relic))
	assert.Equal(t, "1 of the index, 1 of schemas", f.wire.requests())
}

func TestAKindWithoutASchemaIsDeducedAndThatIsSaidOnce(t *testing.T) {
	f := onCluster(t)
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "nowhere.janus.io", Version: "v1", Kind: "Ghost"},
		{Group: "apps", Version: "v1", Kind: "Ghost"},
		{Group: "apps", Version: "v9", Kind: "Deployment"},
		{Group: "extensions", Version: "v1", Kind: "Deployment"},
	} {
		for range 3 {
			f.pass(indexLife + 1)
			assert.Equal(t, typed.DeducedParseableType, f.must(t, gvk))
		}
		said := f.logs.TakeAll()
		require.Len(t, said, 1)
		assert.Equal(t, zap.InfoLevel, said[0].Level)
		assert.Contains(t, said[0].Message, "each of its lists is compared as a whole")
		assert.Equal(t, gvk.String(), said[0].ContextMap()["kind"])
		assert.Contains(t, said[0].ContextMap()["reason"], gvk.GroupVersion().String())
	}
}

// A kind is served before its schema is published: so its lists would be compared as wholes.
func TestASchemaThatIsNotPublishedYetIsWaitedFor(t *testing.T) {
	const empty = `{"components": {"schemas": {}}}`
	for name, published := range map[string]map[string]string{
		"no document":          {"/openapi/v3": `{"paths": {}}`},
		"one without the kind": {"/openapi/v3": fmt.Sprintf(xIndex, "A"), "/openapi/v3/apis/x.io/v1A": empty},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, &rest.Config{Host: "http://nowhere.invalid", QPS: -1})
			f.patience = Patience
			site := maps.Clone(published)
			f.wire.answer(pages(site, status(http.StatusOK, "")))
			for range 3 {
				_, err := f.Of(t.Context(), xKind)
				require.ErrorContains(t, err, "read the schema of x.io/v1, Kind=X: waiting until the API server publishes it")
				assert.Equal(t, errclass.Retryable, errclass.ClassOf(err))
				f.pass(time.Millisecond)
			}
			assert.Equal(t, 3, f.wire.index, "it is looked for each time")

			site["/openapi/v3"], site["/openapi/v3/apis/x.io/v1B"] = fmt.Sprintf(xIndex, "B"), xDocument("string")
			assert.Equal(t, "string", describe(at(t, f.must(t, xKind), "f")))
			assert.Empty(t, f.logs.All())
		})
	}
}

func TestASchemaIsNotWaitedForWithoutEnd(t *testing.T) {
	f := newFixture(t, &rest.Config{Host: "http://nowhere.invalid", QPS: -1})
	f.patience = Patience
	f.wire.answer(pages(map[string]string{"/openapi/v3": `{"paths": {}}`}, status(http.StatusOK, "")))
	_, err := f.Of(t.Context(), xKind)
	require.Error(t, err)
	f.pass(Patience - 1)
	_, err = f.Of(t.Context(), xKind)
	require.Error(t, err)
	f.pass(1)
	assert.Equal(t, typed.DeducedParseableType, f.must(t, xKind))
	assert.Equal(t, typed.DeducedParseableType, f.must(t, xKind))
	assert.Len(t, f.logs.All(), 1)
}

// What is published and cannot be used does not come by waiting.
func TestASchemaOfNoUseIsNotWaitedFor(t *testing.T) {
	f := newFixture(t, &rest.Config{Host: "http://nowhere.invalid", QPS: -1})
	f.patience = Patience
	const missing = `{"components": {"schemas": {"io.x.v1.X": {"type": "object", "properties": {"f": {"$ref": "#/components/schemas/gone"}},
		"x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "X"}]}}}}`
	f.wire.answer(pages(map[string]string{"/openapi/v3": fmt.Sprintf(xIndex, "A"), "/openapi/v3/apis/x.io/v1A": missing}, status(http.StatusOK, "")))
	assert.Equal(t, typed.DeducedParseableType, f.must(t, xKind))
	require.Len(t, f.logs.All(), 1)
	assert.Contains(t, f.logs.All()[0].ContextMap()["reason"], "definition gone is missing")
}

// The API server stores what it would refuse to apply.
func TestAnObjectWithDuplicatesNeedsAllowDuplicates(t *testing.T) {
	object := decode(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: twice}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: i, env: [{name: X, value: "1"}, {name: X, value: "2"}]}]}`)
	made := create(t, "deployments", object)
	pt := onCluster(t).must(t, deployment)
	_, err := pt.FromUnstructured(made.Object)
	require.ErrorContains(t, err, "duplicate entries")
	_, err = pt.FromUnstructured(made.Object, typed.AllowDuplicates)
	require.NoError(t, err)
}

func create(t *testing.T, resource string, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	gvr := object.GroupVersionKind().GroupVersion().WithResource(resource)
	made, err := dynamicClient(t).Resource(gvr).Namespace(testcluster.Namespace(t)).Create(t.Context(), object, metav1.CreateOptions{})
	require.NoError(t, err)
	return made
}
