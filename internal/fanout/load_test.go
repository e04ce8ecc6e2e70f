package fanout

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNoMoreThanTheLoadIsHeld(t *testing.T) {
	load := NewLoad(100)
	var held, peak atomic.Int64
	Do(8, 200, func(i int) {
		bytes := int64(i % 60)
		put, err := load.Take(t.Context(), bytes)
		if err != nil {
			t.Error(err)
			return
		}
		for now := held.Add(bytes); ; {
			most := peak.Load()
			if now <= most || peak.CompareAndSwap(most, now) {
				break
			}
		}
		held.Add(-bytes)
		put()
	})
	assert.LessOrEqual(t, peak.Load(), int64(100))
}

func TestWhatIsLargerThanTheLoadIsTakenAlone(t *testing.T) {
	load := NewLoad(100)
	put, err := load.Take(t.Context(), 1000)
	require.NoError(t, err)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = load.Take(done, 1)
	require.ErrorIs(t, err, context.Canceled)
	put()
	put, err = load.Take(t.Context(), 100)
	require.NoError(t, err)
	put()
}

func TestNoLoadBoundsNothing(t *testing.T) {
	put, err := (*Load)(nil).Take(t.Context(), 1<<40)
	require.NoError(t, err)
	put()
}
