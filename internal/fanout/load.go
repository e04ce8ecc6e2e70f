package fanout

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// Load bounds how many bytes those who work side by side hold together. Anyone who takes more waits
// for the others, and should hold nothing meanwhile.
type Load struct {
	most  int64
	bytes *semaphore.Weighted
}

// NewLoad makes one that lets most bytes be held. What is larger by itself is worked on alone.
func NewLoad(most int64) *Load { return &Load{most, semaphore.NewWeighted(most)} }

// Take waits until so many bytes may be held, and returns what gives them back. A nil Load
// bounds nothing.
func (l *Load) Take(ctx context.Context, bytes int64) (put func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	n := min(max(bytes, 0), l.most)
	if err := l.bytes.Acquire(ctx, n); err != nil {
		return nil, fmt.Errorf("wait for others that work beside it: %w", err)
	}
	return func() { l.bytes.Release(n) }, nil
}
