package leasetable

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"janus.io/janus/test/testcluster"
)

// each asks n times together.
func each(t *testing.T, c *Client, n int, ask func(ctx context.Context, i int) error) {
	t.Helper()
	ctx, left := c.Together(t.Context(), n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			defer left()
			assert.NoError(t, ask(ctx, i))
		})
	}
	all.Wait()
}

func TestWhatIsAskedTogetherIsOneRequest(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	c, tap := process(t)
	all := c.Leases(namespace)
	const n = 40
	made := make([]*coordinationv1.Lease, n)
	each(t, c, n, func(ctx context.Context, i int) (err error) {
		made[i], err = all.Create(ctx, lease(fmt.Sprint("l-", i), "a"), metav1.CreateOptions{})
		return err
	})
	require.Equal(t, map[string]int{http.MethodPost: 1}, tap.counted())
	require.Len(t, objects(t, c, namespace), 1)
	tap.counted()
	each(t, c, n, func(ctx context.Context, i int) (err error) {
		made[i].Spec.LeaseTransitions = ptr.To[int32](1)
		made[i], err = all.Update(ctx, made[i], metav1.UpdateOptions{})
		return err
	})
	require.Equal(t, map[string]int{http.MethodPut: 1}, tap.counted())
	each(t, c, n, func(ctx context.Context, i int) error {
		found, err := all.Get(ctx, made[i].Name, metav1.GetOptions{})
		assert.Equal(t, made[i], found)
		return err
	})
	require.Equal(t, map[string]int{http.MethodGet: 1}, tap.counted())
	each(t, c, n, func(ctx context.Context, i int) error {
		return all.Delete(ctx, made[i].Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made[i].UID, ResourceVersion: &made[i].ResourceVersion}})
	})
	require.Equal(t, map[string]int{http.MethodDelete: 1}, tap.counted(), "nothing is left in it")
	require.Empty(t, objects(t, c, namespace))
}

// A lease as two clients of different kinds can agree on it.
func comparable(l *coordinationv1.Lease, err error) string {
	if err != nil {
		return string(apierrors.ReasonForError(err))
	}
	return fmt.Sprint(l.Name, l.Labels, *l.Spec.HolderIdentity, *l.Spec.LeaseTransitions)
}

// Whatever is asked of Leases in a table, by two processes in turn, is answered as if they were objects.
func TestLeasesOfATableAreAsThoseThatAreObjects(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is to be repeated
			plain, table := testcluster.Namespace(t), testcluster.Namespace(t)
			first, _ := process(t)
			second, _ := process(t)
			clients := []*Client{first, second}
			type seen struct{ plain, table *coordinationv1.Lease }
			last := map[string]seen{} // as one of them has seen it, perhaps long ago
			for step := range 150 {
				name := fmt.Sprint("l-", random.IntN(4))
				one, other := first.objects.Leases(plain), clients[random.IntN(2)].Leases(table)
				was := last[name]
				var want, have string
				switch what := random.IntN(6); {
				case what == 0 || was.plain == nil:
					made := lease(name, fmt.Sprint("h-", step))
					a, errA := one.Create(t.Context(), made, metav1.CreateOptions{})
					b, errB := other.Create(t.Context(), made, metav1.CreateOptions{})
					if want, have = comparable(a, errA), comparable(b, errB); errA == nil && errB == nil {
						last[name] = seen{a, b}
					} else if was.plain == nil {
						last[name] = seen{made, made}
					}
				case what < 3:
					a, errA := one.Update(t.Context(), changed(was.plain, step), metav1.UpdateOptions{})
					b, errB := other.Update(t.Context(), changed(was.table, step), metav1.UpdateOptions{})
					if want, have = comparable(a, errA), comparable(b, errB); errA == nil && errB == nil && random.IntN(3) > 0 {
						last[name] = seen{a, b}
					}
				case what == 3:
					want = string(apierrors.ReasonForError(one.Delete(t.Context(), name, exactly(was.plain))))
					have = string(apierrors.ReasonForError(other.Delete(t.Context(), name, exactly(was.table))))
				default:
					a, errA := one.Get(t.Context(), name, metav1.GetOptions{})
					b, errB := other.Get(t.Context(), name, metav1.GetOptions{})
					if want, have = comparable(a, errA), comparable(b, errB); errA == nil && errB == nil {
						require.Equal(t, a.UID == was.plain.UID, b.UID == was.table.UID)
						require.Equal(t, a.ResourceVersion == was.plain.ResourceVersion, b.ResourceVersion == was.table.ResourceVersion)
						last[name] = seen{a, b}
					}
				}
				require.Equal(t, want, have, "step %d", step)
			}
			require.Equal(t, names(t, first.objects.Leases(plain)), names(t, second.Leases(table)))
		})
	}
}

