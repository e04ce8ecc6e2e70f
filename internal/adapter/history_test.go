package adapter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	clocktesting "k8s.io/utils/clock/testing"
)

// Transactions that commit at the same time get one number after the other, although none
// of them is in use yet. What is in use counts all the same: others give numbers too.
func TestANumberIsAboveThoseThatWereJustGiven(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	h := &History{clock: clock, given: map[string]number{}}
	for want := int64(8); want < 11; want++ {
		assert.Equal(t, want, h.above("shop", 7))
	}
	assert.EqualValues(t, 1, h.above("bank", 0), "that is another namespace")
	assert.EqualValues(t, 11, h.above("shop", 3), "those that were given are in use soon")
	assert.EqualValues(t, 31, h.above("shop", 30), "another process has given more")

	clock.SetTime(clock.Now().Add(givenLife + time.Second))
	assert.EqualValues(t, 3, h.above("shop", 2), "all of them were deleted")
	clock.SetTime(time.Unix(0, 0))
	assert.EqualValues(t, 2, h.above("shop", 1), "the clock was turned back")
}
