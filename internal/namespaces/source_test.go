package namespaces

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	clocktesting "k8s.io/utils/clock/testing"

	"janus.io/janus/test/testcluster"
)

// told runs a source until the end of the test, and returns what it tells.
func told(t *testing.T, source Source) <-chan []string {
	t.Helper()
	out := make(chan []string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { source.Run(ctx, func(names []string) { out <- names }) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return out
}

// next waits for what a source tells.
func next(t *testing.T, out <-chan []string) []string {
	t.Helper()
	select {
	case names := <-out:
		return names
	case <-time.After(time.Minute):
		require.Fail(t, "nothing was told")
		return nil
	}
}

func TestAFileNamesNamespaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "namespaces")
	for content, want := range map[string][]string{
		"":                                {},
		"# none\n\n":                      {},
		"shop\norders\n":                  {"orders", "shop"},
		"shop, orders # ours\n  shop\r\n": {"orders", "shop"},
		"orders,,shop":                    {"orders", "shop"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		names, err := File{Path: path}.Read()
		require.NoError(t, err, content)
		assert.Equal(t, want, names, content)
	}
	for _, content := range []string{"Shop", "shop orders", "*", "label:a=b"} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := File{Path: path}.Read()
		require.ErrorContains(t, err, "is no name of a namespace", content)
	}
	_, err := File{Path: path + "-none"}.Read()
	require.ErrorIs(t, err, os.ErrNotExist)
}

// What is read while the file is written does not count.
func TestAChangeOfAFileCountsWhenItWasReadTwice(t *testing.T) {
	t.Parallel()
	var r readings
	for i, step := range []struct {
		names []string
		ok    bool
		want  bool
	}{
		{nil, false, false},
		{[]string{"shop"}, true, true}, // There is nothing else to go by.
		{[]string{"shop"}, true, false},
		{[]string{}, true, false},
		{[]string{"shop"}, true, false},
		{[]string{}, true, false},
		{nil, false, false},
		{[]string{}, true, false},
		{[]string{"orders"}, true, false},
		{[]string{"orders"}, true, true},
		{[]string{"orders"}, true, false},
		{[]string{}, true, false},
		{[]string{}, true, true},
	} {
		assert.Equal(t, step.want, r.isChange(step.names, step.ok), i)
	}
}

// A file is replaced, and may be half-written or away for a moment. That changes nothing.
func TestAFileIsReadAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "namespaces")
	// It is never empty in between: here that might be read twice at once, and otherwise after two seconds.
	write := func(content string) {
		require.NoError(t, os.WriteFile(path+".new", []byte(content), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	write("shop\n")
	clock := clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	out := told(t, File{Path: path, Clock: clock, Log: zaptest.NewLogger(t)})
	turn := func() {
		require.Eventually(t, clock.HasWaiters, time.Minute, time.Millisecond)
		clock.Step(reread)
	}
	assert.Equal(t, []string{"shop"}, next(t, out))
	turn()
	write("Sh")
	turn()
	require.NoError(t, os.Remove(path))
	turn()
	write("orders\n")
	turn()
	require.Eventually(t, func() bool { clock.Step(reread); return len(out) > 0 }, time.Minute, time.Millisecond)
	assert.Equal(t, []string{"orders"}, next(t, out), "nothing else was told in between")
}

// A namespace that is being deleted is one until it is gone.
func TestLabelsOfNamespacesAreFollowed(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Shared(t)
	kube, err := kubernetes.NewForConfig(cluster.Config())
	require.NoError(t, err)
	client, err := metadata.NewForConfig(cluster.Config())
	require.NoError(t, err)
	one, two := testcluster.Namespace(t), testcluster.Namespace(t)
	label := func(namespace, value string) {
		t.Helper()
		patch := `{"metadata":{"labels":{"followed-by":` + value + `}}}`
		_, err := kube.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	ours := `"` + one + `"`
	label(one, ours)
	selector, err := labels.Parse("followed-by=" + one)
	require.NoError(t, err)
	out := told(t, Labelled{Client: client, Selector: selector})
	assert.Equal(t, []string{one}, next(t, out))
	label(two, ours)
	assert.ElementsMatch(t, []string{one, two}, next(t, out))
	label(one, `"another"`)
	assert.Equal(t, []string{two}, next(t, out))
	label(one, ours)
	next(t, out)
	label(two, "null")
	assert.Equal(t, []string{one}, next(t, out))

	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/held"}}}
	_, err = kube.CoreV1().ConfigMaps(one).Create(t.Context(), held, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, kube.CoreV1().Namespaces().Delete(t.Context(), one, metav1.DeleteOptions{}))
	label(two, ours)
	assert.ElementsMatch(t, []string{one, two}, next(t, out), "it is not gone yet")
}
