package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"janus.io/janus/internal/settings"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// far returns the stage as it is for those who see the API server from afar, and a kubeconfig for
// janusd, until ctx is done.
func (s *stage) far(ctx context.Context) (far *stage, kubeconfig string, err error) {
	config, err := goAway(ctx, s.client.Config, s.delay)
	if err != nil {
		return nil, "", err
	}
	out := *s
	if out.client, err = harness.NewClient(config); err != nil {
		return nil, "", err
	}
	out.kubeconfig = s.file("peers-afar")
	if err := writeKubeconfig(out.kubeconfig, config); err != nil {
		return nil, "", err
	}
	kubeconfig = s.file("kubeconfig-afar")
	return &out, kubeconfig, out.client.JanusdKubeconfig(ctx, kubeconfig)
}

// slowly measures the same changes where each answer takes a while, and tells which requests of
// janusd came one after the other.
func (s *stage) slowly(ctx context.Context, out io.Writer) error {
	if len(s.slow) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	far, kubeconfig, err := s.far(ctx)
	if err != nil {
		return err
	}
	s.janusd.stop()
	s.janusd = nil
	t := table{
		title: fmt.Sprintf("Each answer takes %s longer", s.delay), first: "changes, locks",
		columns: []string{bare, together, commits, graphs, backs},
	}
	if s.peers {
		t.columns = append(t.columns, flux)
	}
	chains := table{
		title: "Requests of janusd that come one after the other", first: "changes, locks, Transaction",
		columns: []string{"requests", "one after the other", fmt.Sprintf("of %s each", s.delay), "answered by the API server in", "other", "which"},
	}
	for _, mode := range []string{settings.LeaseOfTarget, settings.LeaseOfNamespace} {
		if far.janusd, err = s.startWith(ctx, kubeconfig, "--locks="+mode); err != nil {
			return err
		}
		err := far.slowlyWith(ctx, mode, &t, &chains)
		far.janusd.stop()
		if err != nil {
			return err
		}
	}
	t.write(out)
	chains.write(out)
	s.janusd, err = s.startJanusd(ctx)
	return err
}

// slowlyWith is slowly with one kind of locks.
func (s *stage) slowlyWith(ctx context.Context, mode string, t, chains *table) error {
	if err := s.warmUp(ctx); err != nil {
		return err
	}
	for _, n := range s.slow {
		namespace, err := s.namespace(ctx, n)
		if err != nil {
			return err
		}
		r := row{name: fmt.Sprintf("%d, %s", n, mode), times: map[string][]time.Duration{}}
		for round := range s.rounds {
			progress("%d changes from afar, locks of %s, round %d of %d", n, mode, round+1, s.rounds)
			for name, run := range s.contest(namespace, n, round) {
				if !slices.Contains(t.columns, name) {
					continue
				}
				began := time.Now()
				if name == flux {
					err = s.measureFlux(ctx, &r, namespace, n, round, s.kubeconfig)
				} else {
					err = r.measure(ctx, name, run)
				}
				if err != nil {
					return fmt.Errorf("%s of %d changes: %w", name, n, err)
				}
				if round == s.rounds-1 && slices.Contains([]string{commits, graphs, backs}, name) {
					texts, err := s.chainOf(namespace, began, time.Since(began))
					if err != nil {
						return err
					}
					chains.rows = append(chains.rows, row{name: fmt.Sprintf("%d, %s, %s", n, mode, name), texts: texts})
				}
			}
		}
		t.rows = append(t.rows, r)
	}
	return nil
}

// chainOf describes the longest chain of requests of janusd, each of which was sent when the one
// before had been answered, since a Transaction began, and how long the parts of it took.
func (s *stage) chainOf(namespace string, began time.Time, took time.Duration) ([]string, error) {
	events, err := s.cluster.Audit(namespace, "janusd")
	if err != nil {
		return nil, err
	}
	events = testcluster.Filter(events, func(e testcluster.AuditEvent) bool {
		return strings.HasPrefix(e.UserAgent, "janusd") && e.Verb != "watch" && e.Resource != "events" && e.Received.After(began)
	})
	chain := longest(events, s.delay)
	names := requests{}
	var answering time.Duration
	for _, e := range chain {
		names[nameOf(e)]++
		answering += e.Completed.Sub(e.Received)
	}
	away := time.Duration(len(chain)) * s.delay
	return []string{
		fmt.Sprint(len(events)), fmt.Sprint(len(chain)), inMilliseconds(away), inMilliseconds(answering), inMilliseconds(took - away - answering), names.String(),
	}, nil
}

func inMilliseconds(d time.Duration) string { return fmt.Sprintf("%.0f ms", milliseconds(d)) }

// longest returns the longest chain of requests that can each have waited for the answer to the one
// before: it was received a delay after that had been answered, or later.
func longest(events []testcluster.AuditEvent, delay time.Duration) []testcluster.AuditEvent {
	slices.SortStableFunc(events, func(a, b testcluster.AuditEvent) int { return a.Completed.Compare(b.Completed) })
	depth, before := make([]int, len(events)), make([]int, len(events))
	best := -1
	for i, e := range events {
		depth[i], before[i] = 1, -1
		for j := range i {
			if !events[j].Completed.Add(delay).After(e.Received) && depth[j] >= depth[i] {
				depth[i], before[i] = depth[j]+1, j
			}
		}
		if best < 0 || depth[i] > depth[best] {
			best = i
		}
	}
	var chain []testcluster.AuditEvent
	for i := best; i >= 0; i = before[i] {
		chain = append(chain, events[i])
	}
	slices.Reverse(chain)
	return chain
}
