package shard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"janus.io/janus/internal/shard"
	"janus.io/janus/test/harness"
)

const lasting = 3 * time.Second

func leaseOf(number int) string { return fmt.Sprintf("janusd-shard-%d", number) }

func labelsOf(component string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "janusd", "app.kubernetes.io/component": component}
}

// floor is where replicas are served, with a book of who serves what.
type floor struct {
	*harness.Env
	t *testing.T

	mu      sync.Mutex
	serving map[int]string // by shard
	// leaving holds those up that are to give a shard back.
	leaving map[string]chan struct{}
}

func newFloor(t *testing.T) *floor {
	return &floor{Env: harness.New(t), t: t, serving: map[int]string{}, leaving: map[string]chan struct{}{}}
}

// start starts a replica, and returns what stops it in order.
func (f *floor) start(name string, shards int) (stop func()) {
	f.t.Helper()
	return f.startOn(f.Kube, nil, name, shards)
}

// startOn starts a replica that has this client. When dead is closed its process is gone,
// with all that it serves.
func (f *floor) startOn(client kubernetes.Interface, dead <-chan struct{}, name string, shards int) (stop func()) {
	f.t.Helper()
	r, err := shard.New(shard.Options{
		Client: client, Namespace: f.Namespace, Identity: name, Shards: shards, Duration: lasting,
		Serve: func(ctx context.Context, number int) { f.serve(ctx, dead, name, number) },
		Clock: clock.RealClock{}, Log: zaptest.NewLogger(f.t).Named(name),
	})
	require.NoError(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	f.t.Cleanup(stop)
	return stop
}

func (f *floor) serve(ctx context.Context, dead <-chan struct{}, name string, number int) {
	f.mu.Lock()
	if other := f.serving[number]; other != "" {
		f.t.Errorf("%s serves shard %d while %s does", name, number, other)
	}
	f.serving[number] = name
	hold := f.leaving[name]
	f.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-dead:
	}
	if hold != nil {
		<-hold
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.serving, number)
}

// load says how many shards each replica serves.
func (f *floor) load() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	load := map[string]int{}
	for _, name := range f.serving {
		load[name]++
	}
	return load
}

// await waits until the shards are divided so.
func (f *floor) await(want map[string]int) {
	f.t.Helper()
	err := harness.Poll(f.t.Context(), func(context.Context) (bool, error) {
		return assert.ObjectsAreEqual(want, f.load()), nil
	})
	require.NoError(f.t, err, "the shards are divided so: %v", f.load())
}

// awaitSizes waits until so many replicas have so many shards, in rising order.
func (f *floor) awaitSizes(want ...int) {
	f.t.Helper()
	err := harness.Poll(f.t.Context(), func(context.Context) (bool, error) {
		return slices.Equal(want, slices.Sorted(maps.Values(f.load()))), nil
	})
	require.NoError(f.t, err, "the shards are divided so: %v", f.load())
}

func (f *floor) holder(number int) string {
	f.t.Helper()
	lease, err := f.Kube.CoordinationV1().Leases(f.Namespace).Get(f.t.Context(), leaseOf(number), metav1.GetOptions{})
	require.NoError(f.t, err)
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// replicas lists who the replicas are.
func (f *floor) replicas() []string {
	f.t.Helper()
	list, err := f.Kube.CoordinationV1().Leases(f.Namespace).List(f.t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=replica"})
	require.NoError(f.t, err)
	var out []string
	for _, lease := range list.Items {
		out = append(out, ptr.Deref(lease.Spec.HolderIdentity, ""))
	}
	return out
}

func TestReplicasThatComeAndGoDivideTheShards(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	first := f.start("a", 4)
	f.await(map[string]int{"a": 4})
	second := f.start("b", 4)
	f.await(map[string]int{"a": 2, "b": 2})
	third := f.start("c", 4)
	f.awaitSizes(1, 1, 2)
	assert.ElementsMatch(t, []string{"a", "b", "c"}, f.replicas())
	first()
	f.await(map[string]int{"b": 2, "c": 2})
	assert.ElementsMatch(t, []string{"b", "c"}, f.replicas())
	second()
	third()
	f.await(map[string]int{})
	for number := range 4 {
		assert.Empty(t, f.holder(number), "shard %d was given back", number)
	}
	assert.Empty(t, f.replicas())
}

func TestMoreReplicasThanShards(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	for _, name := range []string{"a", "b", "c"} {
		f.start(name, 2)
	}
	f.Until("two of three replicas have a shard each", func() bool { return len(f.load()) == 2 && len(f.replicas()) == 3 })
}

// The book tells if another takes a shard while the steps in flight are being finished.
func TestAShardIsGivenBackWhenWhatWasInHandIsFinished(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	inHand := make(chan struct{})
	f.leaving["a"] = inHand
	stop := f.start("a", 2)
	f.await(map[string]int{"a": 2})
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	f.start("b", 2)
	f.Until("a has told that it goes", func() bool {
		names := f.replicas()
		return len(names) == 1 && names[0] == "b"
	})
	// It renews the Leases for longer than they last.
	for number := range 2 {
		lease, err := f.Kube.CoordinationV1().Leases(f.Namespace).Get(t.Context(), leaseOf(number), metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "a", *lease.Spec.HolderIdentity)
		begun := lease.Spec.RenewTime.Time
		require.NoError(t, harness.Poll(t.Context(), func(ctx context.Context) (bool, error) {
			lease, err := f.Kube.CoordinationV1().Leases(f.Namespace).Get(ctx, leaseOf(number), metav1.GetOptions{})
			return err == nil && lease.Spec.RenewTime.Sub(begun) > lasting, err
		}))
	}
	assert.Equal(t, map[string]int{"a": 2}, f.load())
	close(inHand)
	<-stopped
	f.await(map[string]int{"b": 2})
}

// lateRenewal lets a renewal land right before the first request that gives a Lease back.
type lateRenewal struct {
	http.RoundTripper
	renew func()
	once  sync.Once
}

func (l *lateRenewal) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/janusd-shard-") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var lease coordinationv1.Lease
		if err := json.Unmarshal(body, &lease); err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
			l.once.Do(l.renew)
		}
	}
	return l.RoundTripper.RoundTrip(r)
}

