package wiring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// Transactions that commit at the same time get one number after the other, although none
// of them is in use yet. What is in use counts all the same: others give numbers too.
func TestANumberIsAboveThoseThatWereJustGiven(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	h := &History{clock: clock, given: map[types.UID]number{}}
	assert.EqualValues(t, 8, h.give("a", "shop", 7))
	assert.EqualValues(t, 9, h.give("b", "shop", 7))
	assert.EqualValues(t, 9, h.give("b", "shop", 7), "its own number, if it asks again")
	assert.EqualValues(t, 1, h.give("c", "bank", 0), "that is another namespace")
	assert.EqualValues(t, 31, h.give("b", "shop", 30), "another process has given more")
	assert.EqualValues(t, 32, h.give("d", "shop", 7), "that of b will be in use soon")
	h.used("b")
	h.used("d")
	assert.EqualValues(t, 9, h.give("e", "shop", 7), "b and d are deleted, and a has yet to use its number")

	clock.SetTime(clock.Now().Add(givenLife + time.Second))
	assert.EqualValues(t, 3, h.give("f", "shop", 2), "what was not used by now is not waited for")
	clock.SetTime(time.Unix(0, 0))
	assert.EqualValues(t, 2, h.give("g", "shop", 1), "the clock was turned back")
	assert.Len(t, h.given, 1)
}
