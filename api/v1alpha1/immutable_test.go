package v1alpha1_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/api/v1alpha1"
)

func TestSpecCannotBeChanged(t *testing.T) {
	client := install(t).transactions(t)
	tried := map[string]bool{"suspend": true, "cancel": true, "dryRun": true}
	for title, c := range map[string]struct {
		field  string
		change edit
	}{
		"another ServiceAccount":           {"serviceAccountName", set("other", "serviceAccountName")},
		"another lockTimeout":              {"lockTimeout", set("6m", "lockTimeout")},
		"the same lockTimeout, spelt anew": {"lockTimeout", set("300s", "lockTimeout")},
		"no lockTimeout for another":       {"lockTimeout", func(o map[string]any) { delete(o["spec"].(map[string]any), "lockTimeout") }},
		"another timeout":                  {"timeout", set("31m", "timeout")},
		"a default dropped for another":    {"onDelete", set("Rollback", "onDelete")},
		"another conflictPolicy":           {"conflictPolicy", set("Force", "conflictPolicy")},
		"a change more":                    {"changes", changes(2)},
		"another target":                   {"changes", inChange("other", "target", "name")},
		"a value deep in content":          {"changes", inChange("red", "content", "data", "colour")},
		"a field more deep in content":     {"changes", inChange("round", "content", "data", "shape")},
		"a field less deep in content":     {"changes", dropInChange("content", "metadata", "labels", "tier")},
		"the type of a value in content":   {"changes", inChange(int64(1), "content", "data", "colour")},
		"another order":                    {"order", set("List", "order")},
		"another parallelism":              {"parallelism", set(int64(3), "parallelism")},
		"another retryLimit":               {"retryLimit", set(int64(3), "retryLimit")},
		"another pace":                     {"changesPerMinute", set(int64(3), "changesPerMinute")},
		"another onFailure":                {"onFailure", set("Rollback", "onFailure")},
		"another field manager":            {"fieldManager", set("helm", "fieldManager")},
		"another dependency":               {"changes", inChange([]any{name(1)}, "dependsOn")},
		"another time after its end":       {"ttlSecondsAfterFinished", set(int64(61), "ttlSecondsAfterFinished")},
		"a longer history":                 {"revisionHistoryLimit", set(int64(11), "revisionHistoryLimit")},
		// What changes it is taken for a write of the status.
		"with status.version": {"changes", func(o map[string]any) {
			inChange("other", "target", "name")(o)
			o["status"] = map[string]any{"version": int64(7)}
		}},
		"with suspend": {"timeout", func(o map[string]any) {
			set(true, "suspend")(o)
			set("31m", "timeout")(o)
		}},
	} {
		tried[c.field] = true
		t.Run(title, func(t *testing.T) {
			tx, err := create(t.Context(), client, transaction(set("7m", "lockTimeout"), set(int64(60), "ttlSecondsAfterFinished"), set(int64(10), "revisionHistoryLimit"), set("Graph", "order"), set(int64(2), "parallelism"), set(int64(2), "retryLimit"), set(int64(2), "changesPerMinute"), set("gitops", "fieldManager"), set("Continue", "onFailure")))
			require.NoError(t, err)
			c.change(tx.Object)
			_, err = client.Update(t.Context(), tx, metav1.UpdateOptions{})
			found := refusals(t, err)
			require.Len(t, found, 1)
			assert.Equal(t, "spec."+c.field, found[0].field)
			assert.Contains(t, found[0].message, immutableRule)
		})
	}
	t.Run("another undo", func(t *testing.T) {
		tried["undoOf"] = true
		tx, err := create(t.Context(), client, transaction(drop("changes"), set(map[string]any{"revision": int64(1)}, "undoOf")))
		require.NoError(t, err)
		set(int64(2), "undoOf", "revision")(tx.Object)
		_, err = client.Update(t.Context(), tx, metav1.UpdateOptions{})
		assertRefused(t, []refusal{{"spec.undoOf", "Invalid value: " + immutableRule}}, err)
	})
	t.Run("another approval", func(t *testing.T) {
		tried["approval"] = true
		tx, err := create(t.Context(), client, transaction(set(map[string]any{"required": true}, "approval")))
		require.NoError(t, err)
		set(false, "approval", "required")(tx.Object)
		_, err = client.Update(t.Context(), tx, metav1.UpdateOptions{})
		found := refusals(t, err)
		require.Len(t, found, 1)
		assert.Equal(t, "spec.approval", found[0].field)
		assert.Contains(t, found[0].message, immutableRule)
	})
	for field, value := range map[string]any{
		"approval":                map[string]any{"required": true},
		"ttlSecondsAfterFinished": int64(60), "revisionHistoryLimit": int64(60), "order": "Graph",
		"parallelism": int64(60), "retryLimit": int64(60), "changesPerMinute": int64(60), "fieldManager": "gitops",
	} {
		add, drop := set(value, field), drop(field)
		for title, c := range map[string]struct {
			with   []edit
			change edit
		}{
			field + " that was not there": {nil, add},
			field + " less":               {[]edit{add}, drop},
		} {
			t.Run(title, func(t *testing.T) {
				tx, err := create(t.Context(), client, transaction(c.with...))
				require.NoError(t, err)
				c.change(tx.Object)
				_, err = client.Update(t.Context(), tx, metav1.UpdateOptions{})
				assertRefused(t, []refusal{{"spec", "Invalid value: " + immutableRule}}, err)
			})
		}
	}
	for title, c := range map[string]struct {
		with   []edit
		change edit
	}{
		"a plan made of it":              {nil, set(true, "dryRun")},
		"carried out, which was a plan":  {[]edit{set(true, "dryRun")}, set(false, "dryRun")},
		"carried out, which was planned": {[]edit{set(true, "dryRun")}, drop("dryRun")},
	} {
		t.Run(title, func(t *testing.T) {
			tx, err := create(t.Context(), client, transaction(c.with...))
			require.NoError(t, err)
			c.change(tx.Object)
			_, err = client.Update(t.Context(), tx, metav1.UpdateOptions{})
			assertRefused(t, []refusal{{"spec", "Invalid value: " + immutableRule}}, err)
		})
	}
	for field := range reflect.TypeFor[v1alpha1.TransactionSpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		assert.True(t, tried[name], "nothing tries to change %s", name)
	}
}