func changed(l *coordinationv1.Lease, step int) *coordinationv1.Lease {
	l = l.DeepCopy()
	if l.UID == "" { // It was never seen.
		l.UID, l.ResourceVersion = "none", "1"
	}
	l.Spec.HolderIdentity, l.ManagedFields = ptr.To(fmt.Sprint("h-", step)), nil
	return l
}

func exactly(l *coordinationv1.Lease) metav1.DeleteOptions {
	if l.UID == "" {
		return metav1.DeleteOptions{}
	}
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}}
}

func names(t *testing.T, of coordinationv1client.LeaseInterface) map[string]string {
	t.Helper()
	list, err := of.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	out := map[string]string{}
	for i := range list.Items {
		out[list.Items[i].Name] = comparable(&list.Items[i], nil)
	}
	return out
}

// Of those who write at the same time, in two processes, each has seen what the others wrote.
func TestNothingIsWrittenOver(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	first, _ := process(t)
	second, _ := process(t)
	_, err := first.Leases(namespace).Create(t.Context(), lease("counted", "a"), metav1.CreateOptions{})
	require.NoError(t, err)
	var written, made atomic.Int32
	var all sync.WaitGroup
	for i := range 12 {
		of := []*Client{first, second}[i%2].Leases(namespace)
		all.Go(func() {
			for n := range 15 {
				found, err := of.Get(t.Context(), "counted", metav1.GetOptions{})
				if err != nil {
					t.Errorf("read it: %v", err)
					return
				}
				*found.Spec.LeaseTransitions++
				if _, err = of.Update(t.Context(), found, metav1.UpdateOptions{}); err == nil {
					written.Add(1)
				} else {
					assert.True(t, apierrors.IsConflict(err), "%v", err)
				}
				if _, err = of.Create(t.Context(), lease(fmt.Sprint("once-", n), "a"), metav1.CreateOptions{}); err == nil {
					made.Add(1)
				} else {
					assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)
				}
			}
		})
	}
	all.Wait()
	found, err := second.Leases(namespace).Get(t.Context(), "counted", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, written.Load(), *found.Spec.LeaseTransitions)
	require.Positive(t, written.Load())
	require.EqualValues(t, 15, made.Load())
}

// Of a table that is full, nothing more is made. What is there can be renewed, and deleted.
func TestAFullTable(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	c, _ := process(t)
	all := c.Leases(namespace)
	long := strings.Repeat("a", 200)
	const n = 1000
	each(t, c, n, func(ctx context.Context, i int) error {
		_, err := all.Create(ctx, lease(fmt.Sprintf("%s-%d", long, i), "a"), metav1.CreateOptions{})
		return err
	})
	more := lease("more", "b")
	more.Annotations = map[string]string{"text": strings.Repeat("b", 60_000)}
	found, err := all.Get(t.Context(), long+"-7", metav1.GetOptions{})
	require.NoError(t, err)
	each(t, c, 2, func(ctx context.Context, i int) (err error) {
		if i == 0 {
			found, err = all.Update(ctx, found, metav1.UpdateOptions{})
			return err
		}
		_, err = all.Create(ctx, more, metav1.CreateOptions{})
		assert.True(t, apierrors.IsTooManyRequests(err), "%v", err)
		assert.ErrorContains(t, err, "the Lease of all locks of namespace "+namespace+" is full")
		return nil
	})
	require.NoError(t, all.Delete(t.Context(), found.Name, exactly(found)))
	require.Len(t, names(t, all), n-1)
}

