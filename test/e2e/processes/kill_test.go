package processes

import (
	"syscall"
	"testing"
	"time"

	"janus.io/janus/test/testcluster"
)

// calmAfter is after how many kills one janusd may live until what is under way has
// ended: a rollback that waits for a request without an answer waits again in each
// process.
const calmAfter = 60

// janusd is killed again and again, at moments that nobody has chosen, and each time
// another resumes where it was.
func TestTransactionsSurviveTheDeathOfJanusd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testcluster.Shared(t))
	w.begin("1s", "3s", "5m")
	r := w.random("kills")
	for n := range *kills {
		j := w.start("--log-level=debug")
		if n > 0 && n%calmAfter == 0 {
			w.calm()
		}
		if r.IntN(5) > 0 { // or else while it starts
			j.works()
		}
		pause(r, 0, time.Second)
		if r.IntN(10) == 0 {
			w.scrape(j)
		}
		if r.IntN(8) == 0 {
			j.signal(syscall.SIGTERM)
			pause(r, 0, 50*time.Millisecond)
		}
		j.kill()
	}
	w.start("--log-level=debug")
	w.settle()
	w.judge()
}
