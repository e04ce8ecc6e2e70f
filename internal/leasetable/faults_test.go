package leasetable

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/test/testcluster"
)

// What became of a write whose answer is lost is not known to any of those who asked for it. Looking tells.
func TestALostAnswerIsLostToAllWhoAsked(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	c, tap := process(t)
	all := c.Leases(namespace)
	tap.lose()
	ctx, left := c.Together(t.Context(), 2)
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			defer left()
			_, err := all.Create(ctx, lease(fmt.Sprint("l-", i), "a"), metav1.CreateOptions{})
			assert.ErrorIs(t, err, errLost)
		})
	}
	both.Wait()
	_, err := all.Create(t.Context(), lease("l-0", "b"), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	found, err := all.Get(t.Context(), "l-0", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "a", *found.Spec.HolderIdentity)

	tap.lose()
	require.ErrorIs(t, all.Delete(t.Context(), "l-0", exactly(found)), errLost)
	require.True(t, apierrors.IsNotFound(all.Delete(t.Context(), "l-0", exactly(found))))
}

// A write that lands late, after others have written, changes nothing.
func TestAWriteThatLandsLateIsRefused(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	hung, tap := process(t)
	other, _ := process(t)
	mine, err := hung.Leases(namespace).Create(t.Context(), lease("l", "a"), metav1.CreateOptions{})
	require.NoError(t, err)
	var late func() (*http.Response, error)
	tap.on(func(send func() (*http.Response, error)) (*http.Response, error) {
		late = send
		return nil, errLost
	})
	require.ErrorIs(t, hung.Leases(namespace).Delete(t.Context(), "l", exactly(mine)), errLost)
	_, err = other.Leases(namespace).Create(t.Context(), lease("other", "b"), metav1.CreateOptions{})
	require.NoError(t, err)
	answer, err := late()
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusConflict, answer.StatusCode)
	require.Len(t, names(t, other.Leases(namespace)), 2)
}

// Who gives up before his turn has changed nothing.
func TestWhatNobodyWaitsForIsNotMade(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	c, tap := process(t)
	all := c.Leases(namespace)
	sent, goOn := make(chan struct{}), make(chan struct{})
	tap.on(func(send func() (*http.Response, error)) (*http.Response, error) {
		close(sent)
		<-goOn
		return send()
	})
	var first sync.WaitGroup
	first.Go(func() {
		_, err := all.Create(t.Context(), lease("first", "a"), metav1.CreateOptions{})
		assert.NoError(t, err)
	})
	<-sent
	ctx, cancel := context.WithCancel(t.Context())
	var second sync.WaitGroup
	second.Go(func() {
		_, err := all.Create(ctx, lease("second", "a"), metav1.CreateOptions{})
		assert.ErrorIs(t, err, context.Canceled)
	})
	require.Eventually(t, func() bool {
		c.tables.mu.Lock()
		defer c.tables.mu.Unlock()
		return len(c.tables.of[namespace].waiting) == 1
	}, waits, tick)
	cancel()
	second.Wait()
	close(goOn)
	first.Wait()
	require.Len(t, names(t, all), 1)
}

// A table in which this process knows nothing more has an entry of another by now, and stays.
func TestATableIsDeletedOnlyIfItIsEmpty(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	first, _ := process(t)
	second, _ := process(t)
	mine, err := first.Leases(namespace).Create(t.Context(), lease("mine", "a"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = second.Leases(namespace).Create(t.Context(), lease("theirs", "b"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, first.Leases(namespace).Delete(t.Context(), "mine", exactly(mine)))
	require.Equal(t, []string{"theirs"}, slices.Collect(maps.Keys(names(t, second.Leases(namespace)))))
}

// An answer that there is no table may be wrong. The lock that is released would stay.
func TestThatThereIsNoTableIsNotBelievedAtOnce(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	c, _ := process(t)
	made, err := c.Leases(namespace).Create(t.Context(), lease("l", "a"), metav1.CreateOptions{})
	require.NoError(t, err)
	restarted, tap := process(t)
	tap.on(func(func() (*http.Response, error)) (*http.Response, error) {
		return nil, apierrors.NewNotFound(resource, Name)
	})
	require.NoError(t, restarted.Leases(namespace).Delete(t.Context(), "l", exactly(made)))
	require.Empty(t, objects(t, c, namespace))
}

// One who gives up at the moment in which the answer comes is counted once: the others of the group
// would never be answered otherwise, or too early.
func TestWhoGivesUpAsTheAnswerComesIsCountedOnce(t *testing.T) {
	t.Parallel()
	namespace := testcluster.Namespace(t)
	c, _ := process(t)
	ctx, left := c.Together(t.Context(), 1)
	defer left()
	_, err := c.Leases(namespace).Create(ctx, lease("l", "a"), metav1.CreateOptions{})
	require.NoError(t, err)
	group, _ := ctx.Value(togetherKey{}).(*together)
	require.Zero(t, group.waiting)
	table := c.tables.of[namespace]
	late := &ask{name: "l", change: reading("l"), done: make(chan struct{}), ctx: t.Context(), together: group}
	c.tables.mu.Lock()
	table.waiting = append(table.waiting, late)
	group.join(table)
	c.tables.mu.Unlock()
	<-late.done
	table.withdraw(late)
	require.Zero(t, group.waiting)
}
