package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

// parsedObject reads one object of YAML; nil for none.
func parsedObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var out unstructured.Unstructured
	require.NoError(t, out.UnmarshalJSON(data))
	return &out
}

func TestWhatAnotherToolWouldDoOtherwiseIsTold(t *testing.T) {
	t.Parallel()
	const job = "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {containers: [{name: j, image: 'a:1', resources: {limits: {cpu: 1000m}}}]}}}}"
	const liveJob = "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {completions: 1, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: j, image: IMAGE, resources: {limits: {cpu: '1'}}}]}}}}"
	for name, row := range map[string]struct {
		manifest, live string
		want           []string
	}{
		"nothing": {manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}", live: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: c, d: e}}"},
		"hooks": {
			manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/hook: pre-install, argocd.argoproj.io/hook: PreSync}}}",
			want: []string{
				"Job shop/j is a hook of Helm (pre-install): Janus makes it like any other object and never deletes it, so leave it out if it is not wanted",
				"Job shop/j is a hook of Argo CD (PreSync): Janus makes it like any other object and never deletes it, so leave it out if it is not wanted",
			},
		},
		"a Job that is there with the same template": {manifest: job, live: strings.Replace(liveJob, "IMAGE", "'a:1'", 1)},
		"a Job that is not there":                    {manifest: job},
		"a Job that is there with another template": {
			manifest: job, live: strings.Replace(liveJob, "IMAGE", "'a:2'", 1),
			want: []string{"Job shop/j exists, and the template of a Job cannot be changed: give the Job another name, or delete the old one before"},
		},
		"what kubectl apply had set": {
			manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {kept: x}}",
			live: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {team: t, other: o}, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"kind":"ConfigMap","metadata":{"annotations":{},"namespace":"shop","labels":{"team":"t"}},"data":{"kept":"x","gone":"y","gone-already":"z"}}'}}, ` +
				"data: {kept: x, gone: y, theirs: z}}",
			want: []string{"Job shop/j keeps .data.gone, .metadata.labels.team, which kubectl apply had set and the manifest no longer has: Janus removes no field that a manifest leaves out"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := api.Target{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "j"}
			assert.Equal(t, row.want, warningsOf(parsedObject(t, row.manifest), parsedObject(t, row.live), target))
		})
	}
}

func TestAWarningNamesFewOfMany(t *testing.T) {
	t.Parallel()
	var gone []api.Change
	assert.Empty(t, unpruned(gone))
	for range 10 {
		gone = append(gone, api.Change{Target: api.Target{Kind: "ConfigMap", Namespace: "shop", Name: "a"}})
	}
	assert.Equal(t, []string{strings.Repeat("ConfigMap shop/a, ", 7) + "ConfigMap shop/a and 2 more: what the set has and the manifests no longer have stays, unless --prune is set"}, unpruned(gone))
}
