package resolve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"janus.io/janus/packages/version"
)

// defaultSteps is Problem.MaxSteps where it is not set.
const defaultSteps = 20_000

// search is a depth-first search with backjumping: a version that fails says which decisions
// are to blame, and those in between are not tried again.
type search struct {
	catalog Catalog

	installed map[string]Package
	wanted    map[string]string
	removed   map[string]bool

	// What the catalog has said.
	known map[id]outcome
	tags  map[string][]string

	// decided are the versions chosen so far, and order is that in which they were.
	decided map[string]*choice
	order   []string

	// limit bounds the steps, and moves the installed packages that may move.
	limit, steps, moves int
	// short says that a state was ruled out by moves alone.
	short bool
}

type id struct{ source, version string }

type outcome struct {
	dependencies []Dependency
	unusable     *UnusableError
}

// choice is a version that is being tried.
type choice struct {
	Package
	// by is the source that first asked for it; empty for what is wanted.
	by string
	// moves says that another version is installed.
	moves bool
}

// Solve finds the state after a change. Its error is a *Conflict if there is none, and a
// *GivenUpError if that was not found out.
func Solve(ctx context.Context, p Problem, catalog Catalog) (Solution, error) {
	s := &search{
		catalog: catalog, limit: p.MaxSteps,
		installed: map[string]Package{}, wanted: map[string]string{}, removed: map[string]bool{},
		known: map[id]outcome{}, tags: map[string][]string{}, decided: map[string]*choice{},
	}
	if s.limit == 0 {
		s.limit = defaultSteps
	}
	agenda, err := s.begin(p)
	if err != nil {
		return Solution{}, err
	}
	// First without moving any installed package, then with one that moves, and so on: the
	// first solution moves the fewest.
	for {
		s.short = false
		failed, err := s.next(ctx, agenda)
		switch {
		case err != nil:
			return Solution{}, err
		case failed == nil:
			return s.solution(), nil
		case !s.short:
			return Solution{}, failed.conflict
		}
		s.moves++
	}
}

func (s *search) begin(p Problem) ([]need, error) {
	for _, source := range p.Removed {
		s.removed[source] = true
	}
	for _, there := range p.Installed {
		if _, twice := s.installed[there.Source]; twice {
			return nil, fmt.Errorf("package %s is installed twice", there.Source)
		}
		s.installed[there.Source] = there
		s.known[id{there.Source, there.Version}] = outcome{dependencies: there.Dependencies}
	}
	var agenda []need
	for _, w := range p.Wanted {
		if s.removed[w.Source] {
			return nil, fmt.Errorf("package %s is wanted and to be deleted", w.Source)
		}
		if other, twice := s.wanted[w.Source]; twice && other != w.Version {
			return nil, fmt.Errorf("package %s is wanted as %s and as %s", w.Source, other, w.Version)
		}
		s.wanted[w.Source] = w.Version
		s.known[id{w.Source, w.Version}] = outcomeOf(w.Dependencies)
		agenda = append(agenda, need{source: w.Source})
	}
	return agenda, nil
}

// dependencies are those of a version, and what rules it out by itself.
func (s *search) dependencies(ctx context.Context, source, v string) (outcome, error) {
	if o, ok := s.known[id{source, v}]; ok {
		return o, nil
	}
	var o outcome
	dependencies, err := s.catalog.Dependencies(ctx, source, v)
	if err != nil && !errors.As(err, &o.unusable) {
		return o, fmt.Errorf("read package %s %s: %w", source, v, err)
	}
	if o.unusable == nil {
		o = outcomeOf(dependencies)
	}
	s.known[id{source, v}] = o
	return o, nil
}

// outcomeOf rules out a version with a range that is none: it would keep Crossplane from
// resolving the dependencies of all packages.
func outcomeOf(dependencies []Dependency) outcome {
	o := outcome{dependencies: dependencies}
	for _, d := range dependencies {
		if _, err := version.ParseRange(d.Range); err != nil {
			o.unusable = &UnusableError{"requires " + d.Source + ", but " + err.Error()}
		}
	}
	return o
}

// versions are the tags of a source, those first that the ranges of all installed packages
// allow.
func (s *search) versions(ctx context.Context, source string) ([]string, error) {
	if tags, ok := s.tags[source]; ok {
		return tags, nil
	}
	all, err := s.catalog.Versions(ctx, source)
	if err != nil {
		return nil, fmt.Errorf("list the versions of package %s: %w", source, err)
	}
	var welcome, others []string
	for _, tag := range all {
		if s.welcome(source, tag) {
			welcome = append(welcome, tag)
		} else {
			others = append(others, tag)
		}
	}
	s.tags[source] = slices.Concat(welcome, others)
	return s.tags[source], nil
}

func (s *search) welcome(source, v string) bool {
	for _, there := range s.installed {
		for _, d := range there.Dependencies {
			if d.Source == source && !allows(d.Range, v) {
				return false
			}
		}
	}
	return true
}

// allows reports whether a version is within a range; nothing is within what is no range.
func allows(text, v string) bool {
	r, err := version.ParseRange(text)
	return err == nil && r.Allows(v)
}
