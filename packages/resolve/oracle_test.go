package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"janus.io/janus/packages/resolve"
	"janus.io/janus/packages/version"
)

// universe is a small world of packages: a catalog, and what is installed and wanted.
type universe struct {
	resolve.Problem
	packages map[string]map[string][]resolve.Dependency
	// broken are versions that cannot be used.
	broken map[string]bool
	// asked counts what the solver asked for.
	asked map[string]int
}

func (u *universe) Versions(_ context.Context, source string) ([]string, error) {
	u.asked[source]++
	var tags []string
	for v := range u.packages[source] {
		tags = append(tags, v)
	}
	return version.Newest(tags), nil
}

func (u *universe) Dependencies(_ context.Context, source, v string) ([]resolve.Dependency, error) {
	u.asked[source+" "+v]++
	there, ok := u.packages[source][v]
	if !ok || u.broken[source+" "+v] {
		return nil, &resolve.UnusableError{Why: "is no package"}
	}
	return there, nil
}

// String is the universe as one reads it.
func (u *universe) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "installed %v\nwanted %v\nremoved %v\nbroken %v\n", u.Installed, u.Wanted, u.Removed, u.broken)
	for _, source := range sorted(u.packages) {
		for _, v := range sorted(u.packages[source]) {
			fmt.Fprintf(&b, "%s %s needs %v\n", source, v, u.packages[source][v])
		}
	}
	return b.String()
}

