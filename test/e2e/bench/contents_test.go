package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
)

// paddings are how many bytes each change sets beside its version: next to none, and as many as
// leave room for 1000 changes in one Transaction.
var paddings = []int{5, 450}

// held is what was measured of Transactions with their contents in one place.
type held struct {
	whole, writes []time.Duration // of each round: from creation to end, and the writes of the Transaction itself
	count, bytes  int             // of these writes, and how large the Transaction is at its end; of the last round
	cpu           time.Duration
	sent          int64
}

// contents compares Transactions that hold the contents of their changes with Transactions whose
// contents are in a ConfigMap. That is made before, and not counted.
func (s *stage) contents(ctx context.Context, out io.Writer) error {
	t := table{
		title: "Contents in the Transaction, and in a ConfigMap", first: "changes, bytes each, contents",
		columns: []string{"commit", "its own writes", "take", "Transaction KiB", "sent KiB", "CPU ms"},
	}
	for _, n := range s.held {
		for _, padding := range paddings {
			namespace, err := s.namespace(ctx, n)
			if err != nil {
				return err
			}
			places := [2]*held{{}, {}}
			for round := range s.rounds {
				progress("contents of %d changes, round %d of %d", n, round+1, s.rounds)
				for which := range places {
					which = (which + round) % len(places) // in turn
					if err := s.hold(ctx, places[which], which == 1, namespace, n, padding, round); err != nil {
						return fmt.Errorf("%d contents of %d bytes: %w", n, padding, err)
					}
				}
			}
			size := len(contentOf(0, padding, ""))
			t.rows = append(t.rows,
				row{name: fmt.Sprintf("%d, %d, in the Transaction", n, size), texts: places[0].texts(places[0])},
				row{name: fmt.Sprintf("%d, %d, in a ConfigMap", n, size), texts: places[1].texts(places[0])})
		}
	}
	if len(t.rows) > 0 {
		t.write(out)
	}
	return nil
}

// contentOf is the content of a change.
func contentOf(i, padding int, value string) string {
	return fmt.Sprintf(`{"data": {"version": "%s-%d", "text": "%s"}}`, value, i, strings.Repeat("x", padding))
}

// hold runs one Transaction.
func (s *stage) hold(ctx context.Context, h *held, apart bool, namespace string, n, padding, round int) error {
	name := fmt.Sprintf("contents-%d-%t", round, apart)
	var spec strings.Builder
	data := map[string]string{}
	for i := range n {
		content, key := contentOf(i, padding, name), fmt.Sprint(i)
		where := "content: " + content
		if apart {
			data[key], where = content, fmt.Sprintf("contentFrom: {configMapKeyRef: {name: %s, key: %q}}", name, key)
		}
		fmt.Fprintf(&spec, "  - {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: c-%d}, %s}\n", i, where)
	}
	if apart {
		source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		if _, err := s.client.Kube.CoreV1().ConfigMaps(namespace).Create(ctx, source, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	was, err := s.janusd.used()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.transact(ctx, namespace, api.PhaseCommitted, manifest(namespace, name, 0, 0, "", spec.String())); err != nil {
		return err
	}
	h.whole = append(h.whole, time.Since(began))
	is, err := s.janusd.used()
	if err != nil {
		return err
	}
	h.cpu, h.sent = is.cpu-was.cpu, is.written-was.written
	stored, err := s.client.Dynamic.Resource(api.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	stored.SetManagedFields(nil)
	encoded, err := json.Marshal(stored.Object)
	if err != nil {
		return err
	}
	h.bytes = len(encoded)
	return s.ownWrites(h, namespace, name)
}

// ownWrites adds how long the API server took for the writes of a Transaction by janusd.
func (s *stage) ownWrites(h *held, namespace, name string) error {
	events, err := s.cluster.Audit()
	if err != nil {
		return err
	}
	h.count = 0
	var took time.Duration
	for _, e := range events {
		if e.Resource == "transactions" && e.Namespace == namespace && e.Name == name && strings.HasPrefix(e.UserAgent, "janusd") && (e.Verb == "update" || e.Verb == "patch") {
			h.count++
			took += e.Completed.Sub(e.Received)
		}
	}
	h.writes = append(h.writes, took)
	return nil
}

// texts are the cells of a row: times with their ratio to those of another.
func (h *held) texts(base *held) []string {
	ratio := func(own, other []time.Duration) string {
		text := fmt.Sprintf("%.1f ms", float64(median(own))/float64(time.Millisecond))
		if h == base {
			return text
		}
		return fmt.Sprintf("**%.2f** (%s)", float64(median(own))/float64(median(other)), text)
	}
	return []string{
		ratio(h.whole, base.whole), fmt.Sprint(h.count), ratio(h.writes, base.writes),
		fmt.Sprint(h.bytes >> 10), fmt.Sprint(h.sent >> 10), fmt.Sprint(h.cpu.Milliseconds()),
	}
}
