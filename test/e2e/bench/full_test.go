package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

// fullCluster starts janusd in a cluster that has many Transactions which have ended. They
// are copies of one that janusd has run, status and all. At those that have ended within
// the last ten minutes it looks once more, so there are two measurements.
func (s *stage) fullCluster(ctx context.Context, out io.Writer) error {
	if s.stored == 0 {
		return nil
	}
	progress("creating %d finished Transactions", s.stored)
	namespace, err := s.namespace(ctx, each)
	if err != nil {
		return err
	}
	text := manifest(namespace, "first", 0, each, "stored", "")
	if err := s.transact(ctx, namespace, api.PhaseCommitted, text); err != nil {
		return err
	}
	s.janusd.stop()
	s.janusd = nil
	status, err := s.statusOf(ctx, namespace, "first")
	if err != nil {
		return err
	}
	if err := s.copies(ctx, func(ctx context.Context, n int) error { return s.copy(ctx, text, n, status, time.Hour) }); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "\n### %d finished Transactions of %d changes\n\n", s.stored, each); err != nil {
		return err
	}
	if err := s.startAmong(ctx, out, namespace, "an hour before"); err != nil {
		return err
	}
	s.janusd.stop()
	s.janusd = nil
	if err := s.copies(ctx, func(ctx context.Context, n int) error { return s.endedAgo(ctx, namespace, n, status, 0) }); err != nil {
		return err
	}
	return s.startAmong(ctx, out, namespace, "just before")
}

// startAmong starts janusd among Transactions that have ended.
func (s *stage) startAmong(ctx context.Context, out io.Writer, namespace, when string) error {
	progress("starting janusd; the finished Transactions ended %s", when)
	before, err := s.requestsIn(namespace)
	if err != nil {
		return err
	}
	if s.janusd, err = s.startJanusd(ctx); err != nil {
		return err
	}
	// What it does after it has said that it is ready counts too.
	last := strings.ReplaceAll("last "+when, " ", "-")
	if err := s.transact(ctx, namespace, api.PhaseCommitted, manifest(namespace, last, 0, each, last, "")); err != nil {
		return err
	}
	if err := s.calm(ctx); err != nil {
		return err
	}
	is, err := s.janusd.used()
	if err != nil {
		return err
	}
	after, err := s.requestsIn(namespace)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Ended %s: ready after %.1f s, peak memory %d MiB, CPU until idle %.1f s, %d requests in their namespace.\n",
		when, s.janusd.ready.Seconds(), is.peak>>20, is.cpu.Seconds(), after.since(before).sum())
	return err
}

// calm waits until janusd has used next to nothing of the CPU for a while. Some of what it
// looks at it looks at again later.
func (s *stage) calm(ctx context.Context) error {
	before, err := s.janusd.used()
	if err != nil {
		return err
	}
	// What it looks at twice it looks at again when requests of the dead have landed, after 20 s.
	return wait.PollUntilContextTimeout(ctx, max(s.idle, s.pause), time.Hour, false, func(context.Context) (bool, error) {
		is, err := s.janusd.used()
		idle := is.cpu-before.cpu <= max(s.idle, s.pause)/20
		before = is
		return idle, err
	})
}

// statusOf returns the status of a Transaction.
func (s *stage) statusOf(ctx context.Context, namespace, name string) (map[string]any, error) {
	txn, err := s.client.Dynamic.Resource(api.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	status, _ := txn.Object["status"].(map[string]any)
	return status, nil
}

// copies does something for each of the copies, some at once.
func (s *stage) copies(ctx context.Context, each func(ctx context.Context, n int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnceClients)
	for n := range s.stored {
		group.Go(func() error { return each(ctx, n) })
	}
	return group.Wait()
}

// copy makes a copy of a Transaction that ended a while ago.
func (s *stage) copy(ctx context.Context, text string, n int, status map[string]any, ago time.Duration) error {
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		return err
	}
	obj.SetName(fmt.Sprint("copy-", n))
	if _, err := s.client.Dynamic.Resource(api.Resource).Namespace(obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{}); err != nil {
		return err
	}
	return s.endedAgo(ctx, obj.GetNamespace(), n, status, ago)
}

// endedAgo gives a copy the status of the Transaction that it is a copy of, but that it ended
// a while ago.
func (s *stage) endedAgo(ctx context.Context, namespace string, n int, status map[string]any, ago time.Duration) error {
	own := maps.Clone(status)
	for _, field := range []string{"startTime", "completionTime"} {
		own[field] = time.Now().Add(-ago).UTC().Format(time.RFC3339)
	}
	if own["rollbackRef"] != nil { // It is not remembered, so what it names is gone.
		image := fmt.Sprint("copy-", n, "-rollback")
		own["rollbackRef"] = map[string]any{"name": image, "objects": []any{"ConfigMap/" + image}}
	}
	patch, err := json.Marshal(map[string]any{"status": own})
	if err != nil {
		return err
	}
	_, err = s.client.Dynamic.Resource(api.Resource).Namespace(namespace).Patch(ctx, fmt.Sprint("copy-", n), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
