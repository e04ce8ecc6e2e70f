package adapter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	clocktesting "k8s.io/utils/clock/testing"
)

// Transactions that commit at the same time get one number after the other. It is not gone
// on from for long: others give numbers too.
func TestTheNumberThatWasGivenLastIsGoneOnFromForAWhile(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	h := &History{clock: clock, given: map[string]number{}}
	_, known := h.next("shop")
	assert.False(t, known, "the numbers in use are looked at")
	assert.EqualValues(t, 8, h.above("shop", 7))
	for want := int64(9); want < 12; want++ {
		got, known := h.next("shop")
		assert.True(t, known)
		assert.Equal(t, want, got)
	}
	_, known = h.next("bank")
	assert.False(t, known, "that is another namespace")
	assert.EqualValues(t, 12, h.above("shop", 3), "never one that was given")
	assert.EqualValues(t, 31, h.above("shop", 30), "another process has given more")

	clock.SetTime(clock.Now().Add(givenLife + time.Second))
	_, known = h.next("shop")
	assert.False(t, known)
	assert.EqualValues(t, 3, h.above("shop", 2), "all of them were deleted")
	clock.SetTime(time.Unix(0, 0))
	_, known = h.next("shop")
	assert.False(t, known, "the clock was turned back")
}
