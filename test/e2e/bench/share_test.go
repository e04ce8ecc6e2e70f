package bench

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/shard"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

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
		first: "Transactions", columns: []string{"namespaces", "replicas", "took", "beside one", "the larger share", "requests of each", "of them outdated"}}
	for _, many := range s.shared {
		for _, spread := range s.spread {
			var alone time.Duration
			for n, name := range []string{"one replica", "two replicas"} {
				w, err := s.runBy(ctx, n+1, many, spread, kubeconfig)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				took := median(w.took)
				alone = max(alone, took*time.Duration(1-n))
				t.rows = append(t.rows, row{name: fmt.Sprint(many), texts: []string{
					fmt.Sprint(spread), name, inMilliseconds(took), fmt.Sprintf("%.2f × as fast", float64(alone)/float64(took)),
					fmt.Sprint(w.larger), fmt.Sprintf("%.1f", w.asked), fmt.Sprintf("%.1f", w.outdated),
				}})
			}
		}
	}
	t.write(out)
	s.janusd, err = s.startJanusd(ctx)
	return err
}

// warming is of how many Transactions in each namespace the first round is.
const warming = 1

// work is what replicas did.
type work struct {
	took            []time.Duration // for all Transactions, in each round
	larger          []int           // how many of them the replica had that had the most, in each round
	asked, outdated float64         // requests for a Transaction of the last round, and how many of them were refused as outdated
}

// runBy has some replicas run many Transactions in some namespaces.
func (s *stage) runBy(ctx context.Context, replicas, many, spread int, kubeconfig string) (w work, err error) {
	var running []*janusd
	defer func() {
		for _, each := range running {
			each.stop()
		}
	}()
	for range replicas {
		j, err := s.startWith(ctx, kubeconfig, "--locks="+*locks, "--leader-elect", fmt.Sprint("--shards=", *shards))
		if err != nil {
			return w, err
		}
		running = append(running, j)
	}
	holders, err := s.sharedBy(ctx, replicas)
	if err != nil {
		return w, err
	}
	var namespaces []string
	for range spread {
		namespace, err := s.namespace(ctx, (many+spread-1)/spread*each)
		if err != nil {
			return w, err
		}
		namespaces = append(namespaces, namespace)
	}
	var last time.Time
	for round := range s.rounds + 1 { // In the first, they read the schemas.
		progress("%d Transactions in %d namespaces by %d replicas, round %d of %d", many, spread, replicas, round, s.rounds)
		texts := make([][]string, spread)
		shares := map[string]int{}
		some := many
		if round == 0 {
			some = min(many, warming*spread)
		}
		for n := range some {
			name, in, at := fmt.Sprintf("shared-%d-%d", round, n), n%spread, n/spread*each
			texts[in] = append(texts[in], manifest(namespaces[in], name, at, at+each, name, ""))
			shares[holders[shard.Of(types.NamespacedName{Namespace: namespaces[in], Name: name}, *shards)]]++
		}
		last = time.Now()
		group, all := errgroup.WithContext(ctx)
		for in, namespace := range namespaces {
			group.Go(func() error { return s.transact(all, namespace, api.PhaseCommitted, texts[in]...) })
		}
		if err := group.Wait(); err != nil {
			return w, err
		}
		if round > 0 {
			w.took = append(w.took, time.Since(last))
			w.larger = append(w.larger, slices.Max(slices.Collect(maps.Values(shares))))
		}
	}
	events, err := s.cluster.Audit("janusd")
	events = testcluster.Filter(events, func(e testcluster.AuditEvent) bool {
		return slices.Contains(namespaces, e.Namespace) && e.Verb != "watch" && e.Received.After(last)
	})
	outdated := testcluster.Filter(events, func(e testcluster.AuditEvent) bool { return e.Code == http.StatusConflict })
	w.asked, w.outdated = float64(len(events))/float64(many), float64(len(outdated))/float64(many)
	return w, err
}

// sharedBy waits until so many replicas hold all shards, none of them two more than another, and
// returns who holds each.
func (s *stage) sharedBy(ctx context.Context, replicas int) (holders []string, err error) {
	leases := s.client.Kube.CoordinationV1().Leases(harness.SystemNamespace)
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := leases.List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=shard"})
		if err != nil {
			return false, err
		}
		holders = make([]string, *shards)
		for _, lease := range list.Items {
			if number, err := strconv.Atoi(strings.TrimPrefix(lease.Name, "janusd-shard-")); err == nil && number < *shards {
				holders[number] = ptr.Deref(lease.Spec.HolderIdentity, "")
			}
		}
		held := map[string]int{}
		for _, holder := range holders {
			held[holder]++
		}
		most := slices.Max(slices.Collect(maps.Values(held)))
		return held[""] == 0 && len(held) == replicas && most <= (*shards+replicas-1)/replicas, nil
	})
	return holders, err
}
