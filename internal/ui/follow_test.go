package ui

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	api "janus.io/janus/api/v1alpha1"
)

// heard is a Shared that has been told of Transactions, by no informer.
func heard(transactions ...*api.Transaction) *Shared {
	s := &Shared{known: map[string]*api.Transaction{}, followers: map[*follower]struct{}{}}
	for _, t := range transactions {
		s.hear(watch.Added, t)
	}
	return s
}

// begin is Follow, of what needs no API server.
func (s *Shared) begin(t *testing.T) (names []string, f *follower) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.list()
	require.NoError(t, err)
	for _, one := range found {
		names = append(names, one.Name)
	}
	return names, s.follow()
}

// rest is all that a follower has been told, until it was left out or there is no more.
func (f *follower) rest() (told []string, open bool) {
	for {
		select {
		case event, open := <-f.events:
			if !open {
				return told, false
			}
			name := "?"
			if t, ok := event.Object.(*api.Transaction); ok {
				name = t.Name
			}
			told = append(told, string(event.Type)+" "+name)
		default:
			return told, true
		}
	}
}

func TestAllWhoFollowAreToldOfEachChangeOnce(t *testing.T) {
	s := heard(transaction("b", ""), transaction("a", ""))
	names, first := s.begin(t)
	assert.Equal(t, []string{"a", "b"}, names)
	s.hear(watch.Modified, transaction("a", api.PhaseCommitted))
	s.hear(watch.Deleted, cache.DeletedFinalStateUnknown{Key: "shop/b", Obj: transaction("b", "")})
	names, second := s.begin(t)
	assert.Equal(t, []string{"a"}, names)
	s.hear(watch.Added, transaction("c", ""))
	told, open := first.rest()
	assert.Equal(t, []string{"MODIFIED a", "DELETED b", "ADDED c"}, told)
	assert.True(t, open)
	told, open = second.rest()
	assert.Equal(t, []string{"ADDED c"}, told)
	assert.True(t, open)

	first.Stop()
	first.Stop()
	s.hear(watch.Deleted, transaction("c", ""))
	_, open = first.rest()
	assert.False(t, open)
	told, _ = second.rest()
	assert.Equal(t, []string{"DELETED c"}, told)
}

func TestWhoIsTooFarBehindIsLeftOutAndHasMissedNothingBefore(t *testing.T) {
	s := heard()
	_, slow := s.begin(t)
	_, fast := s.begin(t)
	for n := range behind + 1 {
		s.hear(watch.Added, transaction(fmt.Sprint(n), ""))
		told, open := fast.rest()
		require.Equal(t, []string{fmt.Sprintf("ADDED %d", n)}, told)
		require.True(t, open)
	}
	told, open := slow.rest()
	assert.Len(t, told, behind)
	assert.False(t, open)
	assert.Len(t, s.followers, 1)
}

func TestFollowingEndsWithATroubleAndForGood(t *testing.T) {
	s := heard(transaction("a", ""))
	_, f := s.begin(t)
	s.end(errors.New("no route"))
	told, open := f.rest()
	assert.Equal(t, []string{"ERROR ?"}, told)
	assert.False(t, open)

	_, f = s.begin(t)
	s.end(nil)
	told, open = f.rest()
	assert.Empty(t, told)
	assert.False(t, open)
	_, err := s.Transactions(t.Context())
	require.ErrorContains(t, err, "the page is not served any more")
}

// What is kept makes the same line of the list, and says the same of locks.
func TestWhatIsKeptOfATransactionIsEnough(t *testing.T) {
	whole := full()
	whole.ResourceVersion = "7"
	small := kept(t, whole)
	assert.Equal(t, summaryOf(whole), summaryOf(small))
	assert.Equal(t, summaryOf(two()), summaryOf(kept(t, two())))
	assert.Equal(t, summaryOf(blocked()), summaryOf(kept(t, blocked())))
	assert.Equal(t, leaseNames([]*api.Transaction{whole}), leaseNames([]*api.Transaction{small}))
	whole.Status.Items[0].LockLease = ""
	small = kept(t, whole)
	of := whole.Status.Items[0].Target.Identity()
	assert.Equal(t, []string{"shop/full"}, wanting(of, []*api.Transaction{whole}))
	assert.Equal(t, []string{"shop/full"}, wanting(of, []*api.Transaction{small}))

	end := metav1.NewTime(noon.Add(time.Minute))
	whole.Status.CompletionTime, whole.Status.Phase, whole.Status.Progress = &end, api.PhaseCommitted, "2/2"
	small = kept(t, whole)
	assert.Equal(t, summaryOf(whole), summaryOf(small))
	assert.Empty(t, small.Status.Items, "one that has ended has no locks")
}

func kept(t *testing.T, whole *api.Transaction) *api.Transaction {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(whole)
	require.NoError(t, err)
	small, err := trim(&unstructured.Unstructured{Object: content})
	require.NoError(t, err)
	again, err := trim(small)
	require.NoError(t, err)
	assert.Same(t, small, again)
	return small.(*api.Transaction)
}
