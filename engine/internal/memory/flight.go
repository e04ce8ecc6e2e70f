package memory

import (
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// One checkpoint records several intents, and a later one what has come of all of them:
// a write of the status costs more the larger the Transaction is. In between this process
// has in flight what is not on record. If it dies, the intents are on record, and anyone who
// goes on looks at their targets.

// Flight is what this process has in flight. It holds as long as nobody else has written the
// status. It is not safe for use by several goroutines.
type Flight struct {
	// Known is what is known of the open intents.
	Known plan.Known
	// answers are those to changes that are over, by item.
	answers map[int]*Answer
	// soFar is the Transaction with what is over; nil if something has changed since.
	soFar *api.Transaction
}

// Answer is what is to be recorded of a change that is in effect.
type Answer struct {
	Made      types.UID // the object that it has made
	Unchanged bool      // nothing was written
	Warnings  []string
}

// NewFlight returns that of a process that knows nothing.
func NewFlight() *Flight {
	return &Flight{Known: plan.Known{}, answers: map[int]*Answer{}}
}

// Happened notes an event of item i.
func (f *Flight) Happened(i int, e plan.Event) {
	f.Known[i] = f.Known[i].After(e)
	if e == plan.Ended {
		f.soFar = nil
	}
}

// Answer is the answer to the change of item i, to be filled in.
func (f *Flight) Answer(i int) *Answer {
	if f.answers[i] == nil {
		f.answers[i] = &Answer{}
	}
	return f.answers[i]
}

// Recorded notes what a checkpoint has recorded, and returns the items whose intents are new.
func (f *Flight) Recorded(before, after []api.Item) (intents []int) {
	for i := range min(len(before), len(after)) {
		state := after[i].State
		if state != api.ItemCommitting && state != api.ItemRollingBack || plan.Restoring(&after[i]) {
			f.drop(i)
		} else if before[i].State != state {
			f.drop(i)
			f.Happened(i, plan.Recorded)
			intents = append(intents, i)
		}
	}
	f.soFar = nil
	return intents
}

func (f *Flight) drop(i int) {
	delete(f.Known, i)
	delete(f.answers, i)
}

// SoFar returns the Transaction with what is over, which make makes if something has changed
// since it was made last.
func (f *Flight) SoFar(with func() (*api.Transaction, error)) (*api.Transaction, error) {
	if f.soFar == nil {
		t, err := with()
		if err != nil {
			return nil, err
		}
		f.soFar = t
	}
	return f.soFar, nil
}

// MayLand reports whether a request for item i may be under way, as far as this process
// knows, and none of its own.
func (f *Flight) MayLand(item *api.Item, i int) bool {
	open := item.State == api.ItemCommitting || item.State == api.ItemRollingBack && !plan.Restoring(item)
	return open && !f.Known[i].NoEffect() && f.Known[i] != plan.Over
}

// Withdraw takes the intents for which nothing was sent off a status: items that are open
// become closed again.
func (f *Flight) Withdraw(status *api.TransactionStatus, open, closed api.ItemState) error {
	for i, known := range f.Known {
		if known == plan.Unsent && i < len(status.Items) && status.Items[i].State == open {
			if err := plan.MoveItem(&status.Items[i], closed); err != nil {
				return err
			}
		}
	}
	return nil
}
