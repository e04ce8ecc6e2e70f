package plan

import (
	"fmt"
	"testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/internal/fixture"
)

// many is a Transaction of n changes half-way, with a hundred open intents of which half are
// over.
func many(n int, spec func(*api.TransactionSpec)) (*api.Transaction, InFlight) {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("change-", i)
	}
	t := fixture.Transaction(names...)
	for i := range t.Spec.Changes {
		t.Spec.Changes[i].Target.Name = names[i]
	}
	spec(&t.Spec)
	t.Finalizers = []string{api.Finalizer}
	t.Status = api.TransactionStatus{Phase: api.PhaseCommitting, ObservedGeneration: 1}
	flight := InFlight{Known: Known{}}
	for i, c := range t.Spec.Changes {
		item := api.Item{Name: c.Name, Target: c.Target, Before: &api.BeforeImage{Key: c.Name, Digest: "d", UID: "u", ResourceVersion: "1"}}
		state := api.ItemPrepared
		switch {
		case i < n/2:
			state = api.ItemCommitted
		case i < n/2+50:
			state, flight.Known[i] = api.ItemCommitting, Over
		case i < n/2+100:
			state, flight.Known[i] = api.ItemCommitting, Unsent
		}
		SetItemState(&item, state)
		t.Status.Items = append(t.Status.Items, item)
	}
	return t, flight
}

var orders = map[string]func(*api.TransactionSpec){
	"list":  func(*api.TransactionSpec) {},
	"graph": func(s *api.TransactionSpec) { s.Order = api.OrderGraph },
}

// What one step of a Transaction is decided by.
func BenchmarkDecide(b *testing.B) {
	for order, spec := range orders {
		for _, n := range []int{200, 1000} {
			b.Run(fmt.Sprintf("%s of %d", order, n), func(b *testing.B) {
				t, flight := many(n, spec)
				b.ReportAllocs()
				for b.Loop() {
					if a := Decide(t, flight, fixture.Start, DefaultPolicy); a.Verb != Do {
						b.Fatal(a)
					}
				}
			})
		}
	}
}

// What a checkpoint costs before it is sent.
func BenchmarkSettle(b *testing.B) {
	t, flight := many(1000, orders["list"])
	b.ReportAllocs()
	for b.Loop() {
		next := t.DeepCopy()
		for i, known := range flight.Known {
			if known != Over {
				continue
			}
			if err := MoveItem(&next.Status.Items[i], api.ItemCommitted); err != nil {
				b.Fatal(err)
			}
		}
		for _, i := range ScheduleOf(next).Window(next, DefaultWindow) {
			if err := MoveItem(&next.Status.Items[i], api.ItemCommitting); err != nil {
				b.Fatal(err)
			}
		}
		Summarize(next, fixture.Start)
	}
}
