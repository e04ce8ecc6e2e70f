package mutate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
)

const (
	empty   = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"
	labeled = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {app: shop}, annotations: {note: mine}}, data: {color: blue}}"
)

// selected names the ConfigMaps that a label selects.
func (e *env) selected(selector string) []string {
	e.t.Helper()
	list, err := e.resource(parse(e.t, empty)).List(e.t.Context(), metav1.ListOptions{LabelSelector: selector})
	require.NoError(e.t, err)
	var out []string
	for _, found := range list.Items {
		out = append(out, found.GetName())
	}
	return out
}

func TestCreateNamesItsTransaction(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 52)
	for what, name := range map[string]struct{ whole, label string }{
		"a name":         {"release-2.0.1", "release-2.0.1"},
		"a number":       {"7", "7"},
		"63 characters":  {long + "bbbbbbbbbbb", long + "bbbbbbbbbbb"},
		"64 characters":  {long + "bbbbbbbbbbbb", long + "-96a497da9a"},
		"a cut at a dot": {long[1:] + ".bbbbbbbbbbbb", long[1:] + "-abae5ca9dd"},
		"253 characters": {strings.Repeat(long+".", 4) + long[:41], long + "-ede07b1211"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			i := e.plan(0, api.Create, labeled)
			i.change.Names.Transaction.Name = name.whole
			require.NoError(t, i.tryPrepare())
			i.done()
			now := i.now()
			assert.Equal(t, map[string]string{"app": "shop", "janus.io/transaction": name.label}, now.GetLabels())
			assert.Equal(t, "shop/"+name.whole, now.GetAnnotations()["janus.io/transaction"])
			assert.Equal(t, "mine", now.GetAnnotations()["note"])
			assert.Empty(t, now.GetOwnerReferences(), "the garbage collector is to keep it")
			assert.Equal(t, []string{"settings"}, e.selected("janus.io/transaction="+name.label))
			assert.Empty(t, e.selected("app.kubernetes.io/managed-by=janus"), "it is not Janus' own")
			i.undone()
			i.restored()
		})
	}
}

// Whatever the content says there, the label and the annotation are those of the Transaction.
func TestCreateNamesItsTransactionWhateverTheContentSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metadata string
		labels   map[string]string
	}{
		"null":    {"labels: null, annotations: null", map[string]string{}},
		"empty":   {"labels: {}, annotations: {}", map[string]string{}},
		"theirs":  {"labels: {janus.io/transaction: other, a: b}, annotations: {janus.io/transaction: a/b, janus.io/transaction-uid: x}", map[string]string{"a": "b"}},
		"no text": {"labels: {janus.io/transaction: null, a: b}", map[string]string{"a": "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			i := e.prepare(0, api.Create, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, "+c.metadata+"}}").done()
			c.labels["janus.io/transaction"] = "release"
			assert.Equal(t, c.labels, i.now().GetLabels())
			assert.Equal(t, map[string]string{"janus.io/transaction": "shop/release", "janus.io/transaction-uid": i.change.Names.Marker}, i.now().GetAnnotations())
			i.undone()
			i.restored()
		})
	}
}

// Labels that the API server refuses are not mended, nor dropped.
func TestCreateLeavesLabelsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, labels := range []string{"[]", "text", "7", "{a: 7}", "{a: {}}", "{a: not/a/value}"} {
		e := newEnv(t)
		err := e.plan(0, api.Create, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: "+labels+"}}").tryPrepare()
		fails(t, err, errclass.Terminal, errclass.Invalid)
		assert.Contains(t, err.Error(), "abels", labels)
	}
}

const pods = `
  template:
    metadata: {labels: {app: import, tier: batch}}
    spec: {restartPolicy: RESTARTS, containers: [{name: import, image: "example.com/import:1"}]}`

