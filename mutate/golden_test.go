package mutate_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

var top = filepath.Join("..", "testdata")

// TestManifestIsAsItWasAfterUndo makes each type of change to each manifest of
// testdata/manifests and rolls it back. What the target was before, after the
// change, and after its compensation is under testdata/golden.
func TestManifestIsAsItWasAfterUndo(t *testing.T) {
	t.Parallel()
	manifests, err := os.ReadDir(filepath.Join(top, "manifests"))
	require.NoError(t, err)
	for _, m := range manifests {
		for _, kind := range []api.ChangeType{api.Create, api.Update, api.Patch, api.Delete} {
			content, found := contentFor(t, m.Name(), kind)
			if !found {
				continue
			}
			t.Run(string(kind)+"/"+m.Name(), func(t *testing.T) {
				e := newEnv(t)
				e.widgets()
				if kind != api.Create {
					e.grown(manifest(t, m.Name(), "object"))
				}
				i := e.prepare(0, kind, content)
				if kind == api.Create {
					t.Cleanup(func() { _ = i.undo() })
				}
				dir := filepath.Join(top, "golden", strings.ToLower(string(kind)), m.Name())
				i.golden(filepath.Join(dir, "before.yaml"))
				i.done()
				i.golden(filepath.Join(dir, "done.yaml"))
				i.undone()
				i.golden(filepath.Join(dir, "undone.yaml"))
				i.restored()
				before, err := os.ReadFile(filepath.Join(dir, "before.yaml"))
				require.NoError(t, err)
				undone, err := os.ReadFile(filepath.Join(dir, "undone.yaml"))
				require.NoError(t, err)
				assert.Equal(t, string(before), string(undone), "the golden files")
			})
		}
	}
}

// contentFor returns the content of a change. Not every manifest has every change: a
// Job cannot be replaced, and its deletion is refused.
func contentFor(t *testing.T, name string, kind api.ChangeType) (string, bool) {
	t.Helper()
	file := map[api.ChangeType]string{api.Create: "object", api.Delete: "object", api.Update: "update", api.Patch: "patch"}[kind]
	if _, err := os.Stat(filepath.Join(top, "manifests", name, file+".yaml")); os.IsNotExist(err) || kind == api.Delete && name == "job" {
		return "", false
	}
	return manifest(t, name, file), true
}

func manifest(t *testing.T, name, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, "manifests", name, file+".yaml"))
	require.NoError(t, err)
	return string(text)
}

// grown makes an object as one is that has been in use: several have written it, a
// long time ago.
func (e *env) grown(text string) {
	e.t.Helper()
	obj := e.create(text)
	e.t.Cleanup(func() { _ = e.resource(obj).Delete(context.Background(), obj.GetName(), metav1.DeleteOptions{}) })
	if obj.GetKind() == "Deployment" {
		// The first annotation is the controller's, and with it the map of them.
		e.within("the controller has written it", func() bool { return len(e.live(obj).GetAnnotations()) > 0 })
	}
	e.merge("annotator", obj, `{"metadata":{"annotations":{"example.com/checked":"yes"},"labels":{"team":"blue"}}}`)
	if obj.GetKind() == "Deployment" {
		e.merge("autoscaler", obj, `{"spec":{"replicas":6}}`, "scale")
	}
	e.age(obj)
}

// golden compares the target with a file, or with -update writes it.
func (i *item) golden(path string) {
	i.t.Helper()
	got := "# does not exist\n"
	if now := i.now(); now != nil {
		got = i.readable(now)
	}
	if *update {
		require.NoError(i.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(i.t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(i.t, err)
	assert.Equal(i.t, string(want), got, "%s; write it anew with -update", path)
}

var address = regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`)

// readable is an object without what differs from run to run: what the server and
// controllers set. The owners of its fields are listed in words.
func (i *item) readable(obj *unstructured.Unstructured) string {
	i.t.Helper()
	out := settled(obj)
	var owners []any
	for _, e := range entries(obj) {
		if e.Time != "" && e.Time != longAgo.UTC().Format("2006-01-02T15:04:05Z") {
			e.Time = "now"
		}
		owners = append(owners, e)
	}
	meta := out.Object["metadata"].(map[string]any)
	if len(owners) > 0 {
		meta["managedFields"] = owners
	}
	text, err := yaml.Marshal(out.Object)
	require.NoError(i.t, err)
	names := strings.NewReplacer(i.namespace, "NAMESPACE", string(obj.GetUID()), "UID")
	return address.ReplaceAllString(names.Replace(string(text)), "ADDRESS")
}
