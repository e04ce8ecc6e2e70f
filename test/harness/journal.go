package harness

import (
	"context"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
)

// Journaling is what a test does around the writes to Transactions. Before gets
// the Transaction as it is about to be written, After as it was stored, Refused as
// it was not. Any of them may be nil. A write of the finalizer counts as one too.
type Journaling struct {
	Before, After, Refused func(t *api.Transaction)
}

// Recording puts a test's acts around the writes of Janus' journal. One intent is open at
// a time, so that there is a write between any two changes.
func Recording(around Journaling) Option {
	return func(s *settings) {
		WithJournal(func(inner engine.Journal) engine.Journal { return &journaling{inner, around} })(s)
		s.stepwise = true
	}
}

// Stepwise has Janus open one intent at a time.
func Stepwise() Option { return func(s *settings) { s.stepwise = true } }

type journaling struct {
	engine.Journal
	around Journaling
}

type write func(context.Context, *api.Transaction) (*api.Transaction, error)

func (j *journaling) Checkpoint(ctx context.Context, t *api.Transaction) (*api.Transaction, error) {
	return j.write(ctx, t, j.Journal.Checkpoint)
}

func (j *journaling) AddFinalizer(ctx context.Context, t *api.Transaction) (*api.Transaction, error) {
	return j.write(ctx, t, j.Journal.AddFinalizer)
}

func (j *journaling) RemoveFinalizer(ctx context.Context, t *api.Transaction) (*api.Transaction, error) {
	return j.write(ctx, t, j.Journal.RemoveFinalizer)
}

func (j *journaling) write(ctx context.Context, t *api.Transaction, send write) (*api.Transaction, error) {
	if j.around.Before != nil {
		j.around.Before(t)
	}
	stored, err := send(ctx, t)
	switch {
	case err != nil && j.around.Refused != nil:
		j.around.Refused(t)
	case err == nil && j.around.After != nil:
		j.around.After(stored)
	}
	return stored, err
}

// Unwritten counts as a write that was refused if the Transaction has been written.
func (j *journaling) Unwritten(ctx context.Context, t *api.Transaction) error {
	err := j.Journal.Unwritten(ctx, t)
	if err != nil && j.around.Refused != nil {
		j.around.Refused(t)
	}
	return err
}
