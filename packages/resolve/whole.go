package resolve

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// state is the whole state as decided: what is decided, and what stays as it is.
func (s *search) state() map[string]Package {
	out := map[string]Package{}
	for source, p := range s.installed {
		if !s.removed[source] {
			out[source] = p
		}
	}
	for source, c := range s.decided {
		out[source] = c.Package
	}
	return out
}

// whole checks the whole state.
func (s *search) whole(ctx context.Context) (*failure, error) {
	state := s.state()
	if cycle := cycleIn(state); cycle != nil {
		f := &failure{blame: map[string]bool{}, conflict: &Conflict{Reason: CircularDependency, Source: cycle[0], Cycle: cycle}}
		for _, source := range cycle {
			if err := s.blameFor(ctx, f, source); err != nil {
				return nil, err
			}
		}
		return f, nil
	}
	for _, source := range slices.Sorted(maps.Keys(state)) {
		for _, d := range state[source].Dependencies {
			on, ok := state[d.Source]
			if ok && allows(d.Range, on.Version) {
				continue
			}
			f := &failure{blame: map[string]bool{}, conflict: &Conflict{
				Source: d.Source, Removed: s.removed[d.Source],
				Asked: append(s.asks(d.Source), Ask{Chain: []string{state[source].String()}, Stays: true, Range: d.Range}),
			}}
			if ok {
				f.conflict.Tried = []Try{{Version: on.Version}}
			}
			f.conflict.judge()
			if err := s.blameFor(ctx, f, source); err != nil {
				return nil, err
			}
			if err := s.blameFor(ctx, f, d.Source); err != nil {
				return nil, err
			}
			return f, nil
		}
	}
	return nil, nil
}

// blameFor blames those whose decision could make another version of a source part of the
// state: itself, if it is decided, or else all of which some version needs it, by however
// many steps.
func (s *search) blameFor(ctx context.Context, f *failure, source string) error {
	if s.decided[source] != nil {
		f.blame[source] = true
		return nil
	}
	for by := range s.decided {
		if _, fixed := s.wanted[by]; fixed {
			continue
		}
		leads, err := s.leads(ctx, by, source, map[string]bool{})
		if err != nil {
			return err
		}
		if leads {
			f.blame[by] = true
		}
	}
	return nil
}

// leads reports whether some version of a source needs another source, by however many steps.
func (s *search) leads(ctx context.Context, from, to string, seen map[string]bool) (bool, error) {
	seen[from] = true
	for v, err := range s.candidates(ctx, from) {
		if err != nil {
			return false, err
		}
		if s.steps++; s.steps > s.limit {
			return false, &GivenUpError{Steps: s.limit}
		}
		o, err := s.dependencies(ctx, from, v)
		if err != nil {
			return false, err
		}
		for _, d := range o.dependencies {
			if d.Source == to {
				return true, nil
			}
			if seen[d.Source] {
				continue
			}
			if found, err := s.leads(ctx, d.Source, to, seen); found || err != nil {
				return found, err
			}
		}
	}
	return false, nil
}

// cycleIn returns a cycle in order, the first package also as the last; none if there is
// none.
func cycleIn(state map[string]Package) []string {
	const open, done = 1, 2
	mark, path := map[string]int{}, []string(nil)
	var visit func(source string) []string
	visit = func(source string) []string {
		switch mark[source] {
		case done:
			return nil
		case open:
			return append(slices.Clone(path[slices.Index(path, source):]), source)
		}
		mark[source] = open
		path = append(path, source)
		for _, d := range state[source].Dependencies {
			if _, ok := state[d.Source]; !ok {
				continue
			}
			if cycle := visit(d.Source); cycle != nil {
				return cycle
			}
		}
		path = path[:len(path)-1]
		mark[source] = done
		return nil
	}
	for _, source := range slices.Sorted(maps.Keys(state)) {
		if cycle := visit(source); cycle != nil {
			return cycle
		}
	}
	return nil
}

// solution is the state with its moves.
func (s *search) solution() Solution {
	state := s.state()
	out := Solution{Packages: Sorted(slices.Collect(maps.Values(state)))}
	for _, p := range out.Packages {
		if from := s.installed[p.Source].Version; from != p.Version {
			out.Moves = append(out.Moves, Move{Source: p.Source, From: from, To: p.Version})
		}
	}
	before := Sorted(slices.Collect(maps.Values(s.installed)))
	slices.Reverse(before)
	for _, p := range before {
		if s.removed[p.Source] {
			out.Moves = append(out.Moves, Move{Source: p.Source, From: p.Version})
		}
	}
	return out
}

// Sorted orders packages so that dependencies come before those that need them, and else by
// their names. Of a cycle one dependency is disregarded.
func Sorted(packages []Package) []Package {
	all := map[string]Package{}
	for _, p := range packages {
		all[p.Source] = p
	}
	var out []Package
	seen := map[string]bool{}
	var visit func(source string)
	visit = func(source string) {
		p, ok := all[source]
		if !ok || seen[source] {
			return
		}
		seen[source] = true
		needs := slices.Clone(p.Dependencies)
		slices.SortStableFunc(needs, func(a, b Dependency) int { return strings.Compare(a.Source, b.Source) })
		for _, d := range needs {
			visit(d.Source)
		}
		out = append(out, p)
	}
	for _, source := range slices.Sorted(maps.Keys(all)) {
		visit(source)
	}
	return out
}
