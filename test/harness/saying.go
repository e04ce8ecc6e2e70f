package harness

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/test/testcluster"
)

// Until waits until something is so.
func (e *Env) Until(what string, so func() bool) {
	e.t.Helper()
	err := Poll(e.t.Context(), func(context.Context) (bool, error) { return so(), nil })
	require.NoError(e.t, err, "it never was so that %s", what)
}

// ApplyQuota applies ResourceQuotas and waits until they count.
func (e *Env) ApplyQuota(stream string) {
	e.t.Helper()
	e.Apply(stream)
	quotas, err := Decode(stream)
	require.NoError(e.t, err)
	for _, q := range quotas {
		e.Until("quota "+q.GetName()+" counts", func() bool {
			hard, ok, err := unstructured.NestedMap(e.Object("ResourceQuota/"+q.GetName()).Object, "status", "used")
			return err == nil && ok && len(hard) > 0
		})
	}
}

// Events returns the events about a Transaction, in the order of their creation.
func (e *Env) Events(transaction string) []eventsv1.Event {
	e.t.Helper()
	list, err := e.Kube.EventsV1().Events(e.Namespace).List(e.t.Context(), metav1.ListOptions{})
	require.NoError(e.t, err)
	var out []eventsv1.Event
	for _, event := range list.Items {
		if event.Regarding.Kind == "Transaction" && event.Regarding.Name == transaction {
			out = append(out, event)
		}
	}
	return out
}

// AwaitEvent waits for an event with a reason about a Transaction.
func (e *Env) AwaitEvent(transaction, reason string) eventsv1.Event {
	e.t.Helper()
	var found eventsv1.Event
	e.Until("Transaction "+transaction+" has an event "+reason, func() bool {
		for _, event := range e.Events(transaction) {
			if event.Reason == reason {
				found = event
				return true
			}
		}
		return false
	})
	return found
}

// Audit returns what the API server has logged of Janus' requests, and of those of
// the ServiceAccounts that it acts as, in all namespaces of these tests.
func (e *Env) Audit() []testcluster.AuditEvent {
	e.t.Helper()
	events, err := e.cluster.Audit(UserAgent)
	require.NoError(e.t, err)
	return testcluster.Filter(events, func(r testcluster.AuditEvent) bool { return r.UserAgent == UserAgent })
}

// SideBySide is how many rows of a table run at once.
const SideBySide = 4

// Together runs a subtest for each name, so many at once whatever -parallel says:
// they wait more than they work.
func Together(t *testing.T, limit int, names []string, run func(t *testing.T, i int)) {
	t.Helper()
	var all sync.WaitGroup
	slots := make(chan struct{}, limit)
	for i, name := range names {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			t.Run(name, func(t *testing.T) { run(t, i) })
		})
	}
	all.Wait()
}
