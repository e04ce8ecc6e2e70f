package processes

import (
	"context"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/testcluster"
)

// outage is a signal to a component of the control plane.
type outage struct {
	component string
	signal    syscall.Signal
}

// outages are all of them.
var outages = []outage{
	{testcluster.APIServer, syscall.SIGKILL}, {testcluster.Etcd, syscall.SIGKILL}, {testcluster.APIServer, syscall.SIGSTOP},
	{testcluster.APIServer, syscall.SIGTERM}, {testcluster.Etcd, syscall.SIGTERM}, {testcluster.Etcd, syscall.SIGSTOP},
}

// The API server and etcd are killed, and told to end, under load, and come back with
// what they had acknowledged; or they hang, and go on with what they had been asked.
// janusd is not restarted for it, but now and then killed as well.
func TestTransactionsSurviveOutagesOfTheControlPlane(t *testing.T) {
	t.Parallel()
	with := options()
	with.RestartKilled = true
	cluster, err := testcluster.Start(with)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	w := newWorld(t, cluster)
	w.begin("1s", "5m")
	kept := w.keep()
	r := w.random("outages")
	for n := range ofKills(10, len(outages)) {
		kept.now().works()
		pause(r, 200*time.Millisecond, 2*time.Second)
		if r.IntN(3) == 0 {
			kept.now().kill()
		}
		if o := outages[n%len(outages)]; o.signal == syscall.SIGSTOP {
			w.hang(r, o.component, n/len(outages)%2 == 1)
		} else {
			w.strike(o)
		}
	}
	kept.end()
	w.settle()
	w.judge()
}

// strike sends a signal to a component, and waits until it runs again.
func (w *world) strike(o outage) {
	w.t.Helper()
	before, err := w.cluster.PID(o.component)
	require.NoError(w.t, err)
	require.NoError(w.t, w.cluster.Signal(o.component, o.signal))
	w.counts.add(name(o.signal)+" "+o.component, 1)
	w.restarted = true
	began := time.Now()
	w.until(o.component+" is back", func(ctx context.Context) bool {
		require.NoError(w.t, w.cluster.Err())
		after, err := w.cluster.PID(o.component)
		return err == nil && after != before && w.ready(ctx)
	})
	w.counts.most("milliseconds until "+o.component+" was back, at most", int(time.Since(began).Milliseconds()))
}

// hang makes a component hang for longer than the shorter locks last, or for longer
// than janusd waits for an answer, and waits until it works again: what it was asked
// before and meanwhile it then does, no matter who still waits for it.
func (w *world) hang(r *rand.Rand, component string, long bool) {
	w.t.Helper()
	require.NoError(w.t, w.cluster.Signal(component, syscall.SIGSTOP))
	w.counts.add("SIGSTOP "+component, 1)
	if long {
		pause(r, 15*time.Second, 20*time.Second)
	} else {
		pause(r, 1200*time.Millisecond, 2*time.Second)
	}
	assert.False(w.t, w.ready(w.t.Context()), "%s does not hang", component)
	require.NoError(w.t, w.cluster.Signal(component, syscall.SIGCONT))
	began := time.Now()
	w.until(component+" works again", func(ctx context.Context) bool {
		require.NoError(w.t, w.cluster.Err())
		return w.ready(ctx)
	})
	w.counts.most("milliseconds until "+component+" worked again, at most", int(time.Since(began).Milliseconds()))
}

// ready asks the API server whether it is, and its etcd.
func (w *world) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return w.Kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil
}

// keeper starts a janusd again that has ended, as a kubelet does: one that starts
// while there is no API server says so and ends.
type keeper struct {
	w    *world
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	current *janusd
}

func (w *world) keep() *keeper {
	k := &keeper{w: w, stop: make(chan struct{}), done: make(chan struct{}), current: w.start()}
	go func() {
		defer close(k.done)
		for {
			select {
			case <-k.stop:
				return
			case <-k.now().Ended():
				time.Sleep(100 * time.Millisecond)
				k.mu.Lock()
				k.current = w.start()
				k.mu.Unlock()
			}
		}
	}()
	return k
}

func (k *keeper) now() *janusd {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

// end lets the janusd that runs go on alone.
func (k *keeper) end() {
	close(k.stop)
	<-k.done
	if !k.now().running() {
		k.w.start()
	}
}
