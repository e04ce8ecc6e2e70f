package processes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"janus.io/janus/test/testcluster"
)

// shards is into how many the Transactions are divided here.
const shards = 8

// Three replicas share the work. The parts are not for the same time: there is one set
// of Leases.
func TestReplicasThatShareTheWork(t *testing.T) {
	t.Parallel()
	t.Run("killed or told to end", replicasThatEnd)
	t.Run("hung until they were replaced", replicasThatHang)
}

// One after the other is killed or told to end, and the others take its shards over. No
// two ever run one Transaction: the one that is late would meet a newer version of its
// status, and be refused.
func replicasThatEnd(t *testing.T) {
	w := newWorld(t, testcluster.Shared(t))
	w.begin("1s", "5m")
	r := w.random("shards")
	// Long enough for it not to expire on a busy machine.
	team := &team{w: w, duration: 10 * time.Second}
	team.fill()
	for n := range ofKills(6, 2) {
		victim := team.running[r.IntN(len(team.running))]
		pause(r, 300*time.Millisecond, 2*time.Second)
		w.scrape(victim)
		if n%2 == 0 {
			victim.kill()
		} else {
			victim.signal(syscall.SIGTERM)
			assert.Equal(t, 0, victim.exit(t), "it wrote:\n%s", victim.tail())
		}
		team.survive(victim)
		team.fill()
	}
	w.settle()
	w.judge()
	w.judgeAlone()
}

// One after the other hangs until its shards have been taken over, and some time more.
// Then it wakes up, in the middle of whatever it did, does no harm, and has its share
// again.
func replicasThatHang(t *testing.T) {
	w := newWorld(t, testcluster.Shared(t))
	w.begin("1s", "5m")
	r := w.random("shards that hang")
	team := &team{w: w, duration: 3 * time.Second}
	team.fill()
	for range ofKills(6, 2) {
		victim := team.running[r.IntN(len(team.running))]
		pause(r, 300*time.Millisecond, 2*time.Second)
		victim.signal(syscall.SIGSTOP)
		team.survive(victim)
		pause(r, 0, 2*time.Second)
		victim.signal(syscall.SIGCONT)
		w.counts.add("holders of shards woken after they were replaced", 1)
		team.fill()
		assert.True(t, victim.running(), "it wrote:\n%s", victim.tail())
	}
	w.settle()
	w.judge()
}

// team are the replicas.
type team struct {
	w        *world
	duration time.Duration
	running  []*janusd
}

// fill starts what is missing, and waits until each replica has its share.
func (m *team) fill() {
	m.w.t.Helper()
	var running []*janusd
	for _, j := range m.running {
		if j.running() {
			running = append(running, j)
		}
	}
	for len(running) < 3 {
		running = append(running, m.w.start("--leader-elect", fmt.Sprintf("--shards=%d", shards),
			fmt.Sprintf("--leader-elect-lease-duration=%s", m.duration)))
	}
	m.running = running
	m.divided(running)
}

// survive waits until the others have divided everything between them.
func (m *team) survive(victim *janusd) {
	m.w.t.Helper()
	var others []*janusd
	for _, j := range m.running {
		if j != victim {
			others = append(others, j)
		}
	}
	m.divided(others)
	m.w.counts.add("shards taken over", shards/len(m.running))
}

// divided waits until each of some replicas has its share of the shards, and no other
// has any.
func (m *team) divided(replicas []*janusd) {
	m.w.t.Helper()
	began := time.Now()
	m.w.until(fmt.Sprintf("%d replicas have divided the shards", len(replicas)), func(ctx context.Context) bool {
		load, all := m.load(ctx), 0
		for _, j := range replicas {
			identity, ok := j.Field("sharing the work", "identity")
			if !ok || load[identity] < shards/len(replicas) {
				return false
			}
			all += load[identity]
		}
		return all == shards
	})
	m.w.counts.most("milliseconds until the shards were divided, at most", int(time.Since(began).Milliseconds()))
}

// load says how many shards each replica holds, by identity.
func (m *team) load(ctx context.Context) map[string]int {
	load := map[string]int{}
	list, err := m.w.Kube.CoordinationV1().Leases(system).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=shard"})
	if err != nil {
		return load
	}
	for _, lease := range list.Items {
		load[ptr.Deref(lease.Spec.HolderIdentity, "")]++
	}
	return load
}

// judgeAlone wants that no janusd was refused a checkpoint because another had made one.
func (w *world) judgeAlone() {
	w.t.Helper()
	requests, err := w.cluster.Audit()
	require.NoError(w.t, err)
	checkpoints := 0
	for _, r := range requests {
		if r.Namespace != w.namespace || r.Resource != "transactions" || r.Subresource != "status" || !strings.HasPrefix(r.UserAgent, "janusd/") {
			continue
		}
		checkpoints++
		assert.NotEqual(w.t, http.StatusConflict, r.Code, "%s %s at %s: two janusd have run it", r.Verb, r.RequestURI, r.Received)
	}
	assert.Positive(w.t, checkpoints)
	w.counts.add("checkpoints, none refused", checkpoints)
}
