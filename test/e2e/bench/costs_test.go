package bench

import (
	"context"
	"fmt"
	"io"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

// costs measures what one commit takes of janusd and of the API server: time of the CPU, which
// other work on the machine hardly changes, and bytes.
func (s *stage) costs(ctx context.Context, out io.Writer) error {
	if len(s.costly) == 0 {
		return nil
	}
	t := table{title: "Cost of one commit", first: "changes", columns: []string{
		"requests", "writes", "CPU of janusd", "CPU of the API server", "sent KiB", "received KiB", "peak MiB",
	}}
	if err := s.warmUp(ctx); err != nil {
		return err
	}
	var last requests
	for _, n := range s.costly {
		namespace, err := s.namespace(ctx, n)
		if err != nil {
			return err
		}
		var c cost
		for round := range s.rounds + 1 { // In the first, the API server compiles the rules, and memory grows.
			progress("the cost of %d changes, round %d of %d", n, round, s.rounds)
			if round == 1 {
				c = cost{}
			}
			name := fmt.Sprintf("cost-%d-%d", n, round)
			if err := s.charge(ctx, &c, namespace, manifest(namespace, name, 0, n, name, "")); err != nil {
				return fmt.Errorf("%d changes: %w", n, err)
			}
			progress("janusd %s, API server %s", inMilliseconds(c.own[len(c.own)-1]), inMilliseconds(c.server[len(c.server)-1]))
		}
		last = c.asked
		t.rows = append(t.rows, row{name: fmt.Sprint(n), texts: c.texts()})
	}
	t.write(out)
	_, err := fmt.Fprintf(out, "\nRequests of the last commit: %s.\n", last)
	return err
}

// cost is what commits of one size took.
type cost struct {
	own, server []time.Duration // of the CPU
	last        usage           // of janusd, by the last of them
	asked       requests        // by the last of them
}

func (c *cost) texts() []string {
	return []string{
		fmt.Sprint(c.asked.sum()), fmt.Sprint(c.asked.writes()), inMilliseconds(median(c.own)), inMilliseconds(median(c.server)),
		fmt.Sprint(c.last.written >> 10), fmt.Sprint(c.last.read >> 10), fmt.Sprint(c.last.peak >> 20),
	}
}

// charge runs a Transaction, and notes what it took.
func (s *stage) charge(ctx context.Context, c *cost, namespace, text string) error {
	pid, err := s.cluster.PID(testcluster.APIServer)
	if err != nil {
		return err
	}
	before, err := s.requestsIn(namespace)
	if err != nil {
		return err
	}
	if err := s.janusd.resetPeak(); err != nil {
		return err
	}
	was, err := s.janusd.used()
	if err != nil {
		return err
	}
	then, err := process(pid).used()
	if err != nil {
		return err
	}
	if err := s.transact(ctx, namespace, api.PhaseCommitted, text); err != nil {
		return err
	}
	now, err := process(pid).used()
	if err != nil {
		return err
	}
	is, err := s.janusd.used()
	if err != nil {
		return err
	}
	after, err := s.requestsIn(namespace)
	c.asked = after.since(before)
	c.own, c.server = append(c.own, is.cpu-was.cpu), append(c.server, now.cpu-then.cpu)
	c.last = usage{written: is.written - was.written, read: is.read - was.read, peak: is.peak}
	return err
}
