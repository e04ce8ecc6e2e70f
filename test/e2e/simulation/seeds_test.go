package simulation

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"janus.io/janus/test/oracle"
)

var (
	seeds = flag.Int("seeds", 150, "how many seeds to run")
	first = flag.Uint64("seed", 1, "the first seed")
)

// TestSeeds runs random Transactions among random faults and writers. It tells every
// minute how far it is. A seed that fails is run again, with what happened, by
//
//	go test ./test/e2e/simulation -run TestSeeds -seeds=1 -seed=SEED -v
func TestSeeds(t *testing.T) {
	t.Parallel()
	campaignOf(t, *seeds, seeded)
}

// campaignOf runs the plans of so many seeds.
func campaignOf(t *testing.T, count int, planOf func(seed uint64) script) {
	t.Helper()
	c := &campaign{t: t, planOf: planOf, count: count, began: time.Now(), ends: map[string]int{}}
	over := make(chan struct{})
	go c.tellEvery(time.Minute, over)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), count) {
		workers.Go(func() {
			for seed, ok := c.next(); ok; seed, ok = c.next() {
				c.runSeed(seed)
			}
		})
	}
	workers.Wait()
	close(over)
	t.Log(c)
}

// mostFailures is after how many seeds that fail to stop.
const mostFailures = 20

// campaign is a run of many seeds. Of those that are done it keeps numbers only.
type campaign struct {
	t      *testing.T
	planOf func(seed uint64) script
	count  int
	began  time.Time

	mu                         sync.Mutex
	begun, done, failed, calls int
	ends                       map[string]int // of Transactions, by phase
}

// next returns the next seed, if there is to be one.
func (c *campaign) next() (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun == c.count || c.failed >= mostFailures {
		return 0, false
	}
	c.begun++
	return *first + uint64(c.begun-1), true //nolint:gosec // a count of seeds
}

func (c *campaign) runSeed(seed uint64) {
	p := c.planOf(seed)
	p.keepTrace = *seeds == 1
	o := simulate(c.t, p)
	if p.keepTrace {
		c.t.Log(strings.Join(o.trace, "\n"))
		c.t.Log(ends(o.evidence))
	}
	c.enter(o)
	if len(o.breaches) > 0 {
		tell("seed %d has failed; to see what happened: go test ./test/e2e/simulation -run %s -seeds=1 -seed=%d -v", seed, c.t.Name(), seed)
		c.t.Errorf("seed %d: %s", seed, o)
	}
}

func (c *campaign) enter(o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.calls += len(o.calls)
	for _, phase := range o.phases {
		c.ends[phase]++
	}
	if len(o.breaches) > 0 {
		c.failed++
	}
}

// tellEvery tells how far the campaign is until it is over.
func (c *campaign) tellEvery(interval time.Duration, over <-chan struct{}) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
			tell("%s", c)
		}
	}
}

// String says how far the campaign is.
func (c *campaign) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	took := time.Since(c.began)
	return fmt.Sprintf("%d of %d seeds from %d, %d failed, %d calls, in %s, %.0f seeds a second; Transactions by end: %v",
		c.done, c.count, *first, c.failed, c.calls, took.Round(time.Second), float64(c.done)/took.Seconds(), c.ends)
}

// tell writes at once what a test's log would keep until the test is over.
func tell(format string, args ...any) { _, _ = fmt.Fprintf(os.Stderr, format+"\n", args...) }

// ends shows the Transactions of a run as they were in the end.
func ends(e oracle.Evidence) string {
	var all strings.Builder
	for _, r := range e.Runs {
		of := oracle.Ref{Resource: "transactions.backup.janus.io", Namespace: r.Namespace, Name: r.Name}
		for _, v := range slices.Backward(e.History) {
			if v.Ref != of || v.Deleted {
				continue
			}
			shown := v.Object.DeepCopy()
			shown.SetManagedFields(nil)
			text, err := yaml.Marshal(shown.Object)
			if err != nil {
				text = []byte(err.Error())
			}
			_, _ = fmt.Fprintf(&all, "---\n%s", text)
			break
		}
	}
	return all.String()
}
