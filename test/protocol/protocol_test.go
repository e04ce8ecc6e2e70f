package protocol

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	deep  = flag.Bool("deep", false, "also explore two processes with two faults, or with changes of other kinds, which takes some minutes and 4 GB of memory")
	three = flag.Bool("three", false, "explore two processes with a crash, a late request and a foreign write, which takes an hour and 7 GB of memory")
)

// one is a process that meets whatever can happen; two are two of them that meet what
// a configuration adds.
var (
	one = []string{"-DPROCESSES=1"}
	two = []string{"-DPROCESSES=2", "-DCRASHES=0", "-DLATE=0", "-DLOST=0", "-DDENIED=0", "-DFOREIGN=0"}
)

// with returns a configuration with more definitions; the last one of a name counts.
func with(base []string, more ...string) []string {
	var out []string
	for _, flag := range base {
		name, _, _ := strings.Cut(flag, "=")
		replaced := false
		for _, m := range more {
			replaced = replaced || strings.HasPrefix(m, name+"=")
		}
		if !replaced {
			out = append(out, flag)
		}
	}
	return append(out, more...)
}

// unreachable are the lines that no configuration reaches, and why.
var unreachable = map[string]string{
	"end of network": "the API server never ends",
	"end of other":   "nor do other clients",
}

func TestTheProtocolKeepsItsGuarantees(t *testing.T) {
	reached, all := map[string]bool{}, map[string]bool{}
	configs := map[string][]string{
		"one process, Patch and Create":             one,
		"one process, Create and Patch, one by one": with(one, "-DKIND0=CREATE", "-DKIND1=PATCH", "-DWINDOW=1", "-DWAITS=1"),
		"one process, Delete and Patch":             with(one, "-DKIND0=DELETE", "-DKIND1=PATCH"),
		"two processes, a crash":                    with(two, "-DCRASHES=1"),
		"two processes, a late request":             with(two, "-DLATE=1"),
		"two processes, a foreign write":            with(two, "-DFOREIGN=1"),
	}
	if *deep {
		maps.Copy(configs, deeper())
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			out, states := check(t, config, []string{"-DSAFETY"})
			assert.Contains(t, out, "errors: 0\n")
			cover(out, states, all, reached)
			t.Log(figures(out))
		})
	}
	// What no configuration reaches is dead: the model would claim more than it checks.
	for line := range all {
		_, known := unreachable[line]
		assert.Equal(t, !known, reached[line], "whether a configuration reaches %s of saga.pml", line)
	}
}

// deeper are two processes that meet two things, and two that meet one with changes of other kinds.
func deeper() map[string][]string {
	out := map[string][]string{
		"two processes, a crash and a foreign write":        with(two, "-DCRASHES=1", "-DFOREIGN=1"),
		"two processes, a crash and a late request":         with(two, "-DCRASHES=1", "-DLATE=1"),
		"two processes, a late request and a foreign write": with(two, "-DLATE=1", "-DFOREIGN=1"),
	}
	for name, fault := range map[string]string{"a crash": "-DCRASHES=1", "a late request": "-DLATE=1", "a foreign write": "-DFOREIGN=1"} {
		out["two processes, "+name+", Delete and Patch"] = with(two, fault, "-DKIND0=DELETE", "-DKIND1=PATCH")
		out["two processes, "+name+", Create and Delete"] = with(two, fault, "-DKIND0=CREATE", "-DKIND1=DELETE")
	}
	return out
}

// All three faults are explored in parts, by what is late, whose that is, which target another client writes, and which
// process dies: together these are all orders of steps. Without -three it is one small part, in which none dies.
func TestTwoProcessesMeetThreeFaults(t *testing.T) {
	parts := [][]string{with(two, "-DLATE=1", "-DFOREIGN=1", "-DLATEOF=1", "-DFOREIGNOF=1")}
	memory, table := "-DMEMLIM=4000", "-w24"
	if *three {
		all := with(two, "-DCRASHES=1", "-DLATE=1", "-DFOREIGN=1")
		parts, memory, table = nil, "-DMEMLIM=9000", "-w27"
		for _, foreign := range []string{"-DFOREIGNOF=0", "-DFOREIGNOF=1"} {
			parts = append(parts, with(all, foreign, "-DLATEOF=0"), with(all, foreign, "-DLATEOF=1"))
			for _, late := range []string{"-DLATEBY=0", "-DLATEBY=1"} {
				for _, crash := range []string{"-DCRASHOF=0", "-DCRASHOF=1"} {
					parts = append(parts, with(all, foreign, "-DLATEOF=STATUS", late, crash))
				}
			}
		}
	}
	for _, part := range parts {
		t.Run(strings.Join(part[len(two):], " "), func(t *testing.T) {
			out, _ := check(t, part, []string{"-DSAFETY", "-O3", memory}, table)
			assert.Contains(t, out, "errors: 0\n")
			t.Log(figures(out))
		})
	}
}

func TestTheTransactionEnds(t *testing.T) {
	out, _ := check(t, with(one, "-DLIVE"), []string{"-DNFAIR=3"}, "-a", "-f")
	assert.Contains(t, out, "errors: 0\n")
	assert.Contains(t, out, "fairness enabled")
	t.Log(figures(out))
}

