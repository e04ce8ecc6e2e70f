package processes

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/test/testcluster"
)

// janusd hangs at any moment for longer than its locks last. Another takes over, and
// for a while both work on the same Transactions, without leader election: what the
// one that wakes up late still has in mind must do no harm. Then one of them dies,
// often before it can clear up after itself.
func TestAJanusdThatWakesUpLateDoesNoHarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testcluster.Shared(t))
	w.begin("1s")
	r := w.random("stops")
	first := w.start()
	for range ofKills(8, 4) {
		first.works()
		pause(r, 100*time.Millisecond, time.Second)
		first.signal(syscall.SIGSTOP)
		second := w.start()
		second.works()
		// The locks of what hung expire after a second.
		pause(r, 1200*time.Millisecond, 2500*time.Millisecond)
		first.signal(syscall.SIGCONT)
		pause(r, 0, []time.Duration{50 * time.Millisecond, 700 * time.Millisecond}[r.IntN(2)])
		assert.True(t, first.running(), "the one that has woken up ended by itself; it wrote:\n%s", first.tail())
		if r.IntN(3) == 0 {
			first, second = second, first
		}
		if r.IntN(3) == 0 {
			first.signal(syscall.SIGTERM)
			assert.Equal(t, 0, first.exit(t), "it wrote:\n%s", first.tail())
		} else {
			first.kill()
		}
		first = second
	}
	w.start() // in place of the one that died last
	w.settle()
	w.judge()
}