func sorted[V any](m map[string]V) []string {
	var out []string
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// digest is a version that is none of the semantic ones.
var digest = "sha256:" + strings.Repeat("01", 32)

var texts = []string{">=1.0.0", ">=2.0.0", "<2.0.0", "<3.0.0", ">=1.0.0,<3.0.0", "1.0.0", "2.0.0", "!=2.0.0", "^1.0.0 || ^3.0.0", ">=4.0.0", ">=1.0.0 <2.0.0", digest}

// generated is a universe of a seed.
func generated(seed uint64) *universe {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // G404: it is to be the same each time.
	u := &universe{packages: map[string]map[string][]resolve.Dependency{}, broken: map[string]bool{}, asked: map[string]int{}}
	sources := []string{"a", "b", "c", "d", "e"}[:2+r.IntN(4)]
	for i, source := range sources {
		u.packages[source] = map[string][]resolve.Dependency{}
		for n := range 1 + r.IntN(3) {
			u.packages[source][fmt.Sprintf("v%d.0.0", n+1)] = u.needs(r, sources, i)
		}
		if r.IntN(12) == 0 {
			u.packages[source][digest] = u.needs(r, sources, i)
		}
		if r.IntN(10) == 0 {
			u.broken[source+" v2.0.0"] = true
		}
	}
	for _, source := range sources {
		if r.IntN(2) == 0 {
			continue
		}
		tags := sorted(u.packages[source])
		v := tags[r.IntN(len(tags))]
		if u.broken[source+" "+v] {
			continue
		}
		u.Installed = append(u.Installed, resolve.Package{Source: source, Version: v, Dependencies: u.packages[source][v]})
	}
	if r.IntN(8) == 0 && len(u.Installed) > 0 {
		u.Removed = []string{u.Installed[r.IntN(len(u.Installed))].Source}
		if r.IntN(2) == 0 {
			return u
		}
	}
	for range 1 + r.IntN(2) {
		source := sources[r.IntN(len(sources))]
		tags := sorted(u.packages[source])
		v := tags[r.IntN(len(tags))]
		if u.broken[source+" "+v] || slices.Contains(u.Removed, source) {
			continue
		}
		if slices.ContainsFunc(u.Wanted, func(p resolve.Package) bool { return p.Source == source }) {
			continue
		}
		u.Wanted = append(u.Wanted, resolve.Package{Source: source, Version: v, Dependencies: u.packages[source][v]})
	}
	return u
}

// needs are the dependencies of a version: mostly of later sources, so that cycles are rare.
func (u *universe) needs(r *rand.Rand, sources []string, i int) []resolve.Dependency {
	var out []resolve.Dependency
	for j, source := range sources {
		if j > i && r.IntN(2) == 0 || r.IntN(25) == 0 {
			out = append(out, resolve.Dependency{Source: source, Range: texts[r.IntN(len(texts))]})
		}
	}
	if r.IntN(20) == 0 {
		out = append(out, resolve.Dependency{Source: "nowhere", Range: ">=1.0.0"})
	}
	return out
}

// options are the versions that a source may have, the preferred ones first; "" is none.
func (u *universe) options(source string) []string {
	if slices.Contains(u.Removed, source) {
		return []string{""}
	}
	for _, w := range u.Wanted {
		if w.Source == source {
			return []string{w.Version}
		}
	}
	var out []string
	for _, p := range u.Installed {
		if p.Source == source {
			out = append(out, p.Version)
		}
	}
	welcome := func(v string) bool {
		for _, p := range u.Installed {
			for _, d := range p.Dependencies {
				if d.Source == source && !within(d.Range, v) {
					return false
				}
			}
		}
		return true
	}
	tags := version.Newest(sorted(u.packages[source]))
	for _, want := range []bool{true, false} {
		for _, v := range tags {
			if welcome(v) == want && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	if _, ok := u.packages[source][digest]; ok && !slices.Contains(out, digest) {
		out = append(out, digest)
	}
	out = slices.DeleteFunc(out, func(v string) bool { return u.unusable(source, v) })
	if !slices.ContainsFunc(u.Installed, func(p resolve.Package) bool { return p.Source == source }) {
		out = append(out, "")
	}
	return out
}

// unusable reports whether nothing may come to a version: it is broken, or has a range that
// is none. What is installed or wanted is there.
func (u *universe) unusable(source, v string) bool {
	if slices.ContainsFunc(u.Installed, func(p resolve.Package) bool { return p.Source == source && p.Version == v }) {
		return false
	}
	return u.broken[source+" "+v] || slices.ContainsFunc(u.packages[source][v], func(d resolve.Dependency) bool {
		_, err := version.ParseRange(d.Range)
		return err != nil
	})
}

var judged = map[[2]string]bool{}

func within(text, v string) bool {
	key := [2]string{text, v}
	if known, ok := judged[key]; ok {
		return known
	}
	r, err := version.ParseRange(text)
	judged[key] = err == nil && r.Allows(v)
	return judged[key]
}

// ranks are the places of the versions of a state among the options of each source.
type ranks []int

// brute returns the best states: all valid ones that move the fewest installed packages.
func (u *universe) brute() (best []ranks, moves int) {
	sources := sorted(u.packages)
	options := make([][]string, len(sources))
	for i, source := range sources {
		options[i] = u.options(source)
	}
	moves = len(sources) + 1
	at := make(ranks, len(sources))
	for {
		if n, ok := u.valid(sources, options, at); ok && n <= moves {
			if n < moves {
				best, moves = nil, n
			}
			best = append(best, slices.Clone(at))
		}
		i := 0
		for i < len(at) {
			if at[i]++; at[i] < len(options[i]) {
				break
			}
			at[i] = 0
			i++
		}
		if i == len(at) {
			return best, moves
		}
	}
}

// valid reports whether a state is one, and how many installed packages it moves.
func (u *universe) valid(sources []string, options [][]string, at ranks) (int, bool) {
	state := map[string]string{}
	for i, source := range sources {
		if len(options[i]) == 0 {
			return 0, false
		}
		if v := options[i][at[i]]; v != "" {
			state[source] = v
		}
	}
	for source, v := range state {
		for _, d := range u.packages[source][v] {
			if on, ok := state[d.Source]; !ok || !within(d.Range, on) {
				return 0, false
			}
		}
	}
	reached, path := map[string]bool{}, map[string]bool{}
	cyclic := false
	var walk func(source string)
	walk = func(source string) {
		if cyclic = cyclic || path[source]; reached[source] || cyclic {
			return
		}
		reached[source], path[source] = true, true
		for _, d := range u.packages[source][state[source]] {
			walk(d.Source)
		}
		delete(path, source)
	}
	for _, w := range u.Wanted {
		walk(w.Source)
	}
	moves := 0
	for source, v := range state {
		there := slices.IndexFunc(u.Installed, func(p resolve.Package) bool { return p.Source == source })
		wanted := slices.ContainsFunc(u.Wanted, func(p resolve.Package) bool { return p.Source == source })
		same := there >= 0 && u.Installed[there].Version == v
		if !same && !reached[source] {
			return 0, false
		}
		if there >= 0 && !same && !wanted {
			moves++
		}
	}
	for source := range state {
		walk(source)
	}
	return moves, !cyclic
}

// check compares the answer of the solver with that of the brute force.
func (u *universe) check(t *testing.T) (solved bool) {
	solution, err := resolve.Solve(t.Context(), u.Problem, u)
	for _, w := range u.Wanted {
		if u.unusable(w.Source, w.Version) {
			// The brute force has no such option; the solver must say so.
			require.Error(t, err, u)
			return false
		}
	}
	best, moves := u.brute()
	var conflict *resolve.Conflict
	if errors.As(err, &conflict) {
		require.Empty(t, best, "%v\nthere is a solution, but: %v", u, err)
		require.NotEmpty(t, conflict.Reason, u)
		require.NotEmpty(t, conflict.Error(), u)
		return false
	}
	require.NoError(t, err, u)
	require.NotEmpty(t, best, "%v\nthere is no solution, but: %v", u, solution)
	sources := sorted(u.packages)
	got, moved := make(ranks, len(sources)), 0
	for i, source := range sources {
		p, _ := solution.Find(source)
		got[i] = slices.Index(u.options(source), p.Version)
		require.GreaterOrEqual(t, got[i], 0, "%v\n%s has no such version: %v", u, source, solution)
	}
	for _, m := range solution.Moves {
		wanted := slices.ContainsFunc(u.Wanted, func(p resolve.Package) bool { return p.Source == m.Source })
		if m.From != "" && m.To != "" && !wanted {
			moved++
		}
	}
	require.Equal(t, moves, moved, "%v\nanother solution moves fewer packages: %v", u, solution)
	require.Contains(t, best, got, "%v\nit is none of the valid states: %v", u, solution)
	for _, other := range best {
		require.False(t, dominates(other, got), "%v\n%v is preferred to %v", u, other, got)
	}
	return true
}

// dominates reports whether a state has a version that is preferred, and none that is less.
func dominates(a, b ranks) bool {
	better := false
	for i := range a {
		if a[i] > b[i] {
			return false
		}
		better = better || a[i] < b[i]
	}
	return better
}

func TestTheSolverIsRightInTenThousandUniverses(t *testing.T) {
	solved := 0
	for seed := range uint64(10_000) {
		if generated(seed).check(t) {
			solved++
		}
	}
	require.Greater(t, solved, 2000, "too few universes have a solution")
	require.Less(t, solved, 8000, "too many universes have a solution")
}