// A table that cannot be read is not written.
func TestATableThatIsNoTable(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	c, _ := process(t)
	broken := lease(Name, "somebody")
	broken.Annotations = map[string]string{Annotation: "{"}
	_, err := c.objects.Leases(namespace).Create(t.Context(), broken, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.Leases(namespace).Create(t.Context(), lease("l", "a"), metav1.CreateOptions{})
	require.ErrorContains(t, err, "decode Lease "+namespace+"/"+Name)
	require.Equal(t, "{", objects(t, c, namespace)[0].Annotations[Annotation])
	found := objects(t, c, namespace)
	require.Equal(t, found, Expand(found), "it stays as it is, beside others that can be read")
	require.ErrorContains(t, Broken(&found[0]), Annotation)
	_, err = Find(t.Context(), c.objects.Leases(namespace), "l")
	require.ErrorContains(t, err, Annotation)
}

func TestLeasesOfANamespaceApartAreObjects(t *testing.T) {
	t.Parallel()
	c, _ := process(t)
	c.apart = testcluster.Namespace(t)
	_, err := c.Leases(c.apart).Create(t.Context(), lease("l", "a"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "l", objects(t, c, c.apart)[0].Name)
	_, err = c.Leases("gone").Create(t.Context(), lease("l", "a"), metav1.CreateOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.Equal(t, "namespaces", err.(apierrors.APIStatus).Status().Details.Kind)
	require.NotContains(t, c.tables.of, "gone", "nothing is remembered of it")
}

func TestWhatReadsLeasesFindsThoseInTables(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	c, _ := process(t)
	made, err := c.Leases(namespace).Create(t.Context(), lease("l", "a"), metav1.CreateOptions{})
	require.NoError(t, err)
	object, err := c.objects.Leases(namespace).Create(t.Context(), lease("object", "b"), metav1.CreateOptions{})
	require.NoError(t, err)
	all := Expand(objects(t, c, namespace))
	require.Len(t, all, 2)
	require.Contains(t, all, *made)
	for i := range all {
		require.NoError(t, Broken(&all[i]))
	}
	for _, want := range []*coordinationv1.Lease{made, object} {
		found, err := Find(t.Context(), c.objects.Leases(namespace), want.Name)
		require.NoError(t, err)
		require.Equal(t, want, found)
	}
	_, err = Find(t.Context(), c.objects.Leases(namespace), "another")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	list, err := c.Leases(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "holder=b"})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	_, err = c.Leases(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "=="})
	require.Error(t, err)
}

// The garbage collector deletes a table when the owners of all entries are gone, and not before.
func TestATableIsOwnedByTheOwnersOfAllEntries(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	c, _ := process(t)
	kube, err := kubernetes.NewForConfig(testcluster.Shared(t).Config())
	require.NoError(t, err)
	owner := func(name string) metav1.OwnerReference {
		made, err := kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: made.UID}
	}
	x, y := owner("x"), owner("y")
	owned := func(name string, owners ...metav1.OwnerReference) {
		l := lease(name, name)
		l.OwnerReferences = owners
		_, err := c.Leases(namespace).Create(t.Context(), l, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	owners := func() []metav1.OwnerReference { return objects(t, c, namespace)[0].OwnerReferences }
	owned("one", x)
	owned("other", y, x)
	require.ElementsMatch(t, []metav1.OwnerReference{x, y}, owners())
	owned("nobodys")
	require.Empty(t, owners())
	require.NoError(t, c.Leases(namespace).Delete(t.Context(), "nobodys", metav1.DeleteOptions{}))
	require.ElementsMatch(t, []metav1.OwnerReference{x, y}, owners())
}
