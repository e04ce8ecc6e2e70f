package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	api "janus.io/janus/api/v1alpha1"
)

// kinds of contestants.
const (
	bare     = "bare client"
	together = "bare, 8 at once"
	commits  = "commit"
	graphs   = "commit, Graph"
	backs    = "rollback"
	kubectl  = "kubectl apply"
	floor    = "requests alone"
	helm     = "Helm"
	flux     = "Flux"
)

// oneByOne lets everybody change the same number of ConfigMaps, in turn.
func (s *stage) oneByOne(ctx context.Context, out io.Writer) error {
	if len(s.sizes) == 0 {
		return nil
	}
	t := table{title: "One Transaction", first: "changes", columns: []string{bare, together, kubectl, floor, commits, graphs, backs}}
	if s.peers {
		t.columns = append(t.columns, helm, flux)
	}
	if err := s.warmUp(ctx); err != nil {
		return err
	}
	for _, n := range s.sizes {
		namespace, err := s.namespace(ctx, n)
		if err != nil {
			return err
		}
		if s.peers { // What is measured is an upgrade.
			if err := s.helm(ctx, namespace, n, "installed"); err != nil {
				return err
			}
		}
		r := row{name: fmt.Sprint(n), times: map[string][]time.Duration{}}
		for round := range s.rounds {
			progress("%d changes, round %d of %d", n, round+1, s.rounds)
			for name, run := range s.contest(namespace, n, round) {
				perform := func(ctx context.Context) error { return r.measure(ctx, name, run) }
				if name == flux { // It says itself how long it took.
					perform = func(ctx context.Context) error { return s.measureFlux(ctx, &r, namespace, n, round, s.kubeconfig) }
				}
				if err := perform(ctx); err != nil {
					return fmt.Errorf("%s of %d changes: %w", name, n, err)
				}
			}
		}
		t.rows = append(t.rows, r)
	}
	t.write(out)
	if s.plot == "" {
		return nil
	}
	return os.WriteFile(s.plot, []byte(t.plot()), 0o600)
}

