package defects

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
)

// stage is one run of a tier of the tests of faults, or of a test that the defect names.
type stage struct {
	tier, pkg string // the path of the package below the root
	args      []string
}

func (s stage) String() string { return s.pkg + " " + strings.Join(s.args, " ") }

const (
	simulation  = "simulation"
	isolation   = "isolation"
	enumeration = "enumeration"
	pairs       = "pairs"
	single      = "test"
)

// stages are what a defect is hunted with: what the page says has caught it before comes first, and then the
// quickest. Of the enumeration it takes what the defect says is apt to find it.
func (d defect) stages(before map[string]string) []stage {
	if d.Test != "" {
		pkg, name, _ := strings.Cut(d.Test, " ")
		return []stage{{single, pkg, []string{"-test.run=^" + name + "$"}}}
	}
	faults := func(run, size string) []string {
		return []string{"-test.run=" + run, size, "-workloads=" + d.Workloads, "-only=" + d.Only}
	}
	all := []stage{
		{simulation, "test/e2e/simulation", []string{"-test.run=TestSeeds", "-seeds=1500"}},
		{simulation, "test/e2e/simulation", []string{"-test.run=TestSmall|TestTwo", "-every=50"}},
		{isolation, "test/e2e/simulation", []string{"-test.run=TestContenders", "-contests=60"}},
		{simulation, "test/e2e/simulation", []string{"-test.run=TestWhatDependsOnAnItem", "-dependants=200"}},
		{enumeration, "test/e2e/faults", faults("TestPlans$|TestRequester", "-sample=120")},
		{enumeration, "test/e2e/faults", []string{"-test.run=TestPlan$"}},
		{simulation, "test/e2e/simulation", []string{"-test.run=TestSeeds", "-seeds=8000"}},
		{simulation, "test/e2e/simulation", []string{"-test.run=TestTwoTransactions|TestTwoProcessesOfWhichOneHangs", "-every=1"}},
		{simulation, "test/e2e/simulation", []string{"-test.run=TestTwo.*/(patch|create)$", "-every=1"}},
		{simulation, "test/e2e/simulation", []string{"-test.run=TestSmall|TestTwo", "-every=8"}},
		{simulation, "test/e2e/simulation", []string{"-test.run=TestSmallWorkloadsMeetEveryFault", "-every=1"}},
		{pairs, "test/e2e/faults", faults("TestPairs$", "-pairs=60")},
	}
	var out []stage
	for _, s := range all {
		if d.Tier == "" || d.Tier == s.tier {
			out = append(out, s)
		}
	}
	caught := func(s stage) int {
		if s.tier == before[d.Name] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b stage) int { return caught(a) - caught(b) })
	return out
}

// bench builds and runs the tests of faults.
type bench struct {
	top, dir string
	clean    cleanPasses
	// building is held while a package is built, since hunts of single tests run side by side.
	building sync.Mutex
	// before has the tier that caught each defect when the page was written.
	before map[string]string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	return &bench{top: top, dir: t.TempDir(), clean: cleanPassesOf(t, top), before: caughtBefore(t)}
}

// build makes the test binary of a package, of sources that an overlay changes, and
// returns its path. A binary that is there already is used again.
func (b *bench) build(t *testing.T, pkg, overlay string) string {
	t.Helper()
	binary := strings.ReplaceAll(pkg, "/", "_") + ".test"
	path := filepath.Join(b.dir, binary)
	args := []string{"test", "-c", "-o", path}
	if overlay != "" {
		path = filepath.Join(filepath.Dir(overlay), binary)
		args = []string{"test", "-c", "-overlay=" + overlay, "-o", path}
	}
	b.building.Lock()
	defer b.building.Unlock()
	if found, _ := filepath.Glob(path); len(found) > 0 {
		return path
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./"+pkg)...)
	cmd.Dir = b.top
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "build %s: %s", pkg, output)
	return path
}

// run runs a stage, and tells what it has printed and whether it has passed. It is
// ended as soon as it has named something that is broken: a run that does not end
// takes long.
func (b *bench) run(t *testing.T, s stage, overlay string) (output string, passed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	args := append([]string{"-test.v", "-test.failfast", "-test.timeout=8m"}, s.args...)
	cmd := exec.CommandContext(ctx, b.build(t, s.pkg, overlay), args...)
	cmd.Dir = filepath.Join(b.top, s.pkg)
	cmd.Env = append(os.Environ(), harness.OverlayVariable+"="+overlay)
	out := &listener{enough: cancel}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	return out.text.String(), err == nil
}

// listener keeps what a test prints, until that names something that is broken.
type listener struct {
	text   strings.Builder
	enough func()
}

// Write implements io.Writer. exec calls it from one goroutine, since both outputs
// are the same.
func (l *listener) Write(p []byte) (int, error) {
	n, err := l.text.Write(p)
	whole := l.text.String()[max(0, l.text.Len()-100_000):]
	if saying(whole[:strings.LastIndexByte(whole, '\n')+1]).as != "" {
		l.enough()
	}
	return n, err
}

// mustBeClean runs a stage on the sources as they are, once: what finds something
// there proves nothing about a defect.
func (b *bench) mustBeClean(t *testing.T, s stage) {
	t.Helper()
	if b.clean.has(s) {
		return
	}
	output, passed := b.run(t, s, "")
	require.True(t, passed, "without a defect, %s fails: %s\n%s", s, saying(output), tail(output))
	b.clean.add(t, s)
}

// tail is the end of a long text.
func tail(text string) string { return text[max(0, len(text)-4000):] }

// found is what a stage says about a defect.
type found struct {
	stage
	verdict
	over bool // the hunt has ended
}

// hunt runs the stages on sources with the defect until one names what is broken.
func (b *bench) hunt(t *testing.T, d defect) found {
	t.Helper()
	overlay := d.overlay(t)
	for _, s := range d.stages(b.before) {
		output, passed := b.run(t, s, overlay)
		if passed {
			continue
		}
		v := saying(output)
		if failed := failing(output); s.tier == single && failed.as != "" {
			v = failed // Else it was ended as soon as it had named what is broken.
		}
		if v.as == "" {
			t.Logf("%s fails and names nothing that is broken: %s", s, tail(output))
			continue
		}
		b.mustBeClean(t, s)
		return found{stage: s, verdict: v}
	}
	return found{}
}

func (v verdict) String() string { return fmt.Sprintf("%s: %s", v.as, v.message) }