func TestARenewalThatLandsLateDoesNotKeepAShard(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	renewed := false
	config := rest.CopyConfig(f.Config)
	config.ContentType = "application/json"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &lateRenewal{RoundTripper: next, renew: func() {
			leases := f.Kube.CoordinationV1().Leases(f.Namespace)
			lease, err := leases.Get(context.Background(), leaseOf(0), metav1.GetOptions{})
			if assert.NoError(t, err) {
				lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
				_, err = leases.Update(context.Background(), lease, metav1.UpdateOptions{})
				assert.NoError(t, err)
				renewed = true
			}
		}}
	})
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	stop := f.startOn(client, nil, "a", 1)
	f.await(map[string]int{"a": 1})
	stop()
	assert.True(t, renewed, "a renewal has landed in between")
	assert.Empty(t, f.holder(0), "the shard was given back")
}

// made makes a Lease as one has left it who is dead.
func (f *floor) made(name, holder string, labels map[string]string) {
	f.t.Helper()
	now := metav1.NowMicro()
	_, err := f.Kube.CoordinationV1().Leases(f.Namespace).Create(f.t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To(int32(lasting / time.Second)), AcquireTime: &now, RenewTime: &now,
		},
	}, metav1.CreateOptions{})
	require.NoError(f.t, err)
}

func TestShardsOfADeadReplicaAreTakenOver(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	dead := labelsOf("replica")
	dead["janus.io/shards"] = "3"
	f.made("janusd-replica-dead", "dead", dead)
	for number := range 3 {
		f.made(leaseOf(number), "dead", labelsOf("shard"))
	}
	f.start("a", 3)
	f.await(map[string]int{"a": 3})
	assert.Equal(t, []string{"a"}, f.replicas(), "nothing is left of the dead one")
}

func TestAReplicaThatLosesAShardGoesOnWithTheOthers(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.start("a", 2)
	f.await(map[string]int{"a": 2})
	lease, err := f.Kube.CoordinationV1().Leases(f.Namespace).Get(t.Context(), leaseOf(1), metav1.GetOptions{})
	require.NoError(t, err)
	// Another replica takes it, as after a pause of which the replica knows
	// nothing.
	require.NoError(t, harness.Poll(t.Context(), func(ctx context.Context) (bool, error) {
		lease, err = f.Kube.CoordinationV1().Leases(f.Namespace).Get(ctx, leaseOf(1), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		lease.Spec.HolderIdentity = ptr.To("thief")
		_, err = f.Kube.CoordinationV1().Leases(f.Namespace).Update(ctx, lease, metav1.UpdateOptions{})
		return err == nil, nil
	}))
	f.await(map[string]int{"a": 1})
	f.await(map[string]int{"a": 2}) // The thief has not renewed it.
}

func TestAReplicaWithAnotherNumberOfShardsWaitsForTheFirstToGo(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	stop := f.start("a", 2)
	f.await(map[string]int{"a": 2})
	f.start("b", 4)
	// The API server tells in seconds when a Lease was made.
	second := time.Now()
	f.Until("the second has been there for two seconds", func() bool {
		if len(f.replicas()) < 2 {
			second = time.Now()
		}
		return time.Since(second) > 2*time.Second
	})
	f.start("c", 2)
	f.await(map[string]int{"a": 1, "c": 1})
	stop()
	// b was there before c.
	f.await(map[string]int{"b": 4})
}
