package v1alpha1_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"janus.io/janus/api/v1alpha1"
)

func TestStatusIsUnobservedUntilJanusSetsIt(t *testing.T) {
	client := install(t).transactions(t)
	// A client with typed objects sends an empty status, one without sends none.
	for title, e := range map[string]edit{
		"no status":       func(map[string]any) {},
		"an empty status": func(o map[string]any) { o["status"] = map[string]any{} },
		"a forged status": func(o map[string]any) { o["status"] = map[string]any{"phase": "Committed"} },
	} {
		t.Run(title, func(t *testing.T) {
			tx, err := create(t.Context(), client, transaction(e))
			require.NoError(t, err)
			read, err := client.Get(t.Context(), tx.GetName(), metav1.GetOptions{})
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"observedGeneration": int64(-1)}, tx.Object["status"])
			assert.Equal(t, map[string]any{"observedGeneration": int64(-1)}, read.Object["status"])
		})
	}
}

func TestDefaultsOfSpec(t *testing.T) {
	client := install(t).transactions(t)
	tx, err := create(t.Context(), client, transaction())
	require.NoError(t, err)
	spec := tx.Object["spec"].(map[string]any)
	assert.Equal(t, "5m", spec["lockTimeout"])
	assert.Equal(t, "30m", spec["timeout"])
	assert.Equal(t, "Release", spec["onDelete"])
}

func TestDiscovery(t *testing.T) {
	server := install(t)
	for _, version := range v1alpha1.Versions {
		resources, err := server.discovery.ServerResourcesForGroupVersion(version.String())
		require.NoError(t, err)
		i := slices.IndexFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == "transactions" })
		require.GreaterOrEqual(t, i, 0)
		found := resources.APIResources[i]
		assert.Equal(t, "Transaction", found.Kind)
		assert.Equal(t, "transaction", found.SingularName)
		assert.Equal(t, []string{"txn"}, found.ShortNames)
		assert.Equal(t, []string{"janus"}, found.Categories)
		assert.True(t, found.Namespaced)
		assert.True(t, slices.ContainsFunc(resources.APIResources,
			func(r metav1.APIResource) bool { return r.Name == "transactions/status" }))
	}
}

func TestFieldSelectors(t *testing.T) {
	client := install(t).transactions(t)
	running, err := create(t.Context(), client, transaction(set("one", "serviceAccountName")))
	require.NoError(t, err)
	_, err = create(t.Context(), client, transaction(set("two", "serviceAccountName")))
	require.NoError(t, err)
	patchStatus(t, client, running.GetName(), map[string]any{"phase": "Committing"})

	for selector, want := range map[string]int{
		"spec.serviceAccountName=one":                          1,
		"spec.serviceAccountName!=one":                         1,
		"status.phase=Committing":                              1,
		"status.phase=Committing,spec.serviceAccountName=two":  0,
		"status.phase!=Committing":                             1,
		"status.phase=Committing,spec.serviceAccountName!=two": 1,
	} {
		list, err := client.List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		require.NoError(t, err, selector)
		assert.Len(t, list.Items, want, selector)
	}
}

func TestTable(t *testing.T) {
	server := install(t)
	client := server.transactions(t)
	tx, err := create(t.Context(), client, transaction(changes(5)))
	require.NoError(t, err)
	patchStatus(t, client, tx.GetName(), map[string]any{
		"phase": "RolledBack", "progress": "0/5", "failedItem": "c", "duration": "2s",
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "FieldConflict", "message": "it is taken",
			"lastTransitionTime": time.Unix(0, 0).UTC().Format(time.RFC3339),
		}},
	})

	for _, version := range v1alpha1.Versions {
		body, err := server.discovery.RESTClient().Get().
			AbsPath("apis", version.Group, version.Version, "namespaces", tx.GetNamespace(), "transactions").
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
			DoRaw(t.Context())
		require.NoError(t, err)
		var table metav1.Table
		require.NoError(t, json.Unmarshal(body, &table))
		require.Len(t, table.Rows, 1)
		narrow, wide := map[string]any{}, map[string]any{}
		var columns []string
		for i, column := range table.ColumnDefinitions {
			columns = append(columns, strings.ToUpper(column.Name))
			if column.Priority == 0 {
				narrow[column.Name] = table.Rows[0].Cells[i]
			} else {
				wide[column.Name] = table.Rows[0].Cells[i]
			}
		}
		assert.Equal(t, []string{"NAME", "PHASE", "PROGRESS", "READY", "REASON", "AGE", "SA", "FAILED-ITEM", "DURATION", "REVISION", "MESSAGE"}, columns)
		assert.NotEmpty(t, narrow["Age"])
		delete(narrow, "Age")
		assert.Equal(t, map[string]any{"Name": tx.GetName(), "Phase": "RolledBack", "Progress": "0/5", "Ready": "False", "Reason": "FieldConflict"}, narrow)
		assert.Equal(t, map[string]any{"SA": "deployer", "Failed-Item": "c", "Duration": "2s", "Revision": nil, "Message": "it is taken"}, wide)
	}
}

