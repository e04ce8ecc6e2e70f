package bundles

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

var dir = flag.String("dir", ".", "the directory below which the bundles are, one in each")

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m, testcluster.Options{
		ControllerManager: true, Nodes: 2, Audit: true, CRDs: "../../deploy/crd", Judge: harness.JudgeRights, Alone: true,
	}))
}

func TestABundleIsInstalledUpgradedAndRolledBack(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(*dir, "*", "v1.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, found, "no directory below %s has a v1.yaml", *dir)
	plugin := built(t)
	for _, v1 := range found {
		bundle, err := filepath.Abs(filepath.Dir(v1))
		require.NoError(t, err)
		t.Run(filepath.Base(bundle), func(t *testing.T) { tried(t, plugin, bundle) })
	}
}

// built is the plugin.
func built(t *testing.T) string {
	t.Helper()
	plugin := filepath.Join(t.TempDir(), "kubectl-janus")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", plugin, "../../cmd/kubectl-janus")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return plugin
}

// tried takes a bundle through its life.
func tried(t *testing.T, plugin, bundle string) {
	t.Helper()
	e := harness.New(t)
	e.ClusterWide()
	e.Start()
	b := &run{Env: e, t: t, plugin: plugin, shell: e.Shell()}
	require.NoError(t, b.shell.Provide("kubectl-janus", plugin))

	install := b.transaction(filepath.Join(bundle, "v1.yaml"))
	b.objects = targets(install)
	t.Cleanup(b.remove)
	b.ends(install, "install", api.PhaseCommitted)
	b.all(install, "install")
	before := b.read()

	// What is new in the second version is there, too, when it is rolled back.
	upgrade := b.transaction(filepath.Join(bundle, "v2.yaml"))
	b.objects = targets(install, upgrade)
	before = b.readOver(before)
	failing := upgrade.DeepCopy()
	changes, _, err := unstructured.NestedSlice(failing.Object, "spec", "changes")
	require.NoError(t, err)
	changes = append(changes, map[string]any{
		"name": "never-ready", "type": "Create", "target": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "never-ready"},
		"content": map[string]any{"data": map[string]any{"a": "b"}}, "readyWhen": map[string]any{"expression": "has(object.data.never)", "timeout": "3s"},
	})
	require.NoError(t, unstructured.SetNestedSlice(failing.Object, changes, "spec", "changes"))
	b.ends(failing, "failing", api.PhaseRolledBack)
	b.same(before, true, "after the upgrade that failed")

	b.ends(upgrade, "upgrade", api.PhaseCommitted)
	b.all(upgrade, "upgrade")

	undo := b.transaction("")
	unstructured.RemoveNestedField(undo.Object, "spec", "changes")
	require.NoError(t, unstructured.SetNestedField(undo.Object, "upgrade", "spec", "undoOf", "name"))
	b.ends(undo, "undo", api.PhaseCommitted)
	b.same(before, false, "after the undo")
}

// run is what is done with one bundle.
type run struct {
	*harness.Env
	t       *testing.T
	plugin  string
	shell   *testcluster.Shell
	objects []target
}

type target struct{ apiVersion, kind, namespace, name string }

func (o target) String() string {
	return o.kind + " " + strings.TrimPrefix(o.namespace+"/"+o.name, "/")
}

// transaction is what kubectl janus makes of manifests; without any it has no changes.
func (b *run) transaction(file string) *unstructured.Unstructured {
	b.t.Helper()
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": api.GroupVersion.String(), "kind": "Transaction", "spec": map[string]any{"serviceAccountName": "deployer"}}}
	if file != "" {
		printed, err := b.shell.Run(b.t.Context(), "kubectl janus run --dry-run -o json --service-account deployer -f "+file+" 2>/dev/null")
		require.NoError(b.t, err, printed)
		require.NoError(b.t, json.Unmarshal([]byte(printed), &out.Object), printed)
	}
	return out
}

// targets are those of Transactions, each once.
func targets(transactions ...*unstructured.Unstructured) []target {
	var out []target
	seen := map[target]bool{}
	for _, txn := range transactions {
		changes, _, _ := unstructured.NestedSlice(txn.Object, "spec", "changes")
		for _, c := range changes {
			of, _, _ := unstructured.NestedStringMap(c.(map[string]any), "target")
			o := target{of["apiVersion"], of["kind"], of["namespace"], of["name"]}
			if !seen[o] {
				seen[o], out = true, append(out, o)
			}
		}
	}
	return out
}

