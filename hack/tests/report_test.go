package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// told reads events and gives what is said of them.
func toldOf(t *testing.T, events ...string) (string, *report) {
	t.Helper()
	var out strings.Builder
	r := newReport(&out, t.TempDir())
	require.NoError(t, r.read(strings.NewReader(strings.Join(events, "\n"))))
	return out.String(), r
}

func TestAPackageThatPassesIsALine(t *testing.T) {
	out, r := toldOf(t,
		`{"Action":"run","Package":"janus.io/janus/engine","Test":"TestA"}`,
		`{"Action":"output","Package":"janus.io/janus/engine","Test":"TestA","Output":"noise\n"}`,
		`{"Action":"pass","Package":"janus.io/janus/engine","Test":"TestA","Elapsed":1.5}`,
		`{"Action":"pass","Package":"janus.io/janus/engine","Elapsed":2}`)
	assert.Equal(t, "ok   engine                           2.0 s     1 tests\n", out)
	assert.Zero(t, r.failed)
	assert.Equal(t, []timed{{Package: "engine", Test: "TestA", Seconds: 1.5}}, r.slowest(5, true))
}

func TestAResultThatGoHasIsCalledSo(t *testing.T) {
	out, _ := toldOf(t,
		`{"Action":"output","Package":"janus.io/janus/engine","Output":"ok  \tjanus.io/janus/engine\t(cached)\n"}`,
		`{"Action":"pass","Package":"janus.io/janus/engine","Elapsed":0}`)
	assert.Contains(t, out, "cached")
}

func TestATestThatFailsSaysWhyInTenLines(t *testing.T) {
	noise := `{"Action":"output","Package":"janus.io/janus/e2e","Test":"TestA/one","Output":"    logger.go:146: INFO nothing\n"}`
	events := []string{noise,
		`{"Action":"output","Package":"janus.io/janus/e2e","Test":"TestA/one","Output":"    a_test.go:10: \n        \tError Trace:\ta_test.go:10\n        \tError:      \tNot equal:\n        \t            \texpected: 1\n        \t            \tactual  : 2\n"}`,
		noise, noise, noise, noise, noise, noise, noise, noise, noise, noise,
		`{"Action":"fail","Package":"janus.io/janus/e2e","Test":"TestA/one","Elapsed":1}`,
		`{"Action":"fail","Package":"janus.io/janus/e2e","Test":"TestA","Elapsed":1}`,
		`{"Action":"fail","Package":"janus.io/janus/e2e","Elapsed":1}`}
	out, r := toldOf(t, events...)
	assert.Equal(t, 1, r.failed)
	assert.Contains(t, out, "FAIL e2e")
	assert.Contains(t, out, "--- FAIL: TestA/one\n")
	assert.NotContains(t, out, "--- FAIL: TestA\n", "the subtest says it")
	assert.Contains(t, out, "expected: 1")
	assert.Contains(t, out, "actual  : 2")
	assert.NotContains(t, out, "logger.go")
	assert.LessOrEqual(t, strings.Count(out, "\n"), 3+most)
	log := filepath.Join(r.logs, "e2e.log")
	assert.Contains(t, out, log)
	content, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Contains(t, string(content), "logger.go:146: INFO nothing", "the log has all")
}

func TestTheMessageOfAnAssertionIsToldAfterALongDifference(t *testing.T) {
	output := []string{"    a_test.go:10: \n        \tError Trace:\ta_test.go:10\n        \tError:      \tNot equal:\n"}
	for range 30 {
		output = append(output, "        \t            \t-a line of the difference\n")
	}
	output = append(output, "        \tTest:       \tTestA\n        \tMessages:   \tFailed 1/2: a was refused\n        \t            \t  b Service shop/old: Unresolved\n")
	lines := gist(output)
	assert.Len(t, lines, most+2)
	assert.Contains(t, lines[most], "Failed 1/2: a was refused")
	assert.Contains(t, lines[most+1], "b Service shop/old: Unresolved")
}

