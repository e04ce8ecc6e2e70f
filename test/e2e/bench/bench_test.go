// Package bench measures what a Transaction costs. A bare client, janusd, kubectl, Helm and Flux
// change the same number of ConfigMaps on one cluster in turn, several times: what counts is the
// ratio to the bare client in the same run, and the requests, which the API server's audit
// log tells. `make bench` measures; otherwise a small run shows that it still can.
package bench

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/testcluster"
)

// options is what is measured.
type options struct {
	sizes, many    sizes
	held, waits    sizes
	slow, shared   sizes
	costly, spread sizes
	rounds, stored int
	peers          bool
	idle, delay    time.Duration
	pause          time.Duration // after which janusd has nothing left to do, if it did nothing meanwhile
	plot           string        // the file to which a plot is written, if it is not empty
}

var (
	measured    = options{sizes: sizes{1, 10, 50, 100, 500, 1000}, many: sizes{50, 500}, held: sizes{1000}, waits: sizes{1000}, slow: sizes{100}, shared: sizes{100}, spread: sizes{1, 8}, costly: sizes{1, 10, 50, 100, 500, 1000}}
	locks       = flag.String("locks", "targets", "what has a Lease for its locks, as janusd's flag says")
	further     = flag.String("janusd", "", "further flags for janusd, space-separated")
	gates       = flag.String("gates", "", "feature gates of the API server")
	environment = flag.String("env", "", "further variables of janusd's environment, space-separated")
	shards      = flag.Int("shards", 8, "into how many shards replicas divide the Transactions; that of deploy/ is the default")
	program     = flag.String("program", "", "the janusd to measure; without it, one is built from these sources")
	results     = flag.String("results", "", "measure, and write the tables to this file, and a plot beside it; without it a small run is made")
)

func init() {
	flag.Var(&measured.sizes, "sizes", "numbers of changes in a Transaction, comma-separated")
	flag.Var(&measured.costly, "costs", "numbers of changes of which one commit is charged, comma-separated; empty for none")
	flag.Var(&measured.many, "many", "numbers of concurrent Transactions of 5 changes, comma-separated; empty for none")
	flag.Var(&measured.held, "held", "numbers of changes whose contents are in the Transaction and in a ConfigMap, comma-separated; empty for none")
	flag.Var(&measured.waits, "waits", "numbers of Transactions that wait, comma-separated; empty for none")
	flag.Var(&measured.slow, "slow", "numbers of changes in a Transaction whose API server answers slowly, comma-separated; empty for none")
	flag.Var(&measured.shared, "shared", "numbers of Transactions of 5 changes that one replica and two run, comma-separated; empty for none")
	flag.Var(&measured.spread, "namespaces", "numbers of namespaces in which these Transactions are, comma-separated")
	flag.BoolVar(&measured.peers, "peers", true, "measure Helm and Flux too, with bin/helm and bin/peer")
	flag.IntVar(&measured.rounds, "rounds", 5, "number of rounds for each measurement")
	flag.IntVar(&measured.stored, "stored", 10_000, "number of finished Transactions of 5 changes in the cluster when janusd starts; 0 leaves that out")
	flag.DurationVar(&measured.delay, "delay", 5*time.Millisecond, "how much longer a slow API server takes to answer")
	flag.DurationVar(&measured.idle, "idle", 30*time.Second, "how long to measure an idle janusd")
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(testcluster.Main(m, testcluster.Options{Audit: true, ControllerManager: true, Alone: true, Measured: true, FeatureGates: *gates}))
}

// sizes is a list of numbers, as a flag.
type sizes []int

func (s *sizes) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*s)), " ", ","), "[]")
}

func (s *sizes) Set(text string) error {
	*s = nil
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number above 0", part)
		}
		*s = append(*s, n)
	}
	return nil
}

// TestWhatATransactionCosts measures everything.
func TestWhatATransactionCosts(t *testing.T) {
	o := options{sizes: sizes{1, 3}, many: sizes{4}, held: sizes{2}, waits: sizes{3}, slow: sizes{3}, shared: sizes{4}, spread: sizes{2}, costly: sizes{2}, rounds: 2, stored: 20, peers: true, idle: time.Second, delay: 5 * time.Millisecond}
	var out strings.Builder
	tables := io.Writer(&out)
	if *results != "" {
		o = measured
		o.pause = 25 * time.Second
		o.plot = strings.TrimSuffix(*results, filepath.Ext(*results)) + ".svg"
		tables = io.MultiWriter(&out, os.Stderr)
	}
	s := newStage(t, o)
	for _, part := range []func(context.Context, io.Writer) error{s.conditions, s.oneByOne, s.costs, s.slowly, s.shareOut, s.contents, s.atOnce, s.atRest, s.fullCluster, s.waiting} {
		require.NoError(t, part(t.Context(), tables))
	}
	if *results != "" {
		require.NoError(t, os.WriteFile(*results, []byte(out.String()), 0o600))
		return
	}
	for _, text := range []string{"Kubernetes v1.", "| Helm | Flux |", "one after the other", "| 4 | 2 | two replicas | ", "\n| 3 | ", " × patch configmaps (dry run)", "\n| 4 | ", "in a ConfigMap | **", " requests, ", "| 3 | an object that may be watched | ", "ready after "} {
		assert.Contains(t, out.String(), text)
	}
}

// progress says what is being done.
func progress(format string, args ...any) { _, _ = fmt.Fprintf(os.Stderr, "==> "+format+"\n", args...) }

func TestTheMedianOfSomeTimes(t *testing.T) {
	assert.Zero(t, median(nil))
	assert.Equal(t, 2*time.Second, median([]time.Duration{9 * time.Second, 1, 2 * time.Second}))
	assert.Equal(t, 3*time.Second, median([]time.Duration{4 * time.Second, 9 * time.Second, 1, 2 * time.Second}))
}

func TestATableHasRatiosToItsFirstColumn(t *testing.T) {
	var out strings.Builder
	table{title: "T", first: "n", columns: []string{"bare", "other"}, rows: []row{
		{name: "10", times: map[string][]time.Duration{"bare": {20 * time.Millisecond}, "other": {50 * time.Millisecond}}},
		{name: "20", texts: []string{"a", "b"}},
	}}.write(&out)
	assert.Equal(t, "\n### T\n\n| n | bare | other |\n|---|---|---|\n| 10 | 20.0 ms | **2.50** (50.0 ms) |\n| 20 | a | b |\n", out.String())
}

func TestWritesAreThoseThatLast(t *testing.T) {
	r := requests{"create leases": 2, "patch configmaps (dry run)": 3, "get configmaps": 4, "update transactions/status": 5, "create events": 6, "create selfsubjectaccessreviews": 7}
	assert.Equal(t, 7, r.writes())
	assert.Equal(t, 27, r.sum())
	assert.Equal(t, requests{"create leases": 1, "get configmaps": 4}, requests{"create leases": 3, "get configmaps": 4}.since(requests{"create leases": 2}))
}
