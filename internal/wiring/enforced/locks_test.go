package enforced_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/internal/wiring/enforced"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// leases stand for Leases that are always free. What is tested is the table beside them.
type leases struct {
	engine.Locks
	acquire, release func()
}

func (l leases) Acquire(_ context.Context, t *api.Transaction, _ func()) ([]string, error) {
	if l.acquire != nil {
		l.acquire()
	}
	names := make([]string, len(t.Status.Items))
	for i, item := range t.Status.Items {
		if item.State != api.ItemSkipped {
			names[i] = t.Namespace + "/lease-" + item.Name
		}
	}
	return names, nil
}

func (l leases) Keep(context.Context, *api.Transaction, func()) error { return nil }

func (l leases) Forget(*api.Transaction) {}

func (l leases) Release(context.Context, *api.Transaction, engine.Search) error {
	if l.release != nil {
		l.release()
	}
	return nil
}

// around puts the tables of the world around some Leases, with a clock.
func (w *world) around(l leases) (*enforced.Locks, *clocktesting.FakePassiveClock) {
	still := clocktesting.NewFakePassiveClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	return enforced.Around(l, enforced.NewTables(w.Dynamic), wiring.NewJournal(w.Dynamic), still, 0), still
}

// stored makes a Transaction that nobody runs, with items for ConfigMaps of these names.
func (w *world) stored(name string, targets ...string) *api.Transaction {
	w.t.Helper()
	w.Submit(name, `{changes: [{target: {apiVersion: v1, kind: ConfigMap, name: any}, type: Delete}]}`)
	t := w.Transaction(name)
	for _, target := range targets {
		t.Status.Items = append(t.Status.Items, item("v1", "ConfigMap", "configmaps", w.Namespace, target))
	}
	return t
}

func item(version, kind, resource, namespace, name string) api.Item {
	return api.Item{Name: name, Resource: resource, Target: api.Target{APIVersion: version, Kind: kind, Namespace: namespace, Name: name}}
}

func holder(t *api.Transaction) string { return t.Namespace + "/" + t.Name + "/" + string(t.UID) }

func never() {}

func TestTheKeyOfATargetIsWithoutVersion(t *testing.T) {
	w := newWorld(t)
	locks, _ := w.around(leases{})
	txn := w.stored("txn")
	skipped := item("v1", "ConfigMap", "configmaps", w.Namespace, "skipped")
	skipped.State = api.ItemSkipped
	txn.Status.Items = []api.Item{
		item("v1", "Secret", "secrets", w.Namespace, "key"), item("apps/v1", "Deployment", "deployments", w.Namespace, "web"),
		item("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", "", "reader"), skipped,
		item("v1", "ConfigMap", "configmaps", "not-"+w.Namespace, "elsewhere"),
	}
	_, err := locks.Acquire(t.Context(), txn, never)
	require.NoError(t, err, "a cluster-scoped target, and a namespace that does not exist, have no table")
	require.Equal(t, map[string]string{"secrets/key": holder(txn), "apps/deployments/web": holder(txn)}, w.locks())
	require.NoError(t, locks.Release(t.Context(), txn, engine.SearchNot))
	require.Empty(t, w.locks())
}

// TestManyTransactionsWriteOneTable has them enter and remove at the same time.
func TestManyTransactionsWriteOneTable(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	for i := range 12 {
		txn := w.stored(fmt.Sprint("txn-", i), fmt.Sprint("a-", i), fmt.Sprint("b-", i))
		locks, _ := w.around(leases{})
		again := func(what func() error) {
			for {
				err := what()
				if !errclass.Is(err, errclass.StaleVersion) {
					assert.NoError(t, err)
					return
				}
			}
		}
		all.Go(func() {
			for range 5 {
				again(func() error { _, err := locks.Acquire(t.Context(), txn, never); return err })
				now := w.locks()
				assert.Equal(t, holder(txn), now[fmt.Sprint("configmaps/a-", i)])
				assert.Equal(t, holder(txn), now[fmt.Sprint("configmaps/b-", i)])
				again(func() error { return locks.Release(t.Context(), txn, engine.SearchNot) })
				assert.NotContains(t, w.locks(), fmt.Sprint("configmaps/a-", i))
			}
		})
	}
	all.Wait()
	require.Empty(t, w.locks())
}

