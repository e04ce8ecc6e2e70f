package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v4/value"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

const (
	finishedOnes = 10_000
	changesEach  = 5
)

// What janusd does when it starts among Transactions that have ended: an informer syncs with
// a server that streams them. CPU-ms is of the whole process, and the server in it only
// writes bytes that it has. KiB-kept is what the store keeps, after a garbage collection.
func BenchmarkSync(b *testing.B) {
	events := finishedEvents(b)
	for _, way := range []struct {
		name     string
		informer func(b *testing.B, config *rest.Config) cache.SharedIndexInformer
	}{
		{"janus", func(b *testing.B, config *rest.Config) cache.SharedIndexInformer {
			watcher, err := NewWatcher(config)
			require.NoError(b, err)
			return informerOf(b, watcher, &decoded{}, trim)
		}},
		{"codec of client-go", func(b *testing.B, config *rest.Config) cache.SharedIndexInformer {
			return informerOf(b, typedClient(b, config, &decoded{}, &decodedList{}), &decoded{}, trim)
		}},
		{"typed, summary kept", func(b *testing.B, config *rest.Config) cache.SharedIndexInformer {
			return informerOf(b, typedClient(b, config, &api.Transaction{}, &api.TransactionList{}), &api.Transaction{}, trimTyped)
		}},
		{"typed", func(b *testing.B, config *rest.Config) cache.SharedIndexInformer {
			return informerOf(b, typedClient(b, config, &api.Transaction{}, &api.TransactionList{}), &api.Transaction{}, withoutManagers)
		}},
		{"dynamic", func(b *testing.B, config *rest.Config) cache.SharedIndexInformer {
			client, err := dynamic.NewForConfig(config)
			require.NoError(b, err)
			informer := dynamicinformer.NewFilteredDynamicInformer(client, api.Resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
			require.NoError(b, informer.SetTransform(withoutManagers))
			return informer
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			var kept, requests float64
			var cpu time.Duration
			for b.Loop() {
				k, r, c := syncOnce(b, events, way.informer)
				kept, requests, cpu = kept+k, requests+r, cpu+c
			}
			n := float64(b.N)
			b.ReportMetric(kept/1024/n, "KiB-kept")
			b.ReportMetric(requests/n, "requests")
			b.ReportMetric(float64(cpu.Milliseconds())/n, "CPU-ms")
		})
	}
}

func typedClient(b *testing.B, config *rest.Config, one, list kruntime.Object) cache.Getter {
	b.Helper()
	client, err := clientFor(config, serializer.NewCodecFactory(knowing(one, list)).WithoutConversion())
	require.NoError(b, err)
	return client
}

func informerOf(b *testing.B, from cache.Getter, of kruntime.Object, keep cache.TransformFunc) cache.SharedIndexInformer {
	b.Helper()
	informer := cache.NewSharedIndexInformer(cache.NewListWatchFromClient(from, api.Resource.Resource, metav1.NamespaceAll, fields.Everything()), of, 0, cache.Indexers{})
	require.NoError(b, informer.SetTransform(keep))
	return informer
}

// withoutManagers is the transform that controllers use most.
func withoutManagers(obj any) (any, error) {
	if of, err := meta.Accessor(obj); err == nil {
		of.SetManagedFields(nil)
	}
	return obj, nil
}

// trimTyped keeps of a typed object what trim keeps.
func trimTyped(obj any) (any, error) {
	t, ok := obj.(*api.Transaction)
	if !ok {
		return obj, nil
	}
	s := &decoded{ObjectMeta: t.ObjectMeta}
	if seconds := t.Spec.TTLSecondsAfterFinished; seconds != nil {
		s.Spec.TTLSecondsAfterFinished = ptr.To(int64(*seconds))
	}
	s.Status.Phase, s.Status.ObservedGeneration = t.Status.Phase, t.Status.ObservedGeneration
	if ended := t.Status.CompletionTime; ended != nil {
		s.Status.CompletionTime = ended.UTC().Format(time.RFC3339)
	}
	return trim(s)
}

// syncOnce syncs an informer, and returns what it keeps, and what that took.
func syncOnce(b *testing.B, events []byte, newInformer func(*testing.B, *rest.Config) cache.SharedIndexInformer) (kept, requests float64, cpu time.Duration) {
	b.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Query().Get("sendInitialEvents") != "true" {
			http.Error(w, "only streams", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(events)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(b.Context())
	informer := newInformer(b, &rest.Config{Host: server.URL, QPS: -1})
	heap, before := heapInUse(), cpuTime(b)
	done := make(chan struct{})
	go func() {
		informer.RunWithContext(ctx)
		close(done)
	}()
	require.True(b, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	cpu = cpuTime(b) - before
	require.Len(b, informer.GetStore().ListKeys(), finishedOnes)
	kept = float64(heapInUse()) - float64(heap)
	runtime.KeepAlive(informer)
	cancel()
	<-done
	return kept, float64(asked.Load()), cpu
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// finishedEvents are the events of a watch that lists finished Transactions: copies of one
// that janusd has run, with more changes and with field managers.
func finishedEvents(b *testing.B) []byte {
	b.Helper()
	text, err := os.ReadFile("../testdata/gitops/Committed.yaml")
	require.NoError(b, err)
	one := &unstructured.Unstructured{}
	require.NoError(b, yaml.Unmarshal(text, &one.Object))
	for _, list := range [][]string{{"spec", "changes"}, {"status", "items"}} {
		entries, _, err := unstructured.NestedSlice(one.Object, list...)
		require.NoError(b, err)
		for len(entries) < changesEach {
			entries = append(entries, entries[0])
		}
		require.NoError(b, unstructured.SetNestedSlice(one.Object, entries, list...))
	}
	one.SetManagedFields([]metav1.ManagedFieldsEntry{owning(b, one, "kubectl-create", "spec"), owning(b, one, "janusd", "status")})
	var out []byte
	for n := range finishedOnes {
		one.SetName(fmt.Sprint("copy-", n))
		one.SetUID("6f9619ff-8b86-d011-b42d-00c04fc964ff")
		one.SetResourceVersion(fmt.Sprint(1000 + n))
		out = append(out, eventOf(b, "ADDED", one.Object)...)
	}
	end := eventOf(b, "BOOKMARK", map[string]any{"apiVersion": api.GroupVersion.String(), "kind": api.Kind.Kind, "metadata": map[string]any{
		"resourceVersion": "99999", "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
	}})
	b.Logf("%d bytes a Transaction", len(out)/finishedOnes)
	return append(out, end...)
}

func owning(b *testing.B, obj *unstructured.Unstructured, manager, field string) metav1.ManagedFieldsEntry {
	b.Helper()
	set, err := fieldpath.SetFromValue(value.NewValueInterface(map[string]any{field: obj.Object[field]})).ToJSON()
	require.NoError(b, err)
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: api.GroupVersion.String(), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: set},
	}
}

func eventOf(b *testing.B, kind string, object map[string]any) []byte {
	b.Helper()
	out, err := json.Marshal(map[string]any{"type": kind, "object": object})
	require.NoError(b, err)
	return append(out, '\n')
}
