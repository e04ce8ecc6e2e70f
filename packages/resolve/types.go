package resolve

import (
	"context"
	"fmt"
)

// Package is one version of a package.
type Package struct {
	// Source is the repository of its image, without tag and digest.
	Source string
	// Version is the tag, or the digest.
	Version string
	// Dependencies are in the order in which the package lists them.
	Dependencies []Dependency
}

// String names the version.
func (p Package) String() string { return p.Source + " " + p.Version }

// Dependency is a package that another one needs.
type Dependency struct {
	Source string
	// Range is that of the versions that will do.
	Range string
}

// Catalog knows which packages there are.
type Catalog interface {
	// Versions returns the tags of a source that are full versions, the newest first. A
	// source that does not exist has none.
	Versions(ctx context.Context, source string) ([]string, error)
	// Dependencies returns those of one version, which is a tag or a digest. An
	// UnusableError rules out that version alone; every other error ends the search.
	Dependencies(ctx context.Context, source, version string) ([]Dependency, error)
}

// UnusableError is the error of a version that can never be installed here.
type UnusableError struct {
	// Why is a sentence without its subject, such as: is no package.
	Why string
}

func (e *UnusableError) Error() string { return e.Why }

// Problem is what to solve.
type Problem struct {
	// Installed are the packages that there are. No two have the same source.
	Installed []Package
	// Wanted are packages at the versions that they must have afterwards.
	Wanted []Package
	// Removed are the sources that must be gone afterwards.
	Removed []string
	// MaxSteps is how many versions are considered until the search is given up. The
	// default is 20000.
	MaxSteps int
}

// Move is what happens to one source.
type Move struct {
	Source string
	// From is empty for a package that comes, and To for one that goes.
	From, To string
}

// Solution is the whole state afterwards.
type Solution struct {
	// Packages has dependencies before those that need them.
	Packages []Package
	// Moves are what differs from before, in the order of Packages; what goes comes last,
	// those that need others first.
	Moves []Move
}

// Find returns the package of a source.
func (s Solution) Find(source string) (Package, bool) {
	for _, p := range s.Packages {
		if p.Source == source {
			return p, true
		}
	}
	return Package{}, false
}

// GivenUpError is the error of a search that took too long.
type GivenUpError struct{ Steps int }

func (e *GivenUpError) Error() string {
	return fmt.Sprintf("the search for versions was given up after %d steps: install some of the dependencies first", e.Steps)
}
