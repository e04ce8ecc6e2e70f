package faults

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// perWorkload is how many numbers the plans of one workload share.
const perWorkload = 1_000_000

// hash returns a number that depends on all of some values alike.
func hash(values ...any) uint64 {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%#v", values)))
	return binary.BigEndian.Uint64(sum[:8])
}

// block is where the numbers of the plans of a workload begin.
func block(workload string) uint64 { return (100 + hash(workload)%900) * perWorkload }

// number follows from the name alone: it is the same in every run, whatever Janus did
// while the calls were learned, and stays when workloads are added. Two plans may have
// the same; then both are run.
func (p scenario) number() uint64 { return block(p.workload) + hash(p.String())%perWorkload }

// called returns the plans that a name means, or a number with or without #.
func (w *world) called(t *testing.T, name string) []scenario {
	t.Helper()
	number, err := strconv.ParseUint(strings.TrimPrefix(name, "#"), 10, 64)
	if err != nil {
		p, err := parsePlan(name)
		require.NoError(t, err)
		return []scenario{p}
	}
	var out []scenario
	for _, of := range workloads(t) {
		if block(of.Name) != number/perWorkload*perWorkload {
			continue
		}
		for _, p := range w.plans(of) {
			if p.number() == number {
				t.Logf("%d is %s", number, p)
				out = append(out, p)
			}
		}
	}
	require.NotEmpty(t, out, "no plan has the number %d", number)
	return out
}

// writeList writes the numbers and names of plans to a file, if one is named.
func writeList(t *testing.T, all []scenario) {
	t.Helper()
	if *namesFlag == "" {
		return
	}
	var lines []string
	for _, p := range all {
		lines = append(lines, fmt.Sprintf("%d %s\n", p.number(), p))
	}
	slices.Sort(lines)
	require.NoError(t, os.WriteFile(*namesFlag, []byte(strings.Join(lines, "")), 0o600))
}

// choose picks one of some plans. It depends on each of them alike, so that the choice
// stays the same where a few come or go, as they do from one learning to another.
func choose(among []scenario, values ...any) scenario {
	var best scenario
	least := ^uint64(0)
	for _, p := range among {
		if h := hash(append([]any{p.String()}, values...)...); h <= least {
			best, least = p, h
		}
	}
	return best
}
