package resolve_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/packages/resolve"
)

// read makes a universe of lines such as "platform v1.0.0: b >=v1.0.0; c ~v2.0.0". A line that
// begins with + is of an installed package, and one with * of what is wanted.
func read(t *testing.T, lines ...string) *universe {
	t.Helper()
	u := &universe{packages: map[string]map[string][]resolve.Dependency{}, broken: map[string]bool{}, asked: map[string]int{}}
	for _, line := range lines {
		mark, line := line[:1], strings.TrimLeft(line, "+*- ")
		head, tail, _ := strings.Cut(line, ": ")
		source, v, ok := strings.Cut(strings.TrimSpace(head), " ")
		if mark == "-" {
			u.Removed = append(u.Removed, source)
			continue
		}
		require.True(t, ok, line)
		p := resolve.Package{Source: source, Version: v}
		for need := range strings.SplitSeq(tail, ";") {
			if on, text, ok := strings.Cut(strings.TrimSpace(need), " "); ok {
				p.Dependencies = append(p.Dependencies, resolve.Dependency{Source: on, Range: text})
			}
		}
		if u.packages[source] == nil {
			u.packages[source] = map[string][]resolve.Dependency{}
		}
		u.packages[source][v] = p.Dependencies
		switch mark {
		case "+":
			u.Installed = append(u.Installed, p)
		case "*":
			u.Wanted = append(u.Wanted, p)
		}
	}
	return u
}

