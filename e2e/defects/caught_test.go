package defects

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	which = flag.String("defects", "", "the defects to seed: all, or names with commas between; empty seeds none")
	table = flag.String("table", "", "a file for the page about what caught them, in Markdown")
)

// TestEveryDefectIsCaught seeds one defect after the other, which takes about half a
// minute each, and so it does it only when asked:
//
//	go test ./e2e/defects -run TestEveryDefectIsCaught -defects=all -timeout=3h
func TestEveryDefectIsCaught(t *testing.T) {
	if *which == "" {
		return // TestEveryDefectCanBeSeeded is what every run of the tests does
	}
	began := time.Now()
	b := newBench(t)
	var rows []string
	caught := 0
	for _, d := range load(t) {
		if *which != "all" && !strings.Contains(","+*which+",", ","+d.Name+",") {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			began := time.Now()
			f := b.hunt(t, d)
			took := time.Since(began).Round(time.Second)
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |\n", d.Name, strings.ReplaceAll(d.Because, "|", `\|`), cmp.Or(f.tier, "**nothing**"), f.as))
			if f.tier == "" {
				t.Errorf("nothing has caught it, in %s", took)
				return
			}
			caught++
			t.Logf("caught by %s in %s, %s", f.tier, took, f.verdict)
		})
	}
	t.Logf("%d of %d defects caught in %s", caught, len(rows), time.Since(began).Round(time.Second))
	if *table != "" {
		page := fmt.Sprintf(introduction, caught, len(rows)) + strings.Join(rows, "")
		require.NoError(t, os.WriteFile(*table, []byte(page), 0o600))
	}
}

const introduction = `# Seeded defects: do the tests bite?

A test that no mistake can fail proves nothing. So mistakes are made on purpose: each line below is a
small change of the sources that somebody could have made, and most are mistakes that were made, or
warned of, before. It is built into Janus with ` + "`go test -overlay`" + `, and the tests of faults
(see [reliability](reliability.md)) are run until one of them names a guarantee that does not hold.
The same tests, with the same arguments, have passed without the defect.

The defects are in ` + "`e2e/defects/testdata/defects.yaml`" + `. This page is written by

    go test ./e2e/defects -run TestEveryDefectIsCaught -defects=all -table=$PWD/docs/seeded-defects.md -timeout=3h

%d of %d are caught. "As" is the guarantee that was named first; "another end" means that the Transaction
ended in another phase, or left its targets otherwise, than without a fault.

| defect | why it is here | caught by | as |
|---|---|---|---|
`
