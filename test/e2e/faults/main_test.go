// Package faults proves the guarantees by enumeration: each workload is run once for
// every fault at every request that it makes, and for every act of another client
// before every request that matters, on a real API server. A plan names one such run,
// and has a number that follows from its name; one line replays it by either:
//
//	go test ./test/e2e/faults -run 'TestPlan$' -plan='chain/PUT transactions/txn/status#3/crash-after'
//	go test ./test/e2e/faults -run 'TestPlan$' -plan=602182376
//
// Pairs of faults and contests of Transactions are drawn by a seed, and are run again
// by their name, or by their number and the seed.
package faults

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"

	"janus.io/janus/test/testcluster"
)

var (
	planFlag  = flag.String("plan", "", "the name or the number of the one plan that TestPlan runs")
	namesFlag = flag.String("names", "", "the file to which TestPlans writes the number and the name of every plan")
	allFlag   = flag.Bool("all", false, "run every plan, not the sample")
	sampleOf  = flag.Int("sample", 160, "how many plans TestPlans runs without -all")
	pairsFlag = flag.Int("pairs", 24, "how many pairs of faults TestPairs runs")
	pairFlag  = flag.Int("pair", -1, "the number of the one pair that TestPairs runs")
	contests  = flag.Int("contests", 9, "how many contests TestContenders runs")
	contest   = flag.Int("contest", -1, "the number of the one contest that TestContenders runs")
	seedFlag  = flag.Int64("seed", 1, "the seed of the sample, of the pairs and of the contests")
	shardFlag = flag.String("shard", "0/1", "which share of the plans is run, as i/n with i from 0")
	onWork    = flag.String("workloads", "", "a regular expression; workloads whose names do not match are left out")
	onlyFlag  = flag.String("only", "", "a regular expression; plans whose names do not match are left out")
	table     = flag.String("table", "", "the file to which the table of results is written, as Markdown")
	atOnce    = flag.Int("at-once", 12, "how many plans are run at the same time")
	answersOf = flag.String("answers", "", "with -calls, show what was sent and answered where this is part of the call's name")
	verbose   = flag.Bool("calls", false, "show the calls of every plan that is run by name")
)

func TestMain(m *testing.M) {
	// Each plan decodes everything that the API server sends, and keeps little of it.
	debug.SetGCPercent(400)
	os.Exit(testcluster.Main(m, testcluster.Options{ControllerManager: true, CRDs: "../../../deploy/crd"}))
}
