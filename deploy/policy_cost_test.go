package deploy_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

// BenchmarkWriteUnderThePolicies writes the same object by turns in a namespace to which
// the policies are bound and in one to which they are not. It reports the median time of
// each, and the median of the ratios of writes that were made one after the other.
func BenchmarkWriteUnderThePolicies(b *testing.B) {
	in := install(b)
	with, without := testcluster.Namespace(b), testcluster.Namespace(b)
	bindTo(b, in, with)
	awaitBound(b, in, with, without)
	config := rest.CopyConfig(in.config)
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: janusd.User, Groups: janusd.Groups}
	janus, err := dynamic.NewForConfig(config)
	require.NoError(b, err)
	config.Impersonate = rest.ImpersonationConfig{}
	admin, err := dynamic.NewForConfig(config)
	require.NoError(b, err)

	record := record("ConfigMap", "a-rollback")
	plain := record.DeepCopy()
	plain.SetName("plain")
	plain.SetLabels(nil)
	free := lock("free", "somebody")
	free.SetLabels(nil)
	b.Run("ConfigMap", func(b *testing.B) { alternate(b, with, without, repeated(b, admin, plain)) })
	b.Run("Lease", func(b *testing.B) { alternate(b, with, without, repeated(b, admin, free)) })
	b.Run("Lock", func(b *testing.B) {
		alternate(b, with, without, repeated(b, janus, lock("held", "shop/release/4711")))
	})
	b.Run("Transaction", func(b *testing.B) { alternate(b, with, without, created(b, admin)) })
	b.Run("Transaction of 100", func(b *testing.B) { alternate(b, with, without, created(b, admin, many()...)) })
	b.Run("Status", func(b *testing.B) { alternate(b, with, without, checkpointed(b, admin, janus)) })
}

// bindTo binds the policies to one namespace until the benchmark ends.
func bindTo(b *testing.B, in installation, namespace string) {
	b.Helper()
	bindings := in.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	for _, policy := range policies {
		_, err := bindings.Patch(b.Context(), "transaction-"+policy+".backup.janus.io", "application/merge-patch+json",
			[]byte(`{"spec":{"matchResources":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"`+namespace+`"}}}}}`), metav1.PatchOptions{})
		require.NoError(b, err)
	}
	b.Cleanup(func() {
		for _, policy := range policies {
			_, err := bindings.Patch(context.Background(), "transaction-"+policy+".backup.janus.io", "application/merge-patch+json",
				[]byte(`{"spec":{"matchResources":null}}`), metav1.PatchOptions{})
			require.NoError(b, err)
		}
	})
}

// awaitBound waits until each policy refuses in the one namespace what it forbids, and none
// does in the other.
func awaitBound(b *testing.B, in installation, with, without string) {
	b.Helper()
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for _, policy := range []string{"records", "locks", "targets"} {
		gvr, obj := forbidden(policy)
		for namespace, refuses := range map[string]bool{with: true, without: false} {
			require.Eventually(b, func() bool {
				_, err := in.dynamic.Resource(gvr).Namespace(namespace).Create(b.Context(), obj.DeepCopy(), dryRun)
				return refuses == (err != nil && strings.Contains(err.Error(), named(policy)))
			}, settle, 5*poll, "the policy %s in %s", policy, namespace)
		}
	}
}

// alternate times a write, first in the one namespace and then in the other, and the
// other way round the next time.
func alternate(b *testing.B, with, without string, write func(namespace string, turn int)) {
	for turn := range 20 { // What is written first pays for connections and caches.
		write(with, -turn-1)
		write(without, -turn-1)
	}
	timed := func(namespace string, turn int) time.Duration {
		began := time.Now()
		write(namespace, turn)
		return time.Since(began)
	}
	var withs, withouts []time.Duration
	var ratios []float64
	for turn := 0; b.Loop(); turn++ {
		var one, other time.Duration
		if turn%2 == 0 {
			one = timed(with, turn)
			other = timed(without, turn)
		} else {
			other = timed(without, turn)
			one = timed(with, turn)
		}
		withs, withouts, ratios = append(withs, one), append(withouts, other), append(ratios, float64(one)/float64(other))
	}
	b.ReportMetric(float64(median(withs).Microseconds()), "µs-with")
	b.ReportMetric(float64(median(withouts).Microseconds()), "µs-without")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(0, "ns/op") // It would be that of both together.
}

func median[T int64 | float64 | time.Duration](of []T) T {
	slices.Sort(of)
	return of[len(of)/2]
}

// repeated updates one object again and again.
func repeated(b *testing.B, client dynamic.Interface, obj *unstructured.Unstructured) func(string, int) {
	b.Helper()
	gvr := configMaps
	if obj.GetKind() == "Lease" {
		gvr = leases
	}
	last := map[string]*unstructured.Unstructured{}
	return func(namespace string, turn int) {
		var err error
		if last[namespace] == nil {
			last[namespace], err = client.Resource(gvr).Namespace(namespace).Create(b.Context(), obj.DeepCopy(), metav1.CreateOptions{})
			require.NoError(b, err)
		}
		next := last[namespace].DeepCopy()
		next.SetAnnotations(map[string]string{"turn": strconv.Itoa(turn)})
		last[namespace], err = client.Resource(gvr).Namespace(namespace).Update(b.Context(), next, metav1.UpdateOptions{})
		require.NoError(b, err)
	}
}

// created makes another Transaction each time, without keeping it.
func created(b *testing.B, client dynamic.Interface, targets ...map[string]any) func(string, int) {
	b.Helper()
	if len(targets) == 0 {
		targets = append(targets, target("v1", "ConfigMap", "", "config"))
	}
	txn := targeting("release", targets...)
	return func(namespace string, _ int) {
		_, err := client.Resource(api.Resource).Namespace(namespace).Create(b.Context(), txn.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		require.NoError(b, err)
	}
}

func many() []map[string]any {
	var out []map[string]any
	for i := range 100 {
		out = append(out, target("v1", "ConfigMap", "", "config-"+strconv.Itoa(i)))
	}
	return out
}

// checkpointed writes the status of one Transaction again and again.
func checkpointed(b *testing.B, admin, janus dynamic.Interface) func(string, int) {
	b.Helper()
	last := map[string]*unstructured.Unstructured{}
	return func(namespace string, turn int) {
		var err error
		if last[namespace] == nil {
			last[namespace], err = admin.Resource(api.Resource).Namespace(namespace).
				Create(b.Context(), targeting("checkpointed", target("v1", "ConfigMap", "", "config")), metav1.CreateOptions{})
			require.NoError(b, err)
		}
		next := last[namespace].DeepCopy()
		require.NoError(b, unstructured.SetNestedField(next.Object, int64(turn+1000), "status", "version"))
		last[namespace], err = janus.Resource(api.Resource).Namespace(namespace).UpdateStatus(b.Context(), next, metav1.UpdateOptions{})
		require.NoError(b, err)
	}
}
