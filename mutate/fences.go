package mutate

import "context"

// Fences keep requests that come late from doing harm, where nothing in the target would
// refuse them. They are empty where nothing is written for good.
type Fences struct {
	// Confirm makes sure that nobody else works on the Transaction by now, if this may
	// come late, or anyway. It is asked before a write that nothing in the target would
	// refuse for being late: the object may be as it was because another process has
	// made the change and rolled it back. Its error is passed on as it is.
	Confirm func(ctx context.Context, anyway bool) error
	// MayCreate makes sure that no creation of the target sent before is still under way.
	// It is asked before the target is created, and its error is passed on as it is.
	MayCreate func() error
	// Restored is told that all values of the target are restored, before their owners are.
	Restored func()
	// Fresh is set when no request for the change, or for its compensation where it is
	// that, that was sent before can have taken effect.
	Fresh bool
}

// confirm asks whether a write may still be made.
func (f Fences) confirm(ctx context.Context, anyway bool) error {
	if f.Confirm == nil {
		return nil
	}
	if err := f.Confirm(ctx, anyway); err != nil {
		return &lateError{err}
	}
	return nil
}

// restored tells that the values are restored.
func (f Fences) restored() {
	if f.Restored != nil {
		f.Restored()
	}
}

// lateError says that another process works on the Transaction by now, or that the time for
// a write has not come. That is no reason to look at the object again.
type lateError struct{ error }

func (e *lateError) Unwrap() error { return e.error }

// mayCreate asks whether the target may be created now.
func (f Fences) mayCreate(ctx context.Context) error {
	if f.MayCreate != nil {
		if err := f.MayCreate(); err != nil {
			return &lateError{err}
		}
	}
	return f.confirm(ctx, false)
}