func TestOfAScriptThatFailsTheLastLinesAreTold(t *testing.T) {
	output := []string{"        testscript.go:609: WORK=$WORK\n            HOME=/\n"}
	for range 30 {
		output = append(output, "        > stdout 'x'\n")
	}
	output = append(output, "        > exits 4 janus cancel waits\n        [stderr]\n        Failed 0/1\n        FAIL: testdata/act.txtar:12: exit code 5, want 4\n")
	lines := gist(output)
	assert.Len(t, lines, most)
	assert.Equal(t, "        FAIL: testdata/act.txtar:12: exit code 5, want 4", lines[most-1])
}

func TestATestThatIsSkippedFailsItsPart(t *testing.T) {
	out, r := toldOf(t,
		`{"Action":"skip","Package":"janus.io/janus/e2e","Test":"TestA"}`,
		`{"Action":"pass","Package":"janus.io/janus/e2e","Elapsed":1}`)
	assert.Equal(t, 1, r.failed)
	assert.Contains(t, out, "SKIPPED, which no part asks for: TestA")
}

func TestAPackageThatDoesNotBuildShowsWhatTheCompilerSays(t *testing.T) {
	out, r := toldOf(t,
		`{"ImportPath":"janus.io/janus/e2e [janus.io/janus/e2e.test]","Action":"build-output","Output":"e2e/a_test.go:3:1: undefined: x\n"}`,
		`{"Action":"fail","Package":"janus.io/janus/e2e","Elapsed":0,"FailedBuild":"janus.io/janus/e2e [janus.io/janus/e2e.test]"}`)
	assert.Equal(t, 1, r.failed)
	assert.Contains(t, out, "undefined: x")
}

func TestAPackageThatFailsWithoutATestSaysWhatItPrinted(t *testing.T) {
	out, _ := toldOf(t,
		`{"Action":"output","Package":"janus.io/janus/e2e","Output":"testcluster: janusd lacks the right to get /x\n"}`,
		`{"Action":"fail","Package":"janus.io/janus/e2e","Elapsed":1}`)
	assert.Contains(t, out, "janusd lacks the right to get /x")
}

func TestAPackageWhoseTimeIsOverNamesWhatWasRunning(t *testing.T) {
	out, _ := toldOf(t,
		`{"Action":"output","Package":"janus.io/janus/e2e","Test":"TestLast","Output":"--- PASS: TestLast (10.89s)\n"}`,
		`{"Action":"pass","Package":"janus.io/janus/e2e","Test":"TestLast","Elapsed":10.89}`,
		`{"Action":"output","Package":"janus.io/janus/e2e","Test":"TestLast","Output":"panic: test timed out after 40m0s\n"}`,
		`{"Action":"output","Package":"janus.io/janus/e2e","Test":"TestLast","Output":"\trunning tests:\n"}`,
		`{"Action":"output","Package":"janus.io/janus/e2e","Test":"TestLast","Output":"\t\tTestStuck/RollingBack (39m49s)\n"}`,
		`{"Action":"output","Package":"janus.io/janus/e2e","Test":"TestLast","Output":"\n"}`,
		`{"Action":"output","Package":"janus.io/janus/e2e","Test":"TestLast","Output":"goroutine 1 [chan receive, 39 minutes]:\n"}`,
		`{"Action":"output","Package":"janus.io/janus/e2e","Output":"FAIL\tjanus.io/janus/e2e\t2400.030s\n"}`,
		`{"Action":"fail","Package":"janus.io/janus/e2e","Elapsed":2400.03}`)
	assert.Contains(t, out, "test timed out after 40m0s")
	assert.Contains(t, out, "TestStuck/RollingBack (39m49s)")
	assert.NotContains(t, out, "goroutine 1")
}

func TestTheSummaryNamesWhatTookLongest(t *testing.T) {
	_, r := toldOf(t,
		`{"Action":"pass","Package":"janus.io/janus/e2e","Test":"TestSlow","Elapsed":12}`,
		`{"Action":"pass","Package":"janus.io/janus/e2e","Test":"TestQuick","Elapsed":1}`,
		`{"Action":"pass","Package":"janus.io/janus/e2e","Elapsed":13}`)
	out := &strings.Builder{}
	r.out = out
	r.summary(14 * time.Second)
	assert.Contains(t, out.String(), "TestSlow")
	assert.NotContains(t, out.String(), "TestQuick")
	assert.Contains(t, out.String(), "2 tests have passed, 0 packages have failed, in 14s")
}
