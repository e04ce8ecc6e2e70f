package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// shards is into how many shards replicas divide the Transactions, as in deploy/.
const shards = 8

// shareOut measures how much sooner two replicas are done than one, if each answer takes a while
// and so the API server has time for both.
func (s *stage) shareOut(ctx context.Context, out io.Writer) error {
	if len(s.shared) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, kubeconfig, err := s.far(ctx)
	if err != nil {
		return err
	}
	s.janusd.stop()
	s.janusd = nil
	t := table{title: fmt.Sprintf("Replicas that share the work, where each answer takes %s longer", s.delay),
		first: "Transactions", columns: []string{"replicas", "took", "beside one", "requests of each", "of them outdated"}}
	for _, many := range s.shared {
		var alone time.Duration
		for n, name := range []string{"one replica", "two replicas"} {
			took, asked, refused, err := s.runBy(ctx, n+1, many, kubeconfig)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			alone = max(alone, took*time.Duration(1-n))
			t.rows = append(t.rows, row{name: fmt.Sprint(many), texts: []string{
				name, inMilliseconds(took), fmt.Sprintf("%.2f × as fast", float64(alone)/float64(took)),
				fmt.Sprintf("%.1f", asked), fmt.Sprintf("%.1f", refused),
			}})
		}
	}
	t.write(out)
	s.janusd, err = s.startJanusd(ctx)
	return err
}

// runBy returns how long some replicas take for many Transactions, the median of all rounds, and how many
// requests each of them took in the last round, and how many of these were refused as outdated.
func (s *stage) runBy(ctx context.Context, replicas, many int, kubeconfig string) (took time.Duration, asked, refused float64, err error) {
	var running []*janusd
	defer func() {
		for _, each := range running {
			each.stop()
		}
	}()
	for range replicas {
		j, err := s.startWith(ctx, kubeconfig, "--locks="+*locks, "--leader-elect", fmt.Sprint("--shards=", shards))
		if err != nil {
			return 0, 0, 0, err
		}
		running = append(running, j)
	}
	if err := s.sharedBy(ctx, replicas); err != nil {
		return 0, 0, 0, err
	}
	namespace, err := s.namespace(ctx, many*each)
	if err != nil {
		return 0, 0, 0, err
	}
	var last time.Time
	var times []time.Duration
	for round := range s.rounds + 1 { // In the first, they read the schemas.
		progress("%d Transactions by %d replicas, round %d of %d", many, replicas, round, s.rounds)
		var texts []string
		for n := range many {
			name := fmt.Sprintf("shared-%d-%d", round, n)
			texts = append(texts, manifest(namespace, name, n*each, (n+1)*each, name, ""))
		}
		last = time.Now()
		if err := s.transact(ctx, namespace, api.PhaseCommitted, texts...); err != nil {
			return 0, 0, 0, err
		}
		if round > 0 {
			times = append(times, time.Since(last))
		}
	}
	events, err := s.cluster.Audit(namespace, "janusd")
	if err != nil {
		return 0, 0, 0, err
	}
	events = testcluster.Filter(events, func(e testcluster.AuditEvent) bool { return e.Verb != "watch" && e.Received.After(last) })
	outdated := testcluster.Filter(events, func(e testcluster.AuditEvent) bool { return e.Code == http.StatusConflict })
	return median(times), float64(len(events)) / float64(many), float64(len(outdated)) / float64(many), nil
}

// sharedBy waits until so many replicas hold all shards, none of them two more than another.
func (s *stage) sharedBy(ctx context.Context, replicas int) error {
	leases := s.client.Kube.CoordinationV1().Leases(harness.SystemNamespace)
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := leases.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=shard"})
		if err != nil {
			return false, err
		}
		held := map[string]int{}
		for _, lease := range list.Items {
			held[ptr.Deref(lease.Spec.HolderIdentity, "")]++
		}
		sum := 0
		for holder, n := range held {
			if holder == "" || n > (shards+replicas-1)/replicas {
				return false, nil
			}
			sum += n
		}
		return sum == shards && len(held) == replicas, nil
	})
}