func TestASolutionChangesAsLittleAsItCan(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"a dependency comes at its newest version": {
			[]string{"* app v1.0.0: lib >=v1.0.0", "lib v1.0.0", "lib v1.1.0", "lib v2.0.0-rc.1"}, "lib:>v1.1.0 app:>v1.0.0",
		},
		"an installed dependency stays, though there is a newer one": {
			[]string{"* app v1.0.0: lib >=v1.0.0", "+ lib v1.0.0", "lib v1.1.0"}, "app:>v1.0.0",
		},
		"an installed dependency moves no further than others allow": {
			[]string{"* app v1.0.0: lib >=v1.1.0", "+ lib v1.0.0", "lib v1.1.0", "lib v1.2.0", "lib v2.0.0", "+ other v1.0.0: lib <v2.0.0"}, "lib:v1.0.0>v1.2.0 app:>v1.0.0",
		},
		"a newer version that brings a conflict is passed over": {
			[]string{"* app v1.0.0: x >=v1.0.0; y >=v1.0.0", "x v1.0.0: z >=v1.0.0", "x v2.0.0: z >=v2.0.0", "y v1.0.0: z <v2.0.0", "z v1.0.0", "z v2.0.0"},
			"z:>v1.0.0 x:>v1.0.0 y:>v1.0.0 app:>v1.0.0",
		},
		"what stands in the way moves too, if what is wanted needs it": {
			[]string{"* app v1.0.0: lib >=v2.0.0; tool >=v1.0.0", "+ lib v1.0.0", "lib v2.0.0", "+ tool v1.0.0: lib <v2.0.0", "tool v1.1.0: lib >=v1.0.0"},
			"lib:v1.0.0>v2.0.0 tool:v1.0.0>v1.1.0 app:>v1.0.0",
		},
		"an upgrade keeps what no one needs any more": {
			[]string{"+ app v1.0.0: lib >=v1.0.0", "* app v2.0.0", "+ lib v1.0.0"}, "app:v1.0.0>v2.0.0",
		},
		"a digest is taken as it is": {
			[]string{"* app v1.0.0: lib " + digest, "lib v1.0.0", "lib " + digest}, "lib:>" + digest + " app:>v1.0.0",
		},
		"what is deleted goes before what it needs": {
			[]string{"+ app v1.0.0: lib >=v1.0.0", "+ lib v1.0.0", "- lib", "- app"}, "app:v1.0.0> lib:v1.0.0>",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := read(t, c.lines...)
			solution, err := resolve.Solve(t.Context(), u.Problem, u)
			require.NoError(t, err)
			var got []string
			for _, m := range solution.Moves {
				got = append(got, m.Source+":"+m.From+">"+m.To)
			}
			assert.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

func TestAConflictNamesTheChainOfRanges(t *testing.T) {
	for name, c := range map[string]struct {
		lines  []string
		reason resolve.Reason
		want   string
	}{
		"no version at all": {
			[]string{"* app v1.0.0: lib >=v1.1.0"}, resolve.MissingDependency,
			"app v1.0.0 requires lib >=v1.1.0, but it has no version",
		},
		"no version within the range": {
			[]string{"* app v1.0.0: lib >=v1.1.0", "lib v1.0.0", "lib v0.9.0"}, resolve.MissingDependency,
			"app v1.0.0 requires lib >=v1.1.0, but no compatible version was found among v1.0.0, v0.9.0",
		},
		"two ranges without a common version": {
			[]string{"* app v1.0.0: x v1.0.0; y v1.0.0", "x v1.0.0: z >=v2.0.0", "y v1.0.0: z <v2.0.0", "z v1.0.0", "z v2.0.0"}, resolve.VersionConflict,
			"app v1.0.0 > x v1.0.0 requires z >=v2.0.0; app v1.0.0 > y v1.0.0 requires <v2.0.0; no version is within all these ranges: there are v2.0.0, v1.0.0",
		},
		"an installed package that stays": {
			[]string{"* app v1.0.0: lib >=v2.0.0", "+ lib v1.0.0", "lib v2.0.0", "+ other v3.1.0: lib <v2.0.0"}, resolve.VersionConflict,
			"app v1.0.0 requires lib >=v2.0.0; other v3.1.0 (installed) requires <v2.0.0; no version is within all these ranges: there are v1.0.0, v2.0.0",
		},
		"a digest against a range": {
			[]string{"* app v1.0.0: lib >=v1.0.0", "+ lib " + digest, "+ other v1.0.0: lib " + digest, "lib v1.0.0"}, resolve.VersionConflict,
			"app v1.0.0 requires lib >=v1.0.0; other v1.0.0 (installed) requires " + digest + "; no version is within all these ranges: there are " + digest + ", v1.0.0",
		},
		"a cycle, in order": {
			[]string{"* app v1.0.0: x v1.0.0", "x v1.0.0: y v1.0.0", "y v1.0.0: app v1.0.0"}, resolve.CircularDependency,
			"packages depend on each other: app > x > y > app",
		},
		"a range that Crossplane cannot parse": {
			[]string{"* app v1.0.0: lib >=v1.0.0 <v2.0.0", "lib v1.0.0"}, resolve.VersionConflict,
			`app cannot be installed: v1.0.0 (requires lib, but ">=v1.0.0 <v2.0.0" is no range: the parts of a range are joined by commas, as in ">=v1.0.0,<v2.0.0")`,
		},
		"a package that others need is to be deleted": {
			[]string{"+ app v1.0.0: lib >=v1.0.0", "+ lib v1.0.0", "- lib"}, resolve.MissingDependency,
			"lib is to be deleted, but app v1.0.0 (installed) requires lib >=v1.0.0",
		},
		"a dependency that is missing already": {
			[]string{"+ app v1.0.0: lib >=v1.0.0", "* other v1.0.0"}, resolve.MissingDependency,
			"app v1.0.0 (installed) requires lib >=v1.0.0, which is not installed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := read(t, c.lines...)
			_, err := resolve.Solve(t.Context(), u.Problem, u)
			var conflict *resolve.Conflict
			require.ErrorAs(t, err, &conflict)
			assert.Equal(t, c.want, conflict.Error())
			assert.Equal(t, c.reason, conflict.Reason)
		})
	}
}

func TestNothingIsAskedOfARegistryIfWhatIsInstalledWillDo(t *testing.T) {
	u := read(t, "* app v2.0.0: lib >=v1.0.0", "+ app v1.0.0: lib >=v1.0.0", "+ lib v1.0.0: base >=v1.0.0", "+ base v1.0.0", "base v2.0.0")
	_, err := resolve.Solve(t.Context(), u.Problem, u)
	require.NoError(t, err)
	assert.Empty(t, u.asked)
}

// The versions of what has nothing to do with a conflict are not tried one by one.
func TestAConflictIsFoundInALargeUniverse(t *testing.T) {
	lines := []string{"* app v1.0.0: a >=v1.0.0; b >=v1.0.0; c >=v1.0.0; lib >=v2.0.0", "+ lib v1.0.0", "lib v2.0.0", "+ other v1.0.0: lib <v2.0.0"}
	for n := range 50 {
		for _, source := range []string{"a", "b", "c"} {
			lines = append(lines, fmt.Sprintf("%s v1.%d.0", source, n))
		}
	}
	u := read(t, lines...)
	u.MaxSteps = 2000
	_, err := resolve.Solve(t.Context(), u.Problem, u)
	var conflict *resolve.Conflict
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, []string{"app", "lib"}, conflict.Sources())
	assert.Equal(t, "app v1.0.0 requires lib >=v2.0.0; other v1.0.0 (installed) requires <v2.0.0; no version is within all these ranges: there are v1.0.0, v2.0.0", conflict.Tried[0].Because.Error())

	u = read(t, lines...)
	u.MaxSteps = 10
	_, err = resolve.Solve(t.Context(), u.Problem, u)
	assert.EqualError(t, err, "the search for versions was given up after 10 steps: install some of the dependencies first")
}

// unreachable is a registry that does not answer.
type unreachable struct{ *universe }

var errUnreachable = errors.New("no answer")

func (unreachable) Versions(context.Context, string) ([]string, error) { return nil, errUnreachable }

func TestARegistryThatDoesNotAnswerIsNoConflict(t *testing.T) {
	u := read(t, "* app v1.0.0: lib >=v1.0.0")
	_, err := resolve.Solve(t.Context(), u.Problem, unreachable{u})
	require.ErrorIs(t, err, errUnreachable)
	assert.EqualError(t, err, "list the versions of package lib: no answer")
}

func TestAProblemThatContradictsItselfIsRefused(t *testing.T) {
	for want, lines := range map[string][]string{
		"package app is installed twice":                {"+ app v1.0.0", "+ app v1.0.0"},
		"package app is wanted and to be deleted":       {"* app v1.0.0", "- app"},
		"package app is wanted as v1.0.0 and as v2.0.0": {"* app v1.0.0", "* app v2.0.0"},
	} {
		u := read(t, lines...)
		_, err := resolve.Solve(t.Context(), u.Problem, u)
		assert.EqualError(t, err, want)
	}
}
