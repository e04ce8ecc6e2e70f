package crossplane

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/crossplane"
)

// What is planned is made by the same command without plan, once someone has agreed.
func TestAChangeIsMadeByOneCommand(t *testing.T) {
	w := newWorld(t)
	w.push("family", "v1.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.push("store", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	const as = " --service-account installer --crossplane-version v2.1.3"

	said := w.refused(1, "kubectl janus package install %s:v1.0.0"+as+" </dev/null", w.source("bucket"))
	assert.Contains(t, said, "+ Provider acme-family: v1.0.0 comes")
	assert.Contains(t, said, "Make these changes? [y/N]")
	assert.Contains(t, said, "nobody answered, and nothing is changed: set --yes where nobody can be asked")
	said = w.refused(1, "echo no | kubectl janus package install %s:v1.0.0"+as, w.source("bucket"))
	assert.Contains(t, said, "error: nothing is changed")
	assert.Nil(t, w.provider("acme-bucket"))
	said = w.refused(1, "kubectl janus package install %s:v1.0.0 --crossplane-version v2.1.3 --yes", w.source("bucket"))
	assert.Contains(t, said, "no ServiceAccount is named: set --service-account to the one that makes the changes")

	said = w.types("echo y | kubectl janus package install %s:v1.0.0"+as+" --wait --timeout 2m", w.source("bucket"))
	assert.Contains(t, said, "committed")
	assert.True(t, w.healthy("acme-bucket") && w.healthy("acme-family"))
	assert.Contains(t, w.types("kubectl janus package install %s:v1.0.0"+as+" --yes", w.source("bucket")), "NothingToDo")

	said = w.refused(1, "kubectl janus package delete acme-family --service-account installer --yes")
	assert.Contains(t, said, "error: HasDependents: ")
	assert.Contains(t, said, "nothing is changed: see above what stands in the way")

	w.types("kubectl janus package replace acme-bucket %s:v1.0.0"+as+" --yes --wait --timeout 2m", w.source("store"))
	assert.True(t, w.healthy("acme-store") && w.controls("acme-store", "buckets.acme.io"))
	w.types("kubectl delete provider acme-bucket --wait")
	w.types("kubectl janus package delete acme-store acme-family --service-account installer --yes --wait --timeout 2m")
	w.until("no packages are left", func() bool { return w.provider("acme-store") == nil && w.provider("acme-family") == nil })
}

// With -o json, what is on standard output is data and nothing else.
func TestPackagesAreData(t *testing.T) {
	w := newWorld(t)
	w.push("family", "v1.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.push("store", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	const as = " --service-account installer --crossplane-version v2.1.3"
	reads := func(into any, command string, args ...any) {
		t.Helper()
		out := w.types(command+" -o json 2>/dev/null", args...)
		require.NoError(t, json.Unmarshal([]byte(out), into), out)
	}
	var list, tree []map[string]any
	reads(&list, "kubectl janus package list")
	reads(&tree, "kubectl janus package tree")
	require.NotNil(t, list, "an empty list is []")
	require.Empty(t, append(list, tree...))

	assert.Contains(t, w.refused(2, "kubectl janus package plan install %s:v1.0.0"+as+" -o table", w.source("bucket")), "want json or yaml")
	plans := func(command string, args ...any) {
		t.Helper()
		var planned api.Transaction
		reads(&planned, "kubectl janus package plan "+command, args...)
		require.Equal(t, "Transaction", planned.Kind)
		require.NotEmpty(t, planned.Spec.Changes)
	}
	commits := func(command string, args ...any) {
		t.Helper()
		var made api.Transaction
		reads(&made, "kubectl janus package "+command+" --yes --wait --timeout 2m", args...)
		require.Equal(t, api.PhaseCommitted, made.Status.Phase, describe(&made))
	}
	plans("install %s:v1.0.0"+as, w.source("bucket"))
	said := w.types("kubectl janus package install %s:v1.0.0"+as+" --yes -o json 2>&1 >/dev/null --wait --timeout 2m | cat", w.source("bucket"))
	assert.Contains(t, said, "+ Provider acme-family: v1.0.0 comes", "people see the plan on standard error")
	reads(&list, "kubectl janus package list")
	require.Len(t, list, 2)
	for _, one := range list {
		assert.Equal(t, "Provider", one["kind"], one)
		assert.Equal(t, "v1.0.0", one["version"], one)
		assert.Equal(t, true, one["healthy"], one)
		assert.EqualValues(t, 1, one["objects"], one)
	}
	reads(&tree, "kubectl janus package tree")
	require.Equal(t, []map[string]any{{
		"kind": "Provider", "source": w.source("bucket"), "version": "v1.0.0",
		"needs": []any{map[string]any{"kind": "Provider", "source": w.source("family"), "version": "v1.0.0", "wanted": ">=v1.0.0"}},
	}}, tree)

	plans("replace acme-bucket %s:v1.0.0"+as, w.source("store"))
	commits("replace acme-bucket %s:v1.0.0"+as, w.source("store"))
	w.types("kubectl delete provider acme-bucket --wait")
	plans("delete acme-store acme-family --service-account installer")
	commits("delete acme-store acme-family --service-account installer")
	w.until("no packages are left", func() bool { return w.provider("acme-store") == nil && w.provider("acme-family") == nil })
}
