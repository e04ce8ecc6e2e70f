package defects

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	which = flag.String("defects", "", "the defects to seed: all, or names with commas between; empty seeds none")
	share = flag.String("share", "0/1", "the share of these to seed, as i/n with i from 0")
	table = flag.String("table", "", "a file for a page about what caught them, in Markdown")
)

// page has a table such as -table writes, put together from several runs.
const page = "docs/seeded-defects.md"

// TestEveryDefectIsCaught seeds one defect after the other, which takes from half a minute
// to some minutes each, and so it does it only when asked:
//
//	go test ./test/e2e/defects -run TestEveryDefectIsCaught -defects=all -timeout=6h
func TestEveryDefectIsCaught(t *testing.T) {
	if *which == "" {
		t.Skip("it seeds the defects that -defects names, and none was named")
	}
	began := time.Now()
	asked := shareOf(t, named(t, *which), *share)
	b := newBench(t)
	hunted := make([]found, len(asked))
	t.Cleanup(func() { report(t, asked, hunted, time.Since(began)) })
	for i, d := range asked {
		t.Run(d.Name, func(t *testing.T) {
			if d.Test != "" {
				t.Parallel() // A single test mostly waits; the tests of faults keep all cores busy.
			}
			began := time.Now()
			hunted[i] = b.hunt(t, d)
			hunted[i].over = true
			took := time.Since(began).Round(time.Second)
			if hunted[i].tier == "" {
				t.Errorf("nothing has caught it, in %s", took)
				return
			}
			t.Logf("caught by %s in %s (%s), %s", hunted[i].tier, took, hunted[i].stage, hunted[i].verdict)
		})
	}
}

// report says how many were caught, and writes the table if one is asked for.
func report(t *testing.T, asked []defect, hunted []found, took time.Duration) {
	t.Helper()
	var rows []string
	caught := 0
	for i, f := range hunted {
		if !f.over {
			continue
		}
		if f.tier != "" {
			caught++
		}
		rows = append(rows, asked[i].row()+fmt.Sprintf("%s | %s |\n", cmp.Or(f.tier, "**nothing**"), f.as))
	}
	t.Logf("%d of %d defects caught in %s", caught, len(rows), took.Round(time.Second))
	if *table != "" {
		require.Len(t, rows, len(asked), "not all that was asked for was hunted, so no table is written")
		content := introduction + fmt.Sprintf(numbers, caught, len(rows)) + head + strings.Join(rows, "")
		require.NoError(t, os.MkdirAll(filepath.Dir(*table), 0o750))
		require.NoError(t, os.WriteFile(*table, []byte(content), 0o600))
	}
}

// named returns the defects of some names with commas between, or all. A name that no defect
// has would be caught by nothing, and pass.
func named(t *testing.T, names string) []defect {
	t.Helper()
	known := load(t)
	if names == "all" {
		return known
	}
	wanted := strings.Split(names, ",")
	for _, name := range wanted {
		require.True(t, slices.ContainsFunc(known, func(d defect) bool { return d.Name == name }), "there is no defect %q", name)
	}
	return slices.DeleteFunc(known, func(d defect) bool { return !slices.Contains(wanted, d.Name) })
}

// shareOf returns every n-th of the defects.
func shareOf(t *testing.T, all []defect, share string) []defect {
	t.Helper()
	var i, n int
	_, err := fmt.Sscanf(share, "%d/%d", &i, &n)
	require.NoError(t, err, "-share is i/n, and not %q", share)
	require.True(t, 0 <= i && i < n, "-share is i/n with i from 0, and not %q", share)
	var out []defect
	for ; i < len(all); i += n {
		out = append(out, all[i])
	}
	require.NotEmpty(t, out, "share %s has no defects", share)
	return out
}

func TestTheSharesOfTheDefectsAreAllOfThem(t *testing.T) {
	known := load(t)
	names := map[string]bool{}
	for i := range 10 {
		for _, d := range shareOf(t, known, fmt.Sprintf("%d/10", i)) {
			assert.False(t, names[d.Name], "%s is in two shares", d.Name)
			names[d.Name] = true
		}
	}
	assert.Len(t, names, len(known))
}

// row is the beginning of a defect's line in the table: what does not depend on a run.
func (d defect) row() string {
	return fmt.Sprintf("| %s | %s | ", d.Name, strings.ReplaceAll(d.Because, "|", `\|`))
}

// What does not depend on a run is compared, since the page is put together by hand.
func TestThePageTellsOfEveryDefect(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, page))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(content), introduction), "%s is to begin with what the command writes:\n%s", page, introduction)
	_, rest, found := strings.Cut(string(content), head)
	require.True(t, found, "%s has another table", page)
	rows := strings.SplitAfter(strings.TrimSuffix(rest, "\n"), "\n")
	all := load(t)
	require.Len(t, rows, len(all))
	for i, d := range all {
		assert.True(t, strings.HasPrefix(rows[i], d.row()), "row %d of %s: want %s, got %s", i, page, d.row(), rows[i])
	}
}

// caughtBefore returns what the page says has caught each defect.
func caughtBefore(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	require.NoError(t, err)
	out := map[string]string{}
	for line := range strings.SplitSeq(string(content), "\n") {
		if cells := strings.Split(strings.ReplaceAll(line, `\|`, ""), " | "); len(cells) == 4 {
			out[strings.TrimPrefix(cells[0], "| ")] = cells[2]
		}
	}
	return out
}

func TestWhatCaughtADefectBeforeIsTriedFirst(t *testing.T) {
	before := caughtBefore(t)
	for _, d := range load(t) {
		tiers := []string{simulation, isolation, enumeration, pairs, single}
		require.Contains(t, tiers, before[d.Name], d.Name)
		if d.Test == "" {
			assert.Equal(t, before[d.Name], d.stages(before)[0].tier, d.Name)
			assert.Len(t, d.stages(before), len(d.stages(nil)), d.Name)
		}
	}
}

const introduction = `# Seeded defects

This page shows that the tests can fail, for anyone who wants to judge how much they prove. Each row of the table is a
small change of the sources that makes a mistake on purpose. Most are mistakes that were made before, or warned of. The
defect is built into Janus with ` + "`go test -overlay`" + `, and the fault tests (see [reliability](reliability.md)) run until
one of them names a guarantee that does not hold. These tests cover little of kinds, controllers and admission: a defect
about one of these names the test that finds it.

The defects are in ` + "`test/e2e/defects/testdata/defects.yaml`" + `. This command writes such a table:

    go test ./test/e2e/defects -run TestEveryDefectIsCaught -defects=all -table=$PWD/dist/seeded-defects.md -timeout=6h

The column "as" has the guarantee that was named first, or the test. "Another end" means that the Transaction ended in
another phase, or left its targets in another state, than without a fault.

`

const numbers = `%d of %d were caught in one run. The same tests, with the same arguments, passed on the same sources without
the defect.

`

const head = `| defect | why it is here | caught by | as |
|---|---|---|---|
`
