package mutate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

func yes() bool { return true }

func TestK5WhatNobodyCanUndoIsRefusedUnlessItIsLastOrAccepted(t *testing.T) {
	t.Parallel()
	claim := func(size string) string { return "{spec: {resources: {requests: {storage: " + size + "}}}}" }
	for name, c := range map[string]struct {
		kind, before, after, why string
	}{
		"a ConfigMap that becomes immutable":  {"ConfigMap", "{}", "{immutable: true}", "immutable"},
		"a Secret that becomes immutable":     {"Secret", "{immutable: false}", "{immutable: true}", "immutable"},
		"a ConfigMap that was immutable":      {"ConfigMap", "{immutable: true}", "{immutable: true}", ""},
		"a ConfigMap that does not become so": {"ConfigMap", "{}", "{immutable: false}", ""},
		"a claim that grows":                  {"PersistentVolumeClaim", claim("1Gi"), claim("2Gi"), "from 1Gi to 2Gi"},
		"a claim of the same size":            {"PersistentVolumeClaim", claim("1Gi"), claim("1024Mi"), ""},
		"another kind":                        {"Service", "{}", "{immutable: true}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			change := Change{Ref: target.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: c.kind}, Namespace: "shop", Name: "x"}}
			var before, after unstructured.Unstructured
			require.NoError(t, yaml.Unmarshal([]byte(c.before), &before.Object))
			require.NoError(t, yaml.Unmarshal([]byte(c.after), &after.Object))
			warnings, err := change.admitPivot(t.Context(), &before, &after)
			if c.why == "" {
				require.NoError(t, err)
				assert.Empty(t, warnings)
				return
			}
			assert.Equal(t, errclass.Irreversible, errclass.ReasonOf(err))
			assert.Equal(t, errclass.Terminal, errclass.ClassOf(err))
			require.ErrorContains(t, err, c.why)
			require.ErrorContains(t, err, c.kind+" shop/x")
			require.ErrorContains(t, err, "acceptLoss: true")
			for _, allowed := range []Change{{Ref: change.Ref, Options: Options{Last: yes}}, {Ref: change.Ref, Options: Options{AcceptLoss: true}}} {
				warnings, err := allowed.admitPivot(t.Context(), &before, &after)
				require.NoError(t, err)
				require.Len(t, warnings, 1)
				assert.Contains(t, warnings[0], c.why)
			}
			_, err = change.admitPivot(t.Context(), nil, &after)
			require.NoError(t, err)
		})
	}
}
