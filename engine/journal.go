package engine

import "errors"

// journalError marks an error of a write to the Transaction itself: what this
// run knows may be stale, so nothing more is written in this run.
type journalError struct{ error }

func (e *journalError) Unwrap() error { return e.error }

// isJournal reports an error of a write to the Transaction itself.
func isJournal(err error) bool {
	var journal *journalError
	return errors.As(err, &journal)
}
