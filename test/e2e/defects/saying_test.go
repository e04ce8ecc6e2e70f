package defects

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/test/oracle"
)

// verdict is what a test of faults says is broken; nothing if as is empty.
type verdict struct{ as, message string }

// breach is a line of a judge about Janus. What it says of the evidence itself
// concerns no defect.
var breach = func() *regexp.Regexp {
	var names []string
	for _, name := range append([]string{oracle.Isolation}, oracle.Guarantees...) {
		if name != oracle.Whole {
			names = append(names, regexp.QuoteMeta(name))
		}
	}
	return regexp.MustCompile(`(?m)^\s*(` + strings.Join(names, "|") + `): (.*)$`)
}()

// claims are what the tests say beside the oracle, and what that is called.
var claims = []struct {
	as   string
	line *regexp.Regexp
}{
	{oracle.NothingLeft, regexp.MustCompile(`(?m)^\s*((?:the Transaction has finalizers|a lock is left|a before-image is left): .*)$`)},
	{oracle.Termination, regexp.MustCompile(`(?m)^\s*(still not over after .*|.*it has not ended after .*)$`)},
	{"another end", regexp.MustCompile(`(?m)^\s*((?:without a fault )?\S+ ends \S+, not .*|\S+ ends otherwise than without a fault:)$`)},
	{"another end", regexp.MustCompile(`(?s)Not equal:\s*(expected\s*: .*?\n\s*actual\s*: [^\n]*)`)},
	{"a panic", regexp.MustCompile(`(?m)^panic: ((?:runtime error|assignment to entry in nil map).*)$`)},
}

// saying is the first breach in what a test of faults has printed, or else the first
// of its other claims.
func saying(output string) verdict {
	if m := breach.FindStringSubmatch(output); m != nil {
		return verdict{m[1], m[2]}
	}
	for _, c := range claims {
		if m := c.line.FindStringSubmatch(output); m != nil {
			return verdict{c.as, strings.Join(strings.Fields(m[1]), " ")}
		}
	}
	return verdict{}
}

var (
	failure = regexp.MustCompile(`(?m)^\s*(?:--- FAIL:|Test:)\s+([^/\s]+)`)
	ended   = regexp.MustCompile(`(?m)^panic: test timed out`)
)

// failing is the test that has failed, as it does where an assertion does not hold. One that
// has not ended, or did not begin, says nothing.
func failing(output string) verdict {
	m := failure.FindStringSubmatch(output)
	if m == nil || ended.MatchString(output) {
		return verdict{}
	}
	return verdict{m[1], "it fails"}
}

func TestOnlyAFailedAssertionCounts(t *testing.T) {
	assert.Equal(t, verdict{"TestA", "it fails"}, failing("=== RUN TestA\n--- FAIL: TestA (0.1s)\n"))
	assert.Equal(t, verdict{}, failing("panic: test timed out after 8m0s\n--- FAIL: TestA (0.1s)\n"))
	assert.Equal(t, verdict{}, failing("set up: no such host\n"))
}

func TestSayingNamesWhatIsBroken(t *testing.T) {
	for output, want := range map[string]verdict{
		"    seed 7: Committed\n        no lost write: a was overwritten\n": {"no lost write", "a was overwritten"},
		"  phases: it went back":                                             {"phases", "it went back"},
		"  isolation: no order":                                              {"isolation", "no order"},
		"  a lock is left: near/leases/l":                                    {"nothing left", "a lock is left: near/leases/l"},
		"still not over after 30000 steps":                                   {"termination", "still not over after 30000 steps"},
		"  txn ends Failed, not RolledBack":                                  {"another end", "txn ends Failed, not RolledBack"},
		"Not equal: \n   expected: \"Committed\"\n   actual  : \"Failed\"\n": {"another end", `expected: "Committed" actual : "Failed"`},
		"panic: runtime error: index out of range [recovered]":               {"a panic", "runtime error: index out of range [recovered]"},
		// These say nothing about Janus.
		"  whole evidence: the history is not in order": {},
		"set up: no such host":                          {},
		"panic: test timed out after 8m0s":              {},
	} {
		assert.Equal(t, want, saying(output), output)
	}
}
