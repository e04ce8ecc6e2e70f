package processes

import (
	"context"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/test/testcluster"
)

// Two replicas contend for the leader Lease. The one that leads is killed, told to
// end, or hangs until the other leads: then it wakes up, and has to end.
func TestALeaderThatWasReplacedDoesNoHarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testcluster.Shared(t))
	w.begin("1s", "5m")
	r := w.random("leaders")
	pair := &replicas{w: w}
	pair.fill()
	for n := range ofKills(10, 3) {
		leader := pair.leader()
		pause(r, 300*time.Millisecond, 2*time.Second)
		w.scrape(leader)
		switch n % 3 {
		case 0:
			pair.hang(r, leader)
		case 1:
			leader.kill()
		case 2:
			leader.signal(syscall.SIGTERM)
			assert.Equal(t, 0, leader.exit(t), "it wrote:\n%s", leader.tail())
		}
		pair.fill()
		assert.NotSame(t, leader, pair.leader())
	}
	w.settle()
	w.judge()
}

// replicas are two janusd with leader election.
type replicas struct {
	w       *world
	running []*janusd
}

// fill starts what is missing.
func (p *replicas) fill() {
	var running []*janusd
	for _, j := range p.running {
		if j.running() {
			running = append(running, j)
		}
	}
	for len(running) < 2 {
		running = append(running, p.w.start("--leader-elect", "--leader-elect-lease-duration=3s"))
	}
	p.running = running
}

// leader waits until one of the replicas that run leads.
func (p *replicas) leader() *janusd {
	p.w.t.Helper()
	var leader *janusd
	p.w.until("a replica leads", func(ctx context.Context) bool {
		lease, err := p.w.Kube.CoordinationV1().Leases(system).Get(ctx, "janusd-leader", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false
		}
		for _, j := range p.running {
			identity, leads := j.Field("leading", "identity")
			if leads && j.running() && identity == *lease.Spec.HolderIdentity {
				leader = j
				return true
			}
		}
		return false
	})
	return leader
}

// hang stops the leader until the other one leads, and some time more.
func (p *replicas) hang(r *rand.Rand, leader *janusd) {
	t := p.w.t
	t.Helper()
	leader.signal(syscall.SIGSTOP)
	var other []*janusd
	for _, j := range p.running {
		if j != leader {
			other = append(other, j)
		}
	}
	(&replicas{w: p.w, running: other}).leader()
	pause(r, 0, 2*time.Second)
	leader.signal(syscall.SIGCONT)
	p.w.counts.add("leaders woken after they were replaced", 1)
	require.Equal(t, 1, leader.exit(t), "it wrote:\n%s", leader.tail())
	assert.True(t, strings.HasSuffix(strings.TrimSpace(leader.Log()), "the leader Lease "+system+"/janusd-leader was lost"),
		"it wrote:\n%s", leader.tail())
}