// TestAWriteOfAnotherInBetweenIsKept has another write the table between read and write.
func TestAWriteOfAnotherInBetweenIsKept(t *testing.T) {
	w := newWorld(t)
	txn := w.stored("txn", "a")
	other := map[string]string{"configmaps/other": "a/b/c"}
	line := faultinject.NewLine(
		faultinject.Injection{At: faultinject.At{Key: "POST locktables/janus-locks"}, Act: func(ctx context.Context) { w.enterIn(ctx, other) }},
		faultinject.Injection{At: faultinject.At{Key: "PUT locktables/janus-locks", Nth: 1}, Act: func(ctx context.Context) {
			require.NoError(t, w.tables.Delete(ctx, api.LockTableName, metav1.DeleteOptions{}))
			w.enterIn(ctx, map[string]string{"configmaps/other": "a/b/c", "configmaps/a": holder(txn)})
		}},
	)
	config := testcluster.Shared(t).Config()
	config.Wrap(line.Process().Wrap)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	locks := enforced.Around(leases{}, enforced.NewTables(client), wiring.NewJournal(client), clock.RealClock{}, 0)
	_, err = locks.Acquire(t.Context(), txn, never)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"configmaps/other": "a/b/c", "configmaps/a": holder(txn)}, w.locks())
	require.NoError(t, locks.Release(t.Context(), txn, engine.SearchNot))
	require.Equal(t, other, w.locks())
	require.Empty(t, line.Missed())
}

func TestEntriesAreRemovedBeforeTheLeasesAndNeverThoseOfAnother(t *testing.T) {
	w := newWorld(t)
	first, second := w.stored("first", "a", "b"), w.stored("second", "b")
	var atRelease map[string]string
	locks, _ := w.around(leases{release: func() { atRelease = w.locks() }})
	_, err := locks.Acquire(t.Context(), first, never)
	require.NoError(t, err)
	// The Lease of b has passed on, for instance because it expired.
	_, err = locks.Acquire(t.Context(), second, never)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"configmaps/a": holder(first), "configmaps/b": holder(second)}, w.locks())

	require.NoError(t, locks.Release(t.Context(), first, engine.SearchNot))
	require.Equal(t, map[string]string{"configmaps/b": holder(second)}, atRelease)
	require.NoError(t, locks.Release(t.Context(), first, engine.SearchNot), "again")
	require.NoError(t, locks.Release(t.Context(), second, engine.SearchNot))
	require.Empty(t, w.locks())
}

func TestAProcessThatIsLateEntersNothingAndRemovesNothing(t *testing.T) {
	w := newWorld(t)
	txn := w.stored("txn", "a")
	hangs := func() {}
	locks, clock := w.around(leases{acquire: func() { hangs() }})
	_, err := locks.Acquire(t.Context(), txn, never)
	require.NoError(t, err)
	require.NoError(t, locks.Release(t.Context(), txn, engine.SearchNot))

	hangs = func() {
		clock.SetTime(clock.Now().Add(time.Minute))
		w.Merge("another janusd", "backup.janus.io/v1alpha1 Transaction/txn", `{"metadata":{"labels":{"a":"b"}}}`)
	}
	_, err = locks.Acquire(t.Context(), txn, never)
	require.True(t, errclass.Is(err, errclass.StaleVersion), "%v", err)
	require.Empty(t, w.locks())

	now := w.Transaction("txn")
	now.Status.Items = txn.Status.Items
	hangs = func() { clock.SetTime(clock.Now().Add(time.Minute)) }
	_, err = locks.Acquire(t.Context(), now, never)
	require.NoError(t, err, "late, and nobody else has gone on")
	err = locks.Release(t.Context(), txn, engine.SearchNot)
	require.True(t, errclass.Is(err, errclass.StaleVersion), "%v", err)
	require.Equal(t, map[string]string{"configmaps/a": holder(txn)}, w.locks())

	w.Delete("txn", metav1.DeletePropagationBackground)
	w.Gone("txn")
	require.NoError(t, locks.Release(t.Context(), txn, engine.SearchNot), "nobody relies on the entries of one that is gone")
	require.Empty(t, w.locks())
}

// A table has room for so many locks, and etcd for so many bytes.
func TestATransactionWaitsForRoom(t *testing.T) {
	w := newWorld(t)
	txn := w.withItems(w.stored("txn"), 200)
	locks, _ := w.around(leases{})
	for title, others := range map[string]map[string]string{
		"locks": many(api.MaxLocks-1, "a/b/c"),
		"bytes": many(api.MaxLocks-300, "a/b/"+strings.Repeat("c", 300)),
	} {
		t.Run(title, func(t *testing.T) {
			w := w.in(t)
			w.enter(map[string]string{})
			w.fill(others)
			_, err := locks.Acquire(t.Context(), txn, never)
			require.Equal(t, errclass.Retryable, errclass.ClassOf(err), "%v", err)
			require.True(t, errclass.Is(err, errclass.TooLarge), "%v", err)
			require.ErrorContains(t, err, "write LockTable "+w.Namespace+"/janus-locks: it is full: waiting until other Transactions have ended")
			w.enter(map[string]string{})
			_, err = locks.Acquire(t.Context(), txn, never)
			require.NoError(t, err)
			require.NoError(t, locks.Release(t.Context(), txn, engine.SearchNot))
		})
	}
}