func TestSuspendAndCancelCanBeChanged(t *testing.T) {
	client := install(t).transactions(t)
	tx, err := create(t.Context(), client, transaction(changes(1000)))
	require.NoError(t, err)
	for _, change := range []edit{
		set(true, "suspend"), set("Stop", "cancel"), set(false, "suspend"), set("Rollback", "cancel"),
		func(o map[string]any) { delete(o["spec"].(map[string]any), "cancel") },
	} {
		before := tx.GetGeneration()
		change(tx.Object)
		tx, err = client.Update(t.Context(), tx, metav1.UpdateOptions{})
		require.NoError(t, err)
		assert.Equal(t, before+1, tx.GetGeneration())
	}
	set("Pause", "cancel")(tx.Object)
	_, err = client.Update(t.Context(), tx, metav1.UpdateOptions{})
	assertRefused(t, []refusal{{"spec.cancel", `Unsupported value: "Pause": supported values: "Rollback", "Stop"`}}, err)
}

func TestWhatIsNotSpecCanBeChanged(t *testing.T) {
	client := install(t).transactions(t)
	tx, err := create(t.Context(), client, transaction(changes(1000)))
	require.NoError(t, err)
	tx.SetLabels(map[string]string{"team": "blue"})
	tx.SetFinalizers([]string{"backup.janus.io/lease-cleanup"})
	tx, err = client.Update(t.Context(), tx, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 1, tx.GetGeneration(), "the spec is as it was")
	tx.SetFinalizers(nil)
	_, err = client.Update(t.Context(), tx, metav1.UpdateOptions{})
	require.NoError(t, err)
}