// The API server gives some kinds the labels of their template if they have none. It does
// so no more where there is ours.
func TestCreateLeavesAnObjectItsDefaultLabels(t *testing.T) {
	t.Parallel()
	template := map[string]string{"app": "import", "tier": "batch"}
	job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: import, labels: LABELS}\nspec:\n  suspend: true" + strings.Replace(pods, "RESTARTS", "Never", 1)
	controller := "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: import, labels: LABELS}\nspec:\n  replicas: 0" + strings.Replace(pods, "RESTARTS", "Always", 1)
	for name, text := range map[string]string{"Job": job, "ReplicationController": controller} {
		for labels, want := range map[string]map[string]string{"null": template, "{}": template, "{a: b}": {"a": "b"}} {
			t.Run(name+" "+labels, func(t *testing.T) {
				t.Parallel()
				e := newEnv(t)
				i := e.prepare(0, api.Create, strings.Replace(text, "LABELS", labels, 1)).done()
				got := i.now().GetLabels()
				assert.Equal(t, "release", got["janus.io/transaction"])
				delete(got, "janus.io/transaction")
				assert.Equal(t, want, got)
				inside, _, err := unstructured.NestedStringMap(i.now().Object, "spec", "template", "metadata", "labels")
				require.NoError(t, err)
				assert.Equal(t, "import", inside["app"])
				assert.NotContains(t, inside, "janus.io/transaction", "it would be on the Pods")
				i.undone()
				i.restored()
			})
		}
	}
}

// An object that says who has made it is an object like any other to anyone who changes it.
func TestWhatSaysWhoHasMadeAnObjectIsRestored(t *testing.T) {
	t.Parallel()
	for _, kind := range []api.ChangeType{api.Update, api.Patch, api.Delete} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			made := e.prepare(0, api.Create, labeled).done()
			require.NoError(t, mutate.HandOver(t.Context(), made.change, made.owners, mutate.BaselineOf(nil), nil))
			assert.True(t, owns(made.now(), mutate.DefaultManager, ".metadata.labels.janus.io/transaction"), "%v", entries(made.now()))
			later := e.plan(1, kind, settingsChanged)
			later.change.Names.Manager, later.change.Names.Family, later.change.Names.Marker = "janus-ffffffff-1", "janus-ffffffff-", "ffffffff-uid.1"
			later.change.Names.Transaction.Name = "later"
			require.NoError(t, later.tryPrepare())
			later.done()
			if kind == api.Patch {
				assert.Equal(t, "release", later.now().GetLabels()["janus.io/transaction"], "it has not made it")
			}
			later.undone()
			later.restored()
			assert.Equal(t, "release", later.now().GetLabels()["janus.io/transaction"])
		})
	}
}

// What is created again by an undo is made by the undo.
func TestTheInverseOfADeletionSaysNothingOfWhoHasMadeTheObject(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"with labels of its own": labeled, "with none": settings} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t)
			e.prepare(0, api.Create, text).done()
			i := e.prepare(1, api.Delete, text).done()
			content, _, notes, err := i.change.Invert(t.Context(), api.Create, []mutate.Original{{Record: i.record}}, nil)
			require.NoError(t, err)
			assert.Empty(t, notes)
			again := &unstructured.Unstructured{Object: content}
			want := parse(t, text)
			assert.Equal(t, want.GetLabels(), again.GetLabels())
			assert.Equal(t, want.GetAnnotations(), again.GetAnnotations())
			assert.Equal(t, "release", i.record.Before.GetLabels()[api.TransactionKey], "the before-image is as it was")
		})
	}
}

// A plan lists what the change is for. That a creation says whose it is goes without
// saying; that an Update makes an object silent about it does not.
func TestAPlanLeavesOutWhatACreationSaysOfItself(t *testing.T) {
	t.Parallel()
	paths := func(i *item) (out []string) {
		fields, err := i.change.Differences(t.Context(), i.record.Before, i.record.After)
		require.NoError(t, err)
		for _, f := range fields {
			out = append(out, f.Path)
		}
		return out
	}
	e := newEnv(t)
	i := e.prepare(0, api.Create, settings)
	assert.Equal(t, []string{".data.color", ".data.size"}, paths(i))
	i.done()
	assert.Equal(t, []string{".data.color"}, paths(e.prepare(1, api.Patch, settingsChanged)))
	assert.Equal(t, []string{
		".data.color", ".metadata.annotations.janus.io/transaction", ".metadata.annotations.janus.io/transaction-uid", ".metadata.labels.janus.io/transaction",
	}, paths(e.prepare(2, api.Update, settingsChanged)))
}