func many(n int, holder string) map[string]string {
	locks := map[string]string{}
	for i := range n {
		locks[fmt.Sprint("configmaps/", i)] = holder
	}
	return locks
}

// fill enters as many locks as etcd takes.
func (w *world) fill(locks map[string]string) {
	w.t.Helper()
	for err := w.tryEnter(locks); err != nil; err = w.tryEnter(locks) {
		require.ErrorContains(w.t, err, "too large")
		dropped := 0
		for key := range locks {
			if delete(locks, key); dropped == 20 {
				break
			}
			dropped++
		}
	}
}

func (w *world) withItems(t *api.Transaction, n int) *api.Transaction {
	t = t.DeepCopy()
	t.Status.Items = nil
	for i := range n {
		t.Status.Items = append(t.Status.Items, item("v1", "ConfigMap", "configmaps", w.Namespace, fmt.Sprint("many-", i, strings.Repeat("x", 200))))
	}
	return t
}

// TestBreakGlass takes entries out of the table, and the label off the namespace, while a
// Transaction runs. It goes on either way, and what others write it meets as ever.
func TestBreakGlass(t *testing.T) {
	w := newWorld(t)
	w.Start(harness.EnforcingLocks())
	w.Apply(objects + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: gate}}\n")
	for i, glass := range []func(){
		func() { w.enter(map[string]string{}) },
		func() { require.NoError(t, w.tables.Delete(t.Context(), api.LockTableName, metav1.DeleteOptions{})) },
		func() {
			w.Merge("admin", "v1 Namespace/"+w.Namespace, `{"metadata":{"labels":{"janus.io/enforce-locks":null}}}`)
		},
	} {
		name := fmt.Sprint("txn-", i)
		w.Submit(name, fmt.Sprintf(`{changes: [
		  {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "%d"}},
		   readyWhen: {expression: "object.data.?open.orValue('') == 'open-%d'"}},
		  {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {version: "%d"}}}]}`, i, i, i))
		w.Await(name, "half-way", func(t *api.Transaction) bool { return t.Status.Progress == "1/2" })
		open := []byte(fmt.Sprintf(`{"data":{"open":"open-%d"}}`, i))
		maps := w.Dynamic.Resource(configMaps).Namespace(w.Namespace)
		w.Until("it is refused", func() bool {
			_, err := maps.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"open":"never"}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return apierrors.IsForbidden(err)
		})
		glass()
		w.Until("it is written", func() bool {
			_, err := maps.Patch(t.Context(), "a", types.MergePatchType, open, metav1.PatchOptions{})
			return err == nil
		})
		txn := w.Ended(name)
		require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
		w.noneLeft()
	}
}

// tryEnter writes the table once.
func (w *world) tryEnter(locks map[string]string) error {
	table, err := w.tables.Get(w.t.Context(), api.LockTableName, metav1.GetOptions{})
	require.NoError(w.t, err)
	require.NoError(w.t, unstructured.SetNestedStringMap(table.Object, locks, "locks"))
	_, err = w.tables.Update(w.t.Context(), table, metav1.UpdateOptions{})
	return err
}

// A failed rollback that is taken up again takes its Leases by keeping them.
func TestARecoveryEntersItsTargetsAgain(t *testing.T) {
	w := newWorld(t)
	txn := w.stored("txn", "a", "b")
	locks, _ := w.around(leases{})
	keep := func() map[string]string {
		t.Helper()
		require.NoError(t, locks.Keep(t.Context(), txn, never))
		return w.locks()
	}
	names, err := locks.Acquire(t.Context(), txn, never)
	require.NoError(t, err)
	for i := range txn.Status.Items {
		txn.Status.Items[i].LockLease = names[i]
	}
	require.NoError(t, locks.Release(t.Context(), txn, engine.SearchNot))
	require.Empty(t, keep(), "that costs nothing where there is no recovery")

	both := map[string]string{"configmaps/a": holder(txn), "configmaps/b": holder(txn)}
	for n := range int32(2) {
		txn.Status.Recoveries = n + 1
		require.Equal(t, both, keep(), "recovery %d", n+1)
		w.enter(map[string]string{})
		require.Empty(t, keep(), "once for each recovery")
		other, _ := w.around(leases{})
		require.NoError(t, other.Keep(t.Context(), txn, never))
		require.Equal(t, both, w.locks(), "another process does not know")
		require.NoError(t, other.Release(t.Context(), txn, engine.SearchNot))
		require.Empty(t, w.locks())
	}
	locks.Forget(txn)
	require.Equal(t, both, keep(), "what is forgotten is not known")
}
