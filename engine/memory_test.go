package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A process that starts looks once at what ended a short while ago: one that has died
// since may have been late with it.
func TestWhatEndedLatelyIsClearedUpOnceByEachProcess(t *testing.T) {
	w := newWorld(t, "a")
	w.run()
	looks := func() int { return strings.Count(strings.Join(w.lines, "\n"), "release the locks") }
	assert.Equal(t, 1, looks(), "the process that ended it knows that nothing is left")
	w.run()
	assert.Equal(t, 1, looks())
	w.restart()
	w.run()
	w.run()
	assert.Equal(t, 2, looks(), "the next one looks once")
	w.clock.Step(aftermath)
	w.restart()
	w.run()
	assert.Equal(t, 2, looks(), "it is long over")
	now := metav1.NewTime(w.clock.Now())
	w.stored.DeletionTimestamp = &now
	w.run()
	assert.Equal(t, 3, looks(), "whatever is left would keep it from going")
}

func TestWhatIsKnownToBeClearedUpIsForgotten(t *testing.T) {
	k := clearedUp{since: map[types.UID]time.Time{}}
	now := start
	for n := range 10_000 {
		now = now.Add(time.Minute)
		k.add(types.UID(string(rune('a'+n%26))+now.String()), now)
	}
	assert.Less(t, len(k.since), 200)
}