// ends creates a Transaction under a name with the plugin, and asserts how it ends.
func (b *run) ends(txn *unstructured.Unstructured, name string, phase api.Phase) {
	b.t.Helper()
	spec, _, err := unstructured.NestedMap(txn.Object, "spec")
	require.NoError(b.t, err)
	spec["revisionHistoryLimit"] = int64(10)
	text, err := json.Marshal(map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": api.Kind.Kind, "metadata": map[string]any{"name": name}, "spec": spec,
	})
	require.NoError(b.t, err)
	file := filepath.Join(b.t.TempDir(), name+".json")
	require.NoError(b.t, os.WriteFile(file, text, 0o600))
	printed, err := b.shell.Run(b.t.Context(), "kubectl janus run -f "+file+" 2>&1")
	require.NoError(b.t, err, printed)
	ended := b.Ended(name)
	require.Equal(b.t, phase, ended.Status.Phase, "%s: %s", name, harness.Describe(ended))
	b.NothingLeft(name)
}

// all asserts that every field of the content of changes is in effect.
func (b *run) all(txn *unstructured.Unstructured, name string) {
	b.t.Helper()
	changes, _, err := unstructured.NestedSlice(txn.Object, "spec", "changes")
	require.NoError(b.t, err)
	require.NotEmpty(b.t, changes)
	for i, c := range changes {
		o := targets(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"changes": []any{c}}}})[0]
		is := b.get(o)
		require.NotNil(b.t, is, "%s: %s is not there", name, o)
		content, _, err := unstructured.NestedMap(c.(map[string]any), "content")
		require.NoError(b.t, err)
		assert.Empty(b.t, missing("", content, is.Object), "%s: change %d, %s, is not all in effect", name, i, o)
	}
}

// missing names the fields of content that an object does not have so. Items of lists may have
// more fields, by defaults.
func missing(path string, content, is any) []string {
	var out []string
	switch content := content.(type) {
	case map[string]any:
		object, _ := is.(map[string]any)
		for key, v := range content {
			if path == "" && key == "stringData" {
				continue // It is stored elsewhere.
			}
			out = append(out, missing(path+"."+key, v, object[key])...)
		}
	case []any:
		list, _ := is.([]any)
		for _, v := range content {
			fewest := []string{path + "[]"}
			for _, item := range list {
				if lacks := missing(path+"[]", v, item); len(lacks) == 0 {
					fewest = nil
				}
			}
			out = append(out, fewest...)
		}
	default:
		zero := content == nil || reflect.ValueOf(content).IsZero()
		if !assert.ObjectsAreEqualValues(content, is) && (!zero || is != nil) {
			out = append(out, path)
		}
	}
	return out
}

func (b *run) get(o target) *unstructured.Unstructured {
	b.t.Helper()
	probe := unstructured.Unstructured{Object: map[string]any{"apiVersion": o.apiVersion, "kind": o.kind}}
	client, err := b.For(probe.GroupVersionKind(), o.namespace)
	if meta.IsNoMatchError(err) {
		return nil
	}
	require.NoError(b.t, err)
	obj, err := client.Get(b.t.Context(), o.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(b.t, err)
	return obj
}

// read reads all objects, once the controllers have left them alone.
func (b *run) read() map[target]*unstructured.Unstructured {
	b.t.Helper()
	var last, now map[target]*unstructured.Unstructured
	require.Eventually(b.t, func() bool {
		last, now = now, map[target]*unstructured.Unstructured{}
		for _, o := range b.objects {
			now[o] = b.get(o)
		}
		for o, obj := range now {
			was := last[o]
			if (was == nil) != (obj == nil) || obj != nil && was.GetResourceVersion() != obj.GetResourceVersion() {
				return false
			}
		}
		return true
	}, time.Minute, 500*time.Millisecond, "the objects do not come to rest")
	return now
}

// readOver is read for objects that have come in addition.
func (b *run) readOver(before map[target]*unstructured.Unstructured) map[target]*unstructured.Unstructured {
	for o, obj := range b.read() {
		if _, known := before[o]; !known {
			before[o] = obj
		}
	}
	return before
}

// same asserts that every field and every owner of all objects is as before.
func (b *run) same(before map[target]*unstructured.Unstructured, times bool, when string) {
	b.t.Helper()
	now := b.read()
	for _, o := range b.objects {
		assert.Empty(b.t, harness.Differences(before[o], now[o], false, times), "%s %s\nwas %v\nis %v", o, when, before[o], now[o])
	}
}

// remove deletes what the bundle has made.
func (b *run) remove() {
	for i := len(b.objects) - 1; i >= 0; i-- {
		o := b.objects[i]
		probe := unstructured.Unstructured{Object: map[string]any{"apiVersion": o.apiVersion, "kind": o.kind}}
		if client, err := b.For(probe.GroupVersionKind(), o.namespace); err == nil {
			_ = client.Delete(context.Background(), o.name, metav1.DeleteOptions{})
		}
	}
}
