package shard_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"janus.io/janus/test/faultinject"
)

var (
	allFlag = flag.Bool("all", false, "have every fault happen at every call, not a sample")
	onlyOne = flag.String("plan", "", "the name of the one plan to run")
)

// role is a replica of a drill, and those that follow it when its process dies.
type role struct {
	f    *floor
	name string
	line *faultinject.Line

	mu      sync.Mutex
	number  int
	stopped bool
	end     func()
}

func (r *role) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	process := r.line.Process()
	config := rest.CopyConfig(r.f.Config)
	config.Wrap(process.Wrap)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		r.f.t.Errorf("make a client for %s: %v", r.name, err)
		return
	}
	r.number++
	r.end = r.f.startOn(client, process.Crashed(), fmt.Sprint(r.name, r.number), 2)
	go func() {
		select {
		case <-process.Crashed():
			r.start()
		case <-r.f.t.Context().Done():
		}
	}()
}

// stop stops the one that is in the role by now, and nobody follows.
func (r *role) stop() {
	r.mu.Lock()
	r.stopped = true
	end := r.end
	r.mu.Unlock()
	end()
}

// plan is a drill in which one thing goes wrong.
type plan struct {
	role  string
	at    faultinject.At
	fault faultinject.Fault
}

func (p plan) String() string { return fmt.Sprintf("%s %s %s", p.role, p.at, p.fault) }

// drill has a replica take two shards, share them with another, and leave. It gives the
// calls of both. That no shard is served twice at once the floor sees to.
func drill(t *testing.T, p plan) (calls map[string][]faultinject.Call, missed bool) {
	f := newFloor(t)
	roles := map[string]*role{}
	for _, name := range []string{"a", "b"} {
		roles[name] = &role{f: f, name: name, line: faultinject.NewLine()}
	}
	if p.fault != faultinject.NoFault {
		roles[p.role].line.Inject(faultinject.Injection{At: p.at, Fault: p.fault})
	}
	roles["a"].start()
	f.awaitSizes(2)
	roles["b"].start()
	f.awaitSizes(1, 1)
	roles["a"].stop()
	f.awaitSizes(2)
	roles["b"].stop()
	f.awaitSizes()
	calls = map[string][]faultinject.Call{}
	for name, r := range roles {
		r.line.Process() // What was to land after a restart does.
		r.line.Settle()
		calls[name] = r.line.Calls()
		missed = missed || len(r.line.Missed()) > 0
	}
	if p.fault == faultinject.NoFault {
		assert.Equal(t, []string{"", ""}, []string{f.holder(0), f.holder(1)}, "the last one has given the shards back")
		assert.Empty(t, f.replicas())
	}
	return calls, missed
}

// often is how many calls of one name something goes wrong with: a Lease is renewed again
// and again.
const often = 3

func plansOf(calls map[string][]faultinject.Call) (plans []plan) {
	for _, role := range []string{"a", "b"} {
		for _, call := range calls[role] {
			if call.Nth >= often {
				continue
			}
			for _, fault := range call.Faults() {
				plans = append(plans, plan{role, call.At, fault})
			}
		}
	}
	return plans
}

// Whatever goes wrong with one call for a Lease, of a shard or of a replica, no shard is
// run by two, and all are run by a replica soon. A plan is run alone by
//
//	go test ./internal/shard -run TestAFaultAtACallForALease -plan='PLAN'
func TestAFaultAtACallForALease(t *testing.T) {
	calls, _ := drill(t, plan{})
	plans := plansOf(calls)
	require.Greater(t, len(plans), 200)
	t.Logf("%d plans", len(plans))
	switch {
	case *onlyOne != "":
		plans = slices.DeleteFunc(plans, func(p plan) bool { return p.String() != *onlyOne })
		require.NotEmpty(t, plans, "no plan has that name")
	case !*allFlag:
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] }) //nolint:gosec // not for secrets
		plans = plans[:48]
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	next, missed := 0, 0
	for range min(12, len(plans)) { // They wait for Leases most of the time.
		running.Go(func() {
			for {
				mu.Lock()
				if next == len(plans) {
					mu.Unlock()
					return
				}
				p := plans[next]
				next++
				mu.Unlock()
				t.Run(p.String(), func(t *testing.T) {
					if _, off := drill(t, p); off {
						mu.Lock()
						missed++
						mu.Unlock()
					}
				})
			}
		})
	}
	running.Wait()
	t.Logf("%d run, %d of them did not come to their call", len(plans), missed)
	assert.LessOrEqual(t, missed, len(plans)/10, "the calls are not the same in every run")
}
