package openapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/spec3"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v4/schema"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
	goyaml "sigs.k8s.io/yaml/goyaml.v2"

	"janus.io/janus/test/testcluster"
)

// serverDocuments reads the documents of all GroupVersions that the cluster serves.
func serverDocuments(t testing.TB) map[string][]byte {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(testcluster.Shared(t).Config())
	require.NoError(t, err)
	paths, err := client.OpenAPIV3().Paths()
	require.NoError(t, err)
	documents := map[string][]byte{}
	for path, at := range paths {
		if path != "api/v1" && (!strings.HasPrefix(path, "apis/") || strings.Count(path, "/") != 2) {
			continue // Not of a GroupVersion.
		}
		if strings.Contains(path, ".janus.io/") {
			continue // The CRDs of other tests come and go.
		}
		documents[path], err = at.Schema("application/json")
		require.NoError(t, err, path)
	}
	require.Greater(t, len(documents), 20)
	return documents
}

// The YAML of a schema is the format that v4 and v6 share.
func TestConvertedSchemasAreWhatTheirYAMLSays(t *testing.T) {
	for path, data := range serverDocuments(t) {
		t.Run(path, func(t *testing.T) {
			var whole spec3.OpenAPI
			require.NoError(t, json.Unmarshal(data, &whole))
			converted, err := schemaconv.ToSchemaFromOpenAPI(whole.Components.Schemas, false)
			require.NoError(t, err)
			text, err := goyaml.Marshal(converted)
			require.NoError(t, err)
			parser, err := typed.NewParser(typed.YAMLObject(text))
			require.NoError(t, err)

			d, err := parse(data)
			require.NoError(t, err)
			assert.NotEmpty(t, d.kinds)
			for gvk := range d.kinds {
				_, err := d.of(gvk)
				require.NoError(t, err)
			}
			for _, got := range d.schema.Types {
				want, ok := parser.Schema.FindNamedType(got.Name)
				require.True(t, ok, got.Name)
				assert.Equal(t, inOrder(t, want), inOrder(t, got), got.Name)
			}
		})
	}
}

// inOrder returns the YAML of a type with its fields in order: each conversion
// shuffles them.
func inOrder(t *testing.T, def smd.TypeDef) string {
	t.Helper()
	text, err := goyaml.Marshal(def)
	require.NoError(t, err)
	var plain any
	require.NoError(t, goyaml.Unmarshal(text, &plain))
	text, err = goyaml.Marshal(sorted(plain))
	require.NoError(t, err)
	return string(text)
}

// sorted sorts the lists of fields by their names.
func sorted(v any) any {
	switch v := v.(type) {
	case map[any]any:
		for key, value := range v {
			v[key] = sorted(value)
		}
	case []any:
		for i := range v {
			v[i] = sorted(v[i])
		}
		slices.SortStableFunc(v, func(a, b any) int { return strings.Compare(nameOf(a), nameOf(b)) })
	}
	return v
}

func nameOf(v any) string {
	fields, _ := v.(map[any]any)
	name, _ := fields["name"].(string)
	return name
}

// Whatever is in the cluster has a type that it fits, and fields that its
// managers own.
func TestEveryObjectOfTheClusterFitsItsType(t *testing.T) {
	create(t, "deployments", decode(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {a: b}, finalizers: [x.io/y]}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - {name: a, image: i, ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}], resources: {limits: {cpu: 1}}}
      - {name: b, image: i, command: [run, it], env: [{name: A, value: "1"}]}`))
	create(t, "services", decode(t, `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80, name: main, targetPort: web}, {port: 81, name: other, targetPort: 8081}], selector: {}}`))
	install(t, groupOf(t), "Fit", `{type: object, properties: {a: {type: array, items: {type: string}, default: [x]}}}`)

	f := onCluster(t)
	client := dynamicClient(t)
	seen, entries := map[schema.GroupVersionKind]int{}, 0
	for gvr, gvk := range listable(t) {
		list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, object := range list.Items {
			seen[gvk]++
			pt := f.must(t, gvk)
			has, err := fieldsOf(pt, object.Object)
			require.NoError(t, err, "%s %s", gvk, object.GetName())
			for _, entry := range object.GetManagedFields() {
				entries++
				owned := &fieldpath.Set{}
				require.NoError(t, owned.FromJSON(entry.FieldsV1.GetRawReader()))
				require.False(t, owned.Empty())
				if gvk == deployment || gvk == service {
					assert.Empty(t, owned.Leaves().Difference(has).String(), "%s %s owns what is not there", gvk, entry.Manager)
				}
			}
		}
	}
	assert.Greater(t, len(seen), 10, "kinds")
	assert.Greater(t, entries, 50, "entries of managedFields")
	assert.NotZero(t, seen[deployment])
	assert.NotZero(t, seen[service])
	assert.Empty(t, f.logs.All())
}

// listable returns the kinds whose objects can be listed.
func listable(t *testing.T) map[schema.GroupVersionResource]schema.GroupVersionKind {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(testcluster.Shared(t).Config())
	require.NoError(t, err)
	_, lists, err := client.ServerGroupsAndResources()
	require.NoError(t, err)
	out := map[schema.GroupVersionResource]schema.GroupVersionKind{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			// The CRDs of other tests come and go.
			if slices.Contains(r.Verbs, "list") && !strings.HasSuffix(gv.Group, ".janus.io") {
				out[gv.WithResource(r.Name)] = gv.WithKind(r.Kind)
			}
		}
	}
	return out
}

func BenchmarkColdParse(b *testing.B) {
	data := serverDocuments(b)["apis/apps/v1"]
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := parse(data)
		require.NoError(b, err)
	}
}

// BenchmarkColdOf has the requests in it.
func BenchmarkColdOf(b *testing.B) {
	f := onCluster(b)
	for b.Loop() {
		_, err := New(f.client, f.Types.clock, f.log, 0).Of(b.Context(), deployment)
		require.NoError(b, err)
	}
}

func BenchmarkWarmOf(b *testing.B) {
	f := onCluster(b)
	for b.Loop() {
		f.must(b, deployment)
	}
}