// mutations are the seeded defects that the model has the parts for, with the assertion that
// Spin has to find violated first.
var mutations = []struct {
	name, breaks string
	config       []string
}{
	{"undone-only-if-recorded", "order", one},
	{"lost-reply-means-refused", "order", one},
	{"intent-not-taken-over", "atomicity", one},
	{"replay-without-resource-version", "no_lost_write", one},
	{"own-object-taken-for-foreign", "order", one},
	{"foreign-object-taken-for-own", "atomicity", one},
	{"conflicts-overwritten", "no_lost_write", one},
	{"owners-only-with-values", "atomicity", one},
	{"undo-in-list-order", "order", one},
	{"no-settling", "atomicity", one},
	{"unresolved-counts-as-rolled-back", "atomicity", one},
	{"final-phase-first", "nothing_left", one},
	{"observe-trusts-resource-version-alone", "atomicity", one},
	{"status-written-blindly", "atomicity", one},
	{"undo-of-create-unconditional", "no_lost_write", one},
	{"foreign-fields-deleted-with-ours", "no_lost_write", one},
	{"apply-without-uid", "atomicity", one},
	{"what-was-sent-is-withdrawn", "order", one},
	{"in-flight-kept-after-a-takeover", "atomicity", one},
	{"what-is-over-is-taken-for-recorded", "durable_intent", one},
	{"foreign-successor-taken-for-own", "atomicity", with(one, "-DKIND0=DELETE", "-DKIND1=PATCH")},
	{"hung-process-goes-on", "atomicity", with(two, "-DCRASHES=1")},
	// This one is not among the seeded defects.
	{"checkpoint-of-unknown-outcome-not-taken-over", "atomicity", one},
}

func TestEveryMutationBreaksItsGuarantee(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			flag := "-DM_" + strings.ToUpper(strings.ReplaceAll(m.name, "-", "_"))
			out, _ := check(t, with(m.config, flag), []string{"-DSAFETY", "-O0"}) // What it finds it finds soon.
			assert.Contains(t, out, "errors: 1\n")
			broken := regexp.MustCompile(`assertion violated \(+(\w+)\|\|`).FindStringSubmatch(out)
			require.NotNil(t, broken, out)
			assert.Equal(t, m.breaks, broken[1])
		})
	}
}

// A mutation that the table lacks would never be tried.
func TestEveryMutationIsInTheTable(t *testing.T) {
	model, err := os.ReadFile("saga.pml")
	require.NoError(t, err)
	found := map[string]bool{}
	for _, name := range regexp.MustCompile(`M_[A-Z_]+`).FindAllString(string(model), -1) {
		found[strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "M_"), "_", "-"))] = true
	}
	delete(found, "") // the comment at the top
	for _, m := range mutations {
		assert.True(t, found[m.name], m.name)
		delete(found, m.name)
	}
	assert.Empty(t, found)
}

// check has Spin explore a configuration, and returns what it prints, and all states of the automata.
func check(t *testing.T, config, build []string, run ...string) (out, states string) {
	t.Helper()
	dir := t.TempDir()
	model, err := filepath.Abs("saga.pml")
	require.NoError(t, err)
	// Statements that are merged (-o3 keeps them apart) would not be told to be reached.
	tool(t, dir, "spin", append(config, "-o3", "-a", model)...)
	tool(t, dir, "cc", append([]string{"-O2", "-w", "-DCOLLAPSE", "-DVECTORSZ=4096", "-DMEMLIM=4000", "-o", "pan", "pan.c"}, build...)...)
	out = tool(t, dir, filepath.Join(dir, "pan"), append([]string{"-m1000000", "-w24"}, run...)...)
	require.NotContains(t, out, "max search depth too small")
	return out, tool(t, dir, filepath.Join(dir, "pan"), "-d")
}

// tool runs a program, and fails the test where it is missing.
func tool(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err, "spin and a C compiler are needed: make spin installs spin from Debian")
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), "%s\n%s", strings.Join(cmd.Args, " "), &out)
	return out.String()
}

var (
	inProctype = regexp.MustCompile(`^(?:unreached in )?(?:proctype|init) ?(\S*)$`)
	stateOf    = regexp.MustCompile(`^\s*state\s+(\d+) -.*saga\.pml:(\d+) =>`)
	notReached = regexp.MustCompile(`saga\.pml:(\d+), state (\d+), "(.*)"`)
)

// cover adds the lines that have statements, and those of which one was reached. An inline is at
// its lines once for each place that it is used at.
func cover(out, states string, all, reached map[string]bool) {
	missed, proctype := map[string]bool{}, ""
	for line := range strings.SplitSeq(out, "\n") {
		if m := inProctype.FindStringSubmatch(line); m != nil {
			proctype = m[1]
		}
		if m := notReached.FindStringSubmatch(line); m != nil {
			missed[proctype+" "+m[2]] = true
			if m[3] == "-end-" {
				all["end of "+proctype] = true
			}
		}
	}
	for line := range strings.SplitSeq(states, "\n") {
		if m := inProctype.FindStringSubmatch(line); m != nil {
			proctype = m[1]
		}
		if m := stateOf.FindStringSubmatch(line); m != nil {
			all["line "+m[2]] = true
			if !missed[proctype+" "+m[1]] {
				reached["line "+m[2]] = true
			}
		}
	}
}

// figures are what was explored.
func figures(out string) string {
	return strings.Join(regexp.MustCompile(`(?m)^.*(states, stored|depth reached|total actual memory|elapsed time).*$`).FindAllString(out, -1), "\n")
}
