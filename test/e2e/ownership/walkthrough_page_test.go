package ownership

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files of testdata/walkthrough, and the page that shows them, anew")

// shortened leaves of a Deployment what the walk is about.
func shortened(obj *unstructured.Unstructured) map[string]any {
	annotations := obj.GetAnnotations()
	delete(annotations, lastApplied)
	delete(annotations, revision)
	meta := map[string]any{"name": obj.GetName(), "labels": obj.GetLabels()}
	if len(annotations) > 0 {
		meta["annotations"] = annotations
	}
	var containers []any
	list, _ := deep(obj.Object, "spec", "template", "spec", "containers").([]any)
	for _, c := range list {
		container, _ := c.(map[string]any)
		short := map[string]any{"name": container["name"], "image": container["image"]}
		if env := container["env"]; env != nil {
			short["env"] = env
		}
		containers = append(containers, short)
	}
	return map[string]any{"metadata": meta, "spec": map[string]any{
		"replicas": deep(obj.Object, "spec", "replicas"), "revisionHistoryLimit": deep(obj.Object, "spec", "revisionHistoryLimit"),
		"template": map[string]any{"spec": map[string]any{"containers": containers}},
	}}
}

// aboutUs are the fields that shortened leaves.
var aboutUs = regexp.MustCompile(`^\.metadata\.(labels|annotations)\.\w+$|^\.spec\.(replicas|revisionHistoryLimit)$|\]\.(image|value)$`)

// ownersTable lists who owns these fields.
func ownersTable(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	var out strings.Builder
	all := obj.GetManagedFields()
	slices.SortFunc(all, func(a, b metav1.ManagedFieldsEntry) int { return strings.Compare(a.Manager, b.Manager) })
	for _, entry := range all {
		if entry.Subresource == "status" {
			continue
		}
		who := strings.TrimSpace(entry.Manager + " " + entry.Subresource)
		for _, path := range pathsOf(t, entry) {
			if aboutUs.MatchString(path) {
				fmt.Fprintf(&out, "%-29s %s\n", who, path)
				who = ""
			}
		}
	}
	return out.String()
}

func pathsOf(t *testing.T, entry metav1.ManagedFieldsEntry) []string {
	t.Helper()
	set := fieldpath.NewSet()
	require.NoError(t, set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())))
	var out []string
	set.Iterate(func(p fieldpath.Path) { out = append(out, p.String()) })
	return out
}

// status shows what the status says of the Transaction and its items.
func (w *walk) status(name string, txn *api.Transaction) {
	w.t.Helper()
	var items []any
	for _, item := range txn.Status.Items {
		short := map[string]any{"name": item.Name, "state": item.State}
		for key, fields := range map[string][]api.OwnedFields{"taken": item.Taken, "reclaimed": item.Reclaimed} {
			if len(fields) > 0 {
				short[key] = fields
			}
		}
		if item.Reason != "" {
			short["reason"] = item.Reason
		}
		items = append(items, short)
	}
	w.shows(name+"-status.txt", asYAML(w.t, map[string]any{"phase": txn.Status.Phase, "items": items}))
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// shows compares text with a golden file, or with -update writes it.
func (w *walk) shows(name, text string) {
	w.t.Helper()
	w.shown = append(w.shown, name)
	path := filepath.Join("..", "..", "..", "testdata", "walkthrough", name)
	if *update {
		require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(w.t, os.WriteFile(path, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(w.t, err)
	assert.Equal(w.t, string(want), text, "%s; write it anew with -update", path)
}

// block is a golden file as the page shows it.
var block = regexp.MustCompile("(?s)<!-- ([a-z-]+\\.txt) -->\n```[a-z]*\n(.*?)```\n")

// page compares the page with the golden files, or with -update puts them in. It
// shows each of them once, in the order of the walk.
func (w *walk) page() {
	w.t.Helper()
	path := filepath.Join("..", "..", "..", "docs", "walkthrough.md")
	page, err := os.ReadFile(path)
	require.NoError(w.t, err)
	var names []string
	fresh := block.ReplaceAllStringFunc(string(page), func(found string) string {
		parts := block.FindStringSubmatch(found)
		names = append(names, parts[1])
		golden, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "walkthrough", parts[1]))
		require.NoError(w.t, err)
		return strings.TrimSuffix(found, parts[2]+"```\n") + string(golden) + "```\n"
	})
	assert.Equal(w.t, w.shown, names, "what the page shows")
	if *update {
		//nolint:gosec // The page is the repository's own, and so is what goes into it.
		require.NoError(w.t, os.WriteFile(path, []byte(fresh), 0o644))
		return
	}
	assert.Equal(w.t, fresh, string(page), "%s; write it anew with -update", path)
}