// TestEveryFieldIsExplained walks the schema as it is published for kubectl
// explain.
func TestEveryFieldIsExplained(t *testing.T) {
	server := install(t)
	for _, version := range v1alpha1.Versions {
		whole := published(t, server, version)
		assert.NotEmpty(t, whole["description"])
		fields := explained(t, "", whole)
		// A walk that went nowhere would have found nothing to complain about.
		for _, field := range []string{"spec.changes.target.name", "spec.changes.content", "status.items.before.digest", "status.conditions.reason"} {
			assert.Contains(t, fields, field)
		}
	}
}

// published is the schema of Transactions that the API server tells clients.
func published(t *testing.T, s server, version schema.GroupVersion) map[string]any {
	t.Helper()
	var told struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	kind := "io.janus.backup." + version.Version + ".Transaction"
	require.Eventually(t, func() bool {
		body, err := s.discovery.RESTClient().Get().AbsPath("openapi", "v3", "apis", version.Group, version.Version).DoRaw(t.Context())
		return err == nil && json.Unmarshal(body, &told) == nil && told.Components.Schemas[kind] != nil
	}, settle, poll, "the schema is published")
	return told.Components.Schemas[kind]
}

// explained returns the paths of all fields, and fails for those without a
// description.
func explained(t *testing.T, path string, schema map[string]any) []string {
	t.Helper()
	var fields []string
	if items, ok := schema["items"].(map[string]any); ok {
		fields = append(fields, explained(t, path, items)...)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		field := strings.TrimPrefix(path+"."+name, ".")
		property := p.(map[string]any)
		description, _ := property["description"].(string)
		assert.Greater(t, len(description), 20, "%s has no description to speak of", field)
		fields = append(fields, field)
		fields = append(fields, explained(t, field, property)...)
	}
	return fields
}

func TestStatusIsBounded(t *testing.T) {
	client := install(t).transactions(t)
	for title, c := range map[string]struct {
		status map[string]any
		want   refusal
	}{
		"an unknown phase": {
			map[string]any{"phase": "Done"},
			refusal{"status.phase", `Unsupported value: "Done": supported values: "Pending", "Preparing", "Prepared", "Committing", "Committed", "RollingBack", "RolledBack", "Planned", "Failed"`},
		},
		"a long progress": {
			map[string]any{"progress": strings.Repeat("1", 33)},
			refusal{"status.progress", "Too long: may not be more than 32 bytes"},
		},
		"a long list of objects": {
			map[string]any{"rollbackRef": map[string]any{"name": "x", "objects": slices.Repeat([]any{"ConfigMap/x"}, 10001)}},
			refusal{"status.rollbackRef.objects", "Too many: 10001: must have at most 10000 items"},
		},
		"an unknown state of an item": {
			map[string]any{"items": []any{map[string]any{
				"name": "0", "state": "Undone", "prepared": true, "committed": false, "rolledBack": false,
				"target": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"},
			}}},
			refusal{"status.items[0].state", `Unsupported value: "Undone": supported values: "Pending", "Prepared", "Committing", "Committed", "Rejected", "RollingBack", "RolledBack", "Unresolved", "Skipped"`},
		},
	} {
		t.Run(title, func(t *testing.T) {
			tx, err := create(t.Context(), client, transaction())
			require.NoError(t, err)
			_, err = client.Patch(t.Context(), tx.GetName(), types.MergePatchType, statusPatch(t, c.status), metav1.PatchOptions{}, "status")
			assertRefused(t, []refusal{c.want}, err)
		})
	}
}

func TestSpecCannotBeChangedThroughStatus(t *testing.T) {
	client := install(t).transactions(t)
	tx, err := create(t.Context(), client, transaction())
	require.NoError(t, err)
	spec := tx.DeepCopy().Object["spec"]
	for version := range int64(2) {
		set("other", "serviceAccountName")(tx.Object)
		inChange("other", "target", "name")(tx.Object)
		require.NoError(t, unstructured.SetNestedField(tx.Object, version+1, "status", "version"))
		tx, err = client.UpdateStatus(t.Context(), tx, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, spec, tx.Object["spec"])
		stored, _, err := unstructured.NestedInt64(tx.Object, "status", "version")
		require.NoError(t, err)
		assert.Equal(t, version+1, stored)
	}
}

func patchStatus(t *testing.T, client dynamic.ResourceInterface, name string, status map[string]any) {
	t.Helper()
	_, err := client.Patch(t.Context(), name, types.MergePatchType, statusPatch(t, status), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

func statusPatch(t *testing.T, status map[string]any) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{"status": status})
	require.NoError(t, err)
	return body
}