// warmUp has each perform once before that is measured: janusd reads the schemas of the
// cluster when it first needs them.
func (s *stage) warmUp(ctx context.Context) error {
	namespace, err := s.namespace(ctx, 1)
	if err != nil {
		return err
	}
	for name, run := range s.contest(namespace, 1, 0) {
		if err := run(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// contest returns who is to perform in a round, and how, in any order.
func (s *stage) contest(namespace string, n, round int) map[string]func(context.Context) error {
	value := func(who string) string { return fmt.Sprintf("%s-%d", strings.Fields(who)[0], round) }
	name := func(who string) string { return fmt.Sprintf("%s-%d-%d", who, n, round) }
	contest := map[string]func(context.Context) error{
		bare: func(ctx context.Context) error { return s.inTurn(ctx, namespace, n, value(bare)) },
		together: func(ctx context.Context) error {
			return s.sideBySide(ctx, namespace, 0, n, value("eight"), atOnceClients)
		},
		floor: func(ctx context.Context) error { return s.floor(ctx, namespace, n, value("floor")) },
		kubectl: func(ctx context.Context) error {
			_, err := s.cluster.Kubectl(ctx, all(n, value(kubectl)), "apply", "--server-side", "--force-conflicts", "-n", namespace, "-f", "-")
			return err
		},
		commits: func(ctx context.Context) error {
			return s.transact(ctx, namespace, api.PhaseCommitted, manifest(namespace, name(commits), 0, n, value(commits), ""))
		},
		graphs: func(ctx context.Context) error {
			text := manifest(namespace, name("graph"), 0, n, value("graph"), "")
			return s.transact(ctx, namespace, api.PhaseCommitted, strings.Replace(text, "  changes:\n", "  order: Graph\n  changes:\n", 1))
		},
		backs: func(ctx context.Context) error {
			return s.transact(ctx, namespace, api.PhaseRolledBack, manifest(namespace, name(backs), 0, max(n-1, 1), value(backs), refused))
		},
	}
	if s.peers {
		contest[helm] = func(ctx context.Context) error { return s.helm(ctx, namespace, n, value(helm)) }
		contest[flux] = func(ctx context.Context) error {
			_, err := s.flux(ctx, namespace, n, value("warm"), value(flux), s.kubeconfig)
			return err
		}
	}
	return contest
}

// each is of how many changes the Transactions are that run at once.
const each = 5

// atOnce runs many Transactions at once: each with targets of its own, and all with the
// same.
func (s *stage) atOnce(ctx context.Context, out io.Writer) error {
	const own, same = "commits, own targets", "commits, same targets"
	t := table{title: fmt.Sprintf("Concurrent Transactions of %d changes", each), first: "Transactions", columns: []string{together, own, same}}
	var asked []string // what the last Transactions with targets of their own have asked for
	var last string
	for _, many := range s.many {
		namespace, err := s.namespace(ctx, many*each)
		if err != nil {
			return err
		}
		r := row{name: fmt.Sprint(many), times: map[string][]time.Duration{}}
		for round := range s.rounds {
			progress("%d concurrent Transactions, round %d of %d", many, round+1, s.rounds)
			all := func(who string, apart bool) func(context.Context) error {
				var texts []string
				for n := range many {
					first := 0
					if apart {
						first = n * each
					}
					texts = append(texts, manifest(namespace, fmt.Sprintf("%s-%d-%d", who, round, n), first, first+each, fmt.Sprintf("%s-%d-%d", who, round, n), ""))
				}
				return func(ctx context.Context) error { return s.transact(ctx, namespace, api.PhaseCommitted, texts...) }
			}
			for name, run := range map[string]func(context.Context) error{
				together: func(ctx context.Context) error {
					return s.sideBySide(ctx, namespace, 0, many*each, fmt.Sprint("eight-", round), atOnceClients)
				},
				own:  all("own", true),
				same: all("same", false),
			} {
				before, err := s.requestsIn(namespace)
				if err != nil {
					return err
				}
				if err := r.measure(ctx, name, run); err != nil {
					return fmt.Errorf("%s of %d Transactions: %w", name, many, err)
				}
				after, err := s.requestsIn(namespace)
				if err != nil {
					return err
				}
				if made := after.since(before); name == own {
					last = fmt.Sprintf("Requests of %d Transactions with targets of their own, %.1f each: %s.", many, float64(made.sum())/float64(many), made)
				}
			}
		}
		t.rows, asked = append(t.rows, r), append(asked, last)
	}
	if len(t.rows) > 0 {
		t.write(out)
	}
	for _, text := range asked {
		_, _ = fmt.Fprintf(out, "\n%s\n", text)
	}
	return nil
}

// atRest watches a janusd that has nothing to do.
func (s *stage) atRest(ctx context.Context, out io.Writer) error {
	progress("measuring an idle janusd for %s, after as long a pause", s.idle)
	if err := sleep(ctx, s.idle); err != nil { // It checks whether anything is left.
		return err
	}
	was, err := s.janusd.used()
	if err != nil {
		return err
	}
	before, err := s.cluster.Audit()
	if err != nil {
		return err
	}
	if err := sleep(ctx, s.idle); err != nil {
		return err
	}
	is, err := s.janusd.used()
	if err != nil {
		return err
	}
	after, err := s.cluster.Audit()
	if err != nil {
		return err
	}
	asked := 0
	for _, e := range after[len(before):] {
		if strings.HasPrefix(e.UserAgent, "janusd") && e.Verb != "watch" {
			asked++
		}
	}
	_, err = fmt.Fprintf(out, "\n### Idle\n\nIn %s: %d requests, %.2f %% of a core.\n", s.idle, asked,
		100*float64(is.cpu-was.cpu)/float64(s.idle))
	return err
}
