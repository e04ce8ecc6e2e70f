package namespaces

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"

	"janus.io/janus/test/testcluster"
)

// A world is a namespace with a record, and what a Follower has told.
type world struct {
	t         *testing.T
	namespace string
	kube      kubernetes.Interface
	clock     *clocktesting.FakeClock
}

// A follower is one with what it has told.
type follower struct {
	*Follower
	world   *world
	mu      sync.Mutex
	members []string
	leaving []string
	sets    int
	begun   map[string]bool
	lose    func(*http.Request) bool // whether the answer to a request gets lost
	refuse  func(*http.Request) bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kube, err := kubernetes.NewForConfig(testcluster.Shared(t).Config())
	require.NoError(t, err)
	return &world{t: t, namespace: testcluster.Namespace(t), kube: kube, clock: clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// replica makes a Follower as in a process of its own.
func (w *world) replica() *follower {
	w.t.Helper()
	f := &follower{world: w, begun: map[string]bool{}}
	config := testcluster.Shared(w.t).Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if f.refuse != nil && f.refuse(r) {
				return nil, errors.New("it is away")
			}
			resp, err := next.RoundTrip(r)
			if err == nil && f.lose != nil && f.lose(r) {
				return nil, errors.Join(errors.New("the answer was lost"), resp.Body.Close())
			}
			return resp, err
		})
	})
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(w.t, err)
	f.Follower = New(Options{
		Client: kube, Namespace: w.namespace, Record: "watched", Clock: w.clock, Log: zaptest.NewLogger(w.t), Keep: time.Hour,
		Set: func(namespaces, leaving []string) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.members, f.leaving = namespaces, leaving
			f.sets++
			assert.Subset(w.t, w.recorded(), namespaces, "they are on record before anything is begun")
			return nil
		},
		Begun: func(_ context.Context, namespace string) (bool, error) { return f.begun[namespace], nil },
	})
	return f
}

// recorded are the namespaces on record.
func (w *world) recorded() []string {
	names, _, err := record{client: w.kube.CoreV1().ConfigMaps(w.namespace), name: "watched"}.read(context.Background())
	require.NoError(w.t, err)
	return names
}

func (f *follower) told(names ...string) {
	f.world.t.Helper()
	require.NoError(f.world.t, f.follow(f.world.t.Context(), names))
}

// leavesShop lets the namespace shop be left, and an hour pass.
func (f *follower) leavesShop() {
	f.Left("shop")
	f.world.clock.Step(time.Hour)
	f.forget(f.world.t.Context())
}

func TestWhatIsRunIsOnRecordUntilNothingIsLeftOfIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.replica()
	f.told("orders", "shop")
	assert.Equal(t, []string{"orders", "shop"}, w.recorded())
	f.told("orders")
	assert.Equal(t, []string{"orders"}, f.members)
	assert.Equal(t, []string{"shop"}, f.leaving, "what was begun there is to be finished")
	assert.Equal(t, []string{"orders", "shop"}, w.recorded())

	restarted := w.replica()
	restarted.told()
	assert.Equal(t, []string{"orders", "shop"}, restarted.leaving, "another process finds it out")

	f.Left("shop")
	f.told("orders")
	assert.Empty(t, f.leaving, "it was left")
	f.forget(t.Context())
	assert.Equal(t, []string{"orders", "shop"}, w.recorded(), "another replica may be late")
	f.begun["shop"] = true
	w.clock.Step(time.Hour)
	f.forget(t.Context())
	assert.Equal(t, []string{"orders", "shop"}, w.recorded(), "another replica was late")
	f.told("orders")
	assert.Equal(t, []string{"shop"}, f.leaving, "that is finished, too")
	f.begun["shop"] = false
	f.leavesShop()
	assert.Equal(t, []string{"orders"}, w.recorded())
	f.leavesShop()
	assert.Equal(t, []string{"orders"}, w.recorded(), "once more does no harm")
}

// Two replicas learn of a change at different times. What one enters while the other removes it stays.
func TestAReplicaRemovesNothingThatAnotherHasEntered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, other := w.replica(), w.replica()
	f.told("shop")
	f.told()
	f.Begun = func(ctx context.Context, _ string) (bool, error) {
		require.NoError(t, other.follow(ctx, []string{"shop"})) // Between the look and the removal.
		return false, nil
	}
	f.leavesShop()
	assert.Equal(t, []string{"shop"}, w.recorded())
	f.Begun = func(context.Context, string) (bool, error) { return false, nil }
	f.leavesShop()
	assert.Empty(t, w.recorded())
	other.told("shop")
	assert.Equal(t, []string{"shop"}, w.recorded(), "one that still runs it puts it on record again")
}

// An answer that gets lost, or a process that dies between the record and what follows, costs
// nothing but a repetition.
func TestALostAnswerIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.replica()
	for _, method := range []string{http.MethodPost, http.MethodPatch} {
		lost := false
		f.lose = func(r *http.Request) bool {
			now := !lost && r.Method == method
			lost = lost || now
			return now
		}
		names := []string{"orders", "shop"}
		require.Error(t, f.follow(t.Context(), names))
		require.True(t, lost)
		assert.Zero(t, f.sets, "what may not be on record is not begun")
		f.told(names...)
		assert.Equal(t, names, f.members)
		f.sets, f.Follower.members = 0, nil
	}
}

// Run tries again until the record can be written, and forgets what has changed meanwhile.
func TestTheLatestSetCountsOnceItCanBePutOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.replica()
	var mu sync.Mutex
	away, refused := true, 0
	f.refuse = func(*http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if away {
			refused++
		}
		return away
	}
	source := make(chan []string)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		f.Run(ctx, fromChannel(source))
	})
	defer running.Wait()
	defer cancel()
	source <- []string{"shop"}
	until := func(so func() bool) {
		t.Helper()
		require.Eventually(t, func() bool { w.clock.Step(again); mu.Lock(); defer mu.Unlock(); return so() }, time.Minute, time.Millisecond)
	}
	until(func() bool { return refused > 1 })
	source <- []string{"orders"}
	mu.Lock()
	away = false
	mu.Unlock()
	until(func() bool { f.mu.Lock(); defer f.mu.Unlock(); return slices.Equal(f.members, []string{"orders"}) })
	assert.NotContains(t, f.members, "shop")
}

type fromChannel <-chan []string

func (c fromChannel) Run(ctx context.Context, tell func([]string)) {
	for {
		select {
		case <-ctx.Done():
			return
		case names := <-c:
			tell(names)
		}
	}
}

// Anyone who made the ConfigMap, others' keys stay, and their values too.
func TestTheRecordIsAConfigMapThatPeopleCanRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.kube.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "watched"}, Data: map[string]string{"old": "x"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	f := w.replica()
	f.told("shop")
	made, err := w.kube.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "watched", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"old": "x", "shop": "2030-01-02T03:04:05Z"}, made.Data)
	assert.Equal(t, []string{"old"}, f.leaving)
}
