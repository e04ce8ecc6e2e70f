package wiring

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bench is work that a test lets end, and what it has seen of that.
type bench struct {
	*coalescer
	t     *testing.T
	begun []string          // the rounds, by namespace and limit
	done  chan func() error // ends the one that is under way
	busy  map[string]*atomic.Int32
	ctx   context.Context //nolint:containedctx // of the last round, to see whether it ends
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, done: make(chan func() error), busy: map[string]*atomic.Int32{"shop": {}, "bank": {}}}
	b.coalescer = newCoalescer(func(ctx context.Context, namespace string, limit int) error {
		assert.EqualValues(t, 1, b.busy[namespace].Add(1), "rounds of one namespace at once")
		defer b.busy[namespace].Add(-1)
		b.mu.Lock()
		b.begun, b.ctx = append(b.begun, fmt.Sprintf("%s to %d", namespace, limit)), ctx
		b.mu.Unlock()
		return (<-b.done)()
	})
	return b
}

// call is a caller of share, and what came of it.
type call struct {
	over     bool
	err      error
	panicked any
}

// come has a caller come, and waits until everybody waits.
func (b *bench) come(ctx context.Context, namespace string, limit int) *call {
	c := &call{}
	go func() {
		defer func() { c.over, c.panicked = true, recover() }()
		c.err = b.share(ctx, namespace, limit)
	}()
	synctest.Wait()
	return c
}

// end ends the round that is under way, and waits for what follows.
func (b *bench) end(how func() error) {
	b.done <- how
	synctest.Wait()
}

func well() error { return nil }

func (b *bench) nothingLeft() { assert.Empty(b.t, b.last, "of a namespace in which nobody waits") }

func TestWhoComesLateSharesTheNextRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.come(t.Context(), "shop", 5)
		assert.Equal(t, []string{"shop to 5"}, b.begun)
		late := []*call{b.come(t.Context(), "shop", 7), b.come(t.Context(), "shop", 3), b.come(t.Context(), "shop", 10)}
		assert.Len(t, b.begun, 1)

		b.end(well)
		assert.True(t, first.over)
		assert.Equal(t, []string{"shop to 5", "shop to 3"}, b.begun, "the smallest limit of the three")
		for _, c := range late {
			assert.False(t, c.over, "what was under way may have looked before it came")
		}
		latest := b.come(t.Context(), "shop", 9)
		b.end(well)
		for _, c := range late {
			assert.True(t, c.over)
			require.NoError(t, c.err)
		}
		assert.Equal(t, []string{"shop to 5", "shop to 3", "shop to 9"}, b.begun)
		assert.False(t, latest.over)
		b.end(well)
		assert.True(t, latest.over)
		b.nothingLeft()
	})
}

// Otherwise it would hang on the order in which goroutines are run who shares it.
func TestARoundBeginsAtOnceIfNoneIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		assert.NotSame(t, b.join(t.Context(), "shop", 5), b.join(t.Context(), "shop", 3))
		synctest.Wait()
		assert.Equal(t, []string{"shop to 5"}, b.begun)
		b.end(well)
		b.end(well)
		b.nothingLeft()
	})
}

func TestNamespacesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.come(t.Context(), "shop", 5)
		b.come(t.Context(), "bank", 4)
		assert.Equal(t, []string{"shop to 5", "bank to 4"}, b.begun)
		b.end(well)
		b.end(well)
		b.nothingLeft()
	})
}

func TestWhoSharesARoundSharesItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.come(t.Context(), "shop", 5)
		second, third := b.come(t.Context(), "shop", 5), b.come(t.Context(), "shop", 5)
		b.end(well)
		wrong := errors.New("wrong")
		b.end(func() error { return wrong })
		require.NoError(t, first.err)
		require.ErrorIs(t, second.err, wrong)
		require.ErrorIs(t, third.err, wrong)
		b.nothingLeft()
	})
}

func TestWhoLeavesDoesNotEndTheRoundOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.come(t.Context(), "shop", 5)
		hasty, leave := context.WithCancel(t.Context())
		second := b.come(hasty, "shop", 5) // Its context is that of whom the round was made for.
		third := b.come(t.Context(), "shop", 5)
		b.end(well)
		leave()
		synctest.Wait()
		require.NoError(t, first.err)
		assert.True(t, second.over)
		require.ErrorIs(t, second.err, context.Canceled)
		require.NoError(t, b.ctx.Err())
		b.end(well)
		assert.True(t, third.over)
		require.NoError(t, third.err)
		b.nothingLeft()
	})
}

func TestARoundEndsThatNobodyWaitsForAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		hasty, leave := context.WithCancel(t.Context())
		under, waits := b.come(hasty, "shop", 5), b.come(hasty, "shop", 4)
		leave()
		synctest.Wait()
		assert.True(t, under.over && waits.over)
		require.ErrorIs(t, b.ctx.Err(), context.Canceled)

		// It takes a while to end. Until then nothing begins, and nobody joins what was given up.
		next := b.come(t.Context(), "shop", 3)
		assert.Equal(t, []string{"shop to 5"}, b.begun)
		b.end(b.ctx.Err)
		assert.Equal(t, []string{"shop to 5", "shop to 3"}, b.begun)
		b.end(well)
		assert.True(t, next.over)
		require.NoError(t, next.err)
		b.nothingLeft()
	})
}

func TestAPanicIsThatOfAllWhoShareTheRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.come(t.Context(), "shop", 5)
		second, third := b.come(t.Context(), "shop", 5), b.come(t.Context(), "shop", 5)
		b.end(well)
		b.end(func() error { panic("a defect") })
		require.NoError(t, first.err)
		for _, c := range []*call{second, third} {
			assert.True(t, c.over)
			assert.Contains(t, c.panicked, "a defect")
			assert.Contains(t, c.panicked, "coalesce_test.go", "it tells where that was")
		}
		b.nothingLeft()

		gone, next := b.come(t.Context(), "shop", 5), b.come(t.Context(), "shop", 5)
		b.end(func() error { runtime.Goexit(); return nil })
		require.ErrorIs(t, gone.err, errBrokenOff)
		b.end(well)
		assert.True(t, next.over)
		require.NoError(t, next.err)
		b.nothingLeft()
	})
}
