package defects

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	which = flag.String("defects", "", "the defects to seed: all, or names with commas between; empty seeds none")
	table = flag.String("table", "", "a file for the table of what caught them, in Markdown")
)

// tiers are the tests of faults, the quickest first. A defect is caught by the
// first that fails.
var tiers = []struct {
	name string
	args []string
}{
	{"simulation", []string{"./e2e/simulation", "-seeds=4000", "-every=2", "-contests=200"}},
	{"enumeration", []string{"./e2e/faults"}},
}

// found is what a tier says about a defect.
type found struct {
	tier, saying string
	took         time.Duration
}

// TestEveryDefectIsCaught seeds one defect after the other, which takes half a
// minute each, and so it does it only when asked:
//
//	go test ./e2e/defects -run TestEveryDefectIsCaught -defects=all -timeout=3h
func TestEveryDefectIsCaught(t *testing.T) {
	var out strings.Builder
	fmt.Fprint(&out, "| defect | because of | caught by | as | s |\n|---|---|---|---|---|\n")
	for _, d := range load(t) {
		if *which != "all" && !strings.Contains(","+*which+",", ","+d.Name+",") {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			f := d.hunt(t)
			assert.NotEmpty(t, f.tier, "nothing has caught it")
			t.Logf("caught by %s in %s: %s", f.tier, f.took.Round(time.Second), f.saying)
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %.0f |\n", d.Name, d.Because, f.tier, f.saying, f.took.Seconds())
		})
	}
	if *table != "" {
		require.NoError(t, os.WriteFile(*table, []byte(out.String()), 0o600))
	}
}

// hunt runs the tiers on sources with the defect until one fails.
func (d defect) hunt(t *testing.T) found {
	t.Helper()
	overlay := d.overlay(t)
	began := time.Now()
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	for _, tier := range tiers {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-overlay=" + overlay, "-count=1", "-failfast"}, tier.args...)...)
		cmd.Dir = top
		output, err := cmd.CombinedOutput()
		cancel()
		require.NotContains(t, string(output), "[build failed]", "%s: %s", d.Name, output)
		if err != nil {
			return found{tier.name, saying(string(output)), time.Since(began)}
		}
	}
	return found{took: time.Since(began)}
}

// breach is a line of a judge.
var breach = regexp.MustCompile(`(?m)^\s*(?:\S+: )?(durable intent|atomicity|no lost write|exactly once|lock exclusion|no deadlock|nothing left|termination|identity|confidentiality|progress|isolation): (.*)$`)

// saying is the first breach in what a tier has printed, or else its first failure.
func saying(output string) string {
	if m := breach.FindStringSubmatch(output); m != nil {
		return m[1]
	}
	for _, mark := range []string{"panic: ", "still not over", "--- FAIL: "} {
		if _, rest, found := strings.Cut(output, mark); found {
			line, _, _ := strings.Cut(rest, "\n")
			return strings.TrimSpace(mark + line)
		}
	}
	return "no breach named"
}
