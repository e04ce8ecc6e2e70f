package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// A Transaction is looked at again when it has not been for the whole time, whatever happened to
// others.
func TestAResyncCountsFromTheLastLookAtATransaction(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	r := newResync(time.Hour, clock)
	var known []*summary
	for _, name := range []string{"a", "b"} {
		known = append(known, &summary{name: types.NamespacedName{Namespace: "shop", Name: name}})
	}
	a, b := known[0].name, known[1].name
	due := func(after time.Duration) (names []string) {
		clock.Step(after)
		for _, g := range r.due(known) {
			names = append(names, g.name.Name)
		}
		return names
	}
	assert.Empty(t, due(59*time.Minute), "from the beginning, if it never was")
	r.looked(a)
	assert.Equal(t, []string{"b"}, due(time.Minute))
	assert.Empty(t, due(0), "once")
	r.looked(b)
	assert.Empty(t, due(58*time.Minute))
	r.looked(b)
	assert.Equal(t, []string{"a"}, due(time.Minute))
	assert.Empty(t, due(58*time.Minute))
	assert.Equal(t, []string{"b"}, due(time.Minute))
	assert.Equal(t, []string{"a", "b"}, due(-24*time.Hour), "the clock was turned back")

	known = known[:1]
	due(0)
	assert.Len(t, r.seen, 1, "nothing is kept of one that is gone")
}

func TestNothingIsNotedWithoutAResync(t *testing.T) {
	t.Parallel()
	r := newResync(0, clocktesting.NewFakeClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)))
	r.looked(types.NamespacedName{Namespace: "shop", Name: "a"})
	assert.Empty(t, r.seen)
}

func TestWhatIsDueIsFoundOutInTime(t *testing.T) {
	t.Parallel()
	for every, period := range map[time.Duration]time.Duration{
		10 * time.Hour: time.Minute, time.Minute: 6 * time.Second, time.Millisecond: 10 * time.Millisecond,
	} {
		assert.Equal(t, period, newResync(every, clocktesting.NewFakeClock(time.Time{})).period())
	}
}
