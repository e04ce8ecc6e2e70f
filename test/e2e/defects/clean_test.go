package defects

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

var clean = flag.Int("clean", 0, "how often to run the tests of faults without a defect, each time with other seeds")

// What each clean run does on the model of the API server; every tenth goes to a real
// one too.
const (
	cleanSeeds    = 150
	cleanContests = 10
	cleanPlans    = 60
	cleanPairs    = 12
	toReal        = 10
)

// TestCleanRunsRaiseNoAlarm runs the tests of faults again and again on the sources as
// they are, with seeds that no other run has. What is reported then is a false alarm,
// or a defect that nobody has seeded. A hundred runs take about a quarter of an hour:
//
//	go test ./test/e2e/defects -run TestCleanRunsRaiseNoAlarm -clean=100 -timeout=2h -v
func TestCleanRunsRaiseNoAlarm(t *testing.T) {
	if *clean == 0 {
		t.Skip("it makes as many runs as -clean says, and none was asked for")
	}
	began := time.Now()
	b := newBench(t)
	alarms := 0
	for n := range *clean {
		for _, s := range cleanStages(n) {
			output, passed := b.run(t, s, "")
			if !assert.True(t, passed, "run %d, %s: %s\n%s", n, s, saying(output), tail(output)) {
				alarms++
			}
		}
		_, _ = fmt.Fprintf(os.Stderr, "clean run %d of %d is over: %d alarms so far, in %s\n", n+1, *clean, alarms, time.Since(began).Round(time.Second))
	}
	t.Logf("%d clean runs, %d alarms, in %s", *clean, alarms, time.Since(began).Round(time.Second))
}

// cleanStages are the stages of a clean run.
func cleanStages(n int) []stage {
	first := func(each int) string { return fmt.Sprintf("-seed=%d", 1+n*each) }
	out := []stage{
		{simulation, "test/e2e/simulation", []string{"-test.run=TestSeeds", fmt.Sprintf("-seeds=%d", cleanSeeds), first(cleanSeeds)}},
		{isolation, "test/e2e/simulation", []string{"-test.run=TestContenders", fmt.Sprintf("-contests=%d", cleanContests), first(cleanContests)}},
	}
	if n%toReal == 0 {
		out = append(out,
			stage{enumeration, "test/e2e/faults", []string{"-test.run=TestPlans$", fmt.Sprintf("-sample=%d", cleanPlans), fmt.Sprintf("-seed=%d", 2+n)}},
			stage{pairs, "test/e2e/faults", []string{"-test.run=TestPairs$", fmt.Sprintf("-pairs=%d", cleanPairs), fmt.Sprintf("-seed=%d", 2+n)}})
	}
	return out
}
