package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"janus.io/janus/internal/shard"
	"janus.io/janus/test/harness"
)

// replica starts a janusd that shares two shards with others.
func replica(t *testing.T, e *harness.Env) *process {
	t.Helper()
	return startJanusd(t, e, "--leader-elect", "--shards=2", "--leader-elect-lease-duration=12s",
		"--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0")
}

// holders are who holds the two shards.
func holders(t *testing.T, e *harness.Env) [2]string {
	t.Helper()
	var out [2]string
	for number := range out {
		lease, err := e.Kube.CoordinationV1().Leases(e.Namespace).Get(t.Context(), fmt.Sprintf("janusd-shard-%d", number), metav1.GetOptions{})
		if err == nil {
			out[number] = ptr.Deref(lease.Spec.HolderIdentity, "")
		}
	}
	return out
}

// awaitHolders waits until the two shards are held as it is wanted.
func awaitHolders(t *testing.T, e *harness.Env, so func(holders [2]string) bool) [2]string {
	t.Helper()
	var now [2]string
	e.Until("the shards are held as is wanted", func() bool {
		now = holders(t, e)
		return so(now)
	})
	return now
}

var (
	heldMetric   = regexp.MustCompile(`(?m)^janus_shards_held (\d)$`)
	masterMetric = regexp.MustCompile(`(?m)^leader_election_master_status\{name="janusd-shard-\d"\} 1$`)
)

func TestReplicasShareTheShards(t *testing.T) {
	e := newEnv(t)
	first := replica(t, e)
	one, _ := first.await("sharing the work")["identity"].(string)
	awaitHolders(t, e, func(h [2]string) bool { return h == [2]string{one, one} })
	code, body := first.get("health probes", "/readyz")
	assert.Equal(t, http.StatusOK, code, body)

	second := replica(t, e)
	two, _ := second.await("sharing the work")["identity"].(string)
	now := awaitHolders(t, e, func(h [2]string) bool { return h == [2]string{one, two} || h == [2]string{two, one} })
	for _, p := range []*process{first, second} {
		e.Until("client-go says the same as we do", func() bool {
			_, body := p.get("metrics", "/metrics")
			held := heldMetric.FindStringSubmatch(body)
			return held != nil && held[1] == "1" && len(masterMetric.FindAllString(body, -1)) == 1
		})
	}

	// Each Transaction is run by the one that holds its shard.
	for n, p := range []*process{first, second} {
		name := nameIn(e, now, []string{one, two}[n])
		e.Submit(name, changes)
		committed(t, e, name)
		var ran []string
		for _, change := range p.entries("phase changed") {
			ran = append(ran, fmt.Sprint(change["name"]))
		}
		assert.Contains(t, ran, name)
	}

	// One is told to stop, and the other is there at once.
	first.signal(syscall.SIGTERM)
	assert.Equal(t, 0, first.exit())
	awaitHolders(t, e, func(h [2]string) bool { return h == [2]string{two, two} })
	second.signal(syscall.SIGTERM)
	assert.Equal(t, 0, second.exit())
	assert.Equal(t, [2]string{}, holders(t, e), "the last one has given them back")
	left, err := e.Kube.CoordinationV1().Leases(e.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=replica"})
	require.NoError(t, err)
	assert.Empty(t, left.Items)
}

// nameIn makes up a name for a Transaction in the shard of a replica.
func nameIn(e *harness.Env, holders [2]string, who string) string {
	for n := 0; ; n++ {
		name := fmt.Sprintf("deploy-%d", n)
		if holders[shard.Of(types.NamespacedName{Namespace: e.Namespace, Name: name}, 2)] == who {
			return name
		}
	}
}

// A shard whose Lease is lost is all that janusd gives up.
func TestAReplicaThatLosesTheLeaseOfAShardGoesOn(t *testing.T) {
	e := newEnv(t)
	p := startJanusd(t, e, "--leader-elect", "--shards=2", "--leader-elect-lease-duration=3s")
	mine, _ := p.await("sharing the work")["identity"].(string)
	awaitHolders(t, e, func(h [2]string) bool { return h == [2]string{mine, mine} })
	leases := e.Kube.CoordinationV1().Leases(e.Namespace)
	require.NoError(t, harness.Poll(t.Context(), func(ctx context.Context) (bool, error) {
		lease, err := leases.Get(ctx, "janusd-shard-1", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		lease.Spec.HolderIdentity = ptr.To("somebody-else")
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err == nil, nil
	}))
	p.await("released a shard")
	name := nameIn(e, [2]string{mine, ""}, mine)
	e.Submit(name, changes)
	committed(t, e, name)
	awaitHolders(t, e, func(h [2]string) bool { return h == [2]string{mine, mine} }) // It was not renewed.
	p.signal(syscall.SIGTERM)
	assert.Equal(t, 0, p.exit())
}
