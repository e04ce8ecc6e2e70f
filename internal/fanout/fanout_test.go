package fanout

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAllIsDoneAndNoMoreAtOnceThanTheLimit(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 100} {
		synctest.Test(t, func(t *testing.T) {
			var now, most, sum atomic.Int64
			Do(3, n, func(i int) {
				if at := now.Add(1); at > most.Load() {
					most.Store(at)
				}
				time.Sleep(time.Second)
				now.Add(-1)
				sum.Add(int64(i) + 1)
			})
			assert.EqualValues(t, n*(n+1)/2, sum.Load())
			assert.EqualValues(t, min(n, 3), most.Load())
		})
	}
}

func TestAPanicIsTheCallers(t *testing.T) {
	var done atomic.Int64
	defer func() {
		p := recover()
		assert.Contains(t, p, "a defect")
		assert.Contains(t, p, "fanout_test.go", "it tells where that was")
		assert.EqualValues(t, 4, done.Load(), "the others are finished first")
	}()
	Do(2, 5, func(i int) {
		if i == 1 {
			panic("a defect")
		}
		done.Add(1)
	})
}

func TestAPanicOfTheOnlyPieceOfWorkIsPassedOnAsItIs(t *testing.T) {
	type defect struct{}
	assert.PanicsWithValue(t, defect{}, func() { Do(1, 1, func(int) { panic(defect{}) }) })
}
