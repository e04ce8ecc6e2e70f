package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	merging "sigs.k8s.io/structured-merge-diff/v4/typed"
)

// What a content leaves out, and another form of the same amount, change nothing. Whatever may be a
// change is taken for one.
func TestAnObjectIsAsAContentSays(t *testing.T) {
	const deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2, paused: true, "
	for name, c := range map[string]struct {
		live, content string
		want          bool
	}{
		"the same":             {deployment + "x: {a: [1, 2]}}}", deployment + "x: {a: [1, 2]}}}", true},
		"less":                 {deployment + "x: {a: 1, b: 2}}}", deployment + "x: {b: 2}}}", true},
		"another value":        {deployment + "x: 1}}", deployment + "x: 2}}", false},
		"another order":        {deployment + "x: [1, 2]}}", deployment + "x: [2, 1]}}", false},
		"more":                 {deployment + "x: {a: 1}}}", deployment + "x: {a: 1, b: 1}}}", false},
		"an empty value":       {deployment + "x: {a: 1}}}", deployment + "x: {a: 1, b: \"\"}}}", false},
		"a null of nothing":    {deployment + "x: {a: 1}}}", deployment + "x: {a: 1, b: null}}}", true},
		"a null of something":  {deployment + "x: {a: 1}}}", deployment + "x: {a: null}}}", false},
		"the same amount":      {deployment + "limits: {cpu: \"1\"}}}", deployment + "limits: {cpu: 1000m}}}", true},
		"another amount":       {deployment + "limits: {cpu: \"1\"}}}", deployment + "limits: {cpu: 100m}}}", false},
		"no amount":            {deployment + "version: \"1\"}}", deployment + "version: 1000m}}", false},
		"a custom resource":    {"{apiVersion: e.org/v1, kind: A, limits: {cpu: \"1\"}}", "{apiVersion: e.org/v1, kind: A, limits: {cpu: 1000m}}", false},
		"the text of a Secret": {"{apiVersion: v1, kind: Secret, data: {a: aGk=}}", "{apiVersion: v1, kind: Secret, stringData: {a: hi}}", true},
		"another text":         {"{apiVersion: v1, kind: Secret, data: {a: aGk=}}", "{apiVersion: v1, kind: Secret, stringData: {a: ho}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(object(t, c.content))
			require.NoError(t, err)
			text, err := json.Marshal(object(t, c.live))
			require.NoError(t, err)
			live := &unstructured.Unstructured{}
			require.NoError(t, live.UnmarshalJSON(text))
			assert.Equal(t, c.want, leavesAsIs(merging.DeducedParseableType, live, raw))
		})
	}
}

func TestAPlanTellsWhatAManifestSets(t *testing.T) {
	content, _ := object(t, `{spec: {replicas: 1, ports: [{port: 80}, {port: 443, protocol: UDP}], list: [a], containers: [{name: web, image: x}]}, metadata: {labels: {a.b/c: x}}}`).(map[string]any)
	for path, want := range map[string]bool{
		".spec.replicas": true, ".spec.paused": false, ".metadata.labels.a.b/c": true, ".metadata.labels.other": false,
		`.spec.ports[port=80,protocol="TCP"].port`: true, `.spec.ports[port=80,protocol="TCP"].protocol`: false,
		`.spec.ports[port=443,protocol="TCP"].port`: false, `.spec.ports[port=443,protocol="UDP"].protocol`: true,
		`.spec.containers[name="web"].image`: true, `.spec.containers[name="web"].imagePullPolicy`: false, `.spec.list`: true, `.spec.containers[name="other"].image`: false,
	} {
		assert.Equal(t, want, sets(content, path), path)
	}
}
