// Package installed has what a cluster has of packages: the packages, their revisions,
// Crossplane's Lock, and what Crossplane itself is. It reads nothing by itself.
package installed

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/packages/image"
	"janus.io/janus/packages/resolve"
)

// Group is the API group of packages, and Version that in which they are written.
const (
	Group   = "pkg.crossplane.io"
	Version = "v1"
)

// LockName is the name of Crossplane's Lock.
const LockName = "lock"

// State is all of it.
type State struct {
	Lock       Lock
	Packages   []Package
	Revisions  []Revision
	Configs    image.Configs
	Crossplane Crossplane
}

// Crossplane is what is known of Crossplane itself.
type Crossplane struct {
	// Version is empty if it is not known.
	Version string
	// Upgrades says that Crossplane moves installed dependencies by itself.
	Upgrades bool
}

// Lock is Crossplane's list of the active revisions.
type Lock struct {
	// Generation rises with each change of its packages.
	Generation int64
	// Resolved is the condition of that name; nil if there is none, as without packages.
	Resolved *Condition
	Packages []Locked
}

// Locked is an entry of the Lock.
type Locked struct {
	// Name is that of the revision.
	Name         string
	Kind         image.Kind
	Source       string
	Version      string
	Dependencies []image.Dependency
}

// Condition is a condition of an object.
type Condition struct {
	Type, Reason, Message string
	True                  bool
	// Observed is the generation that it is about; 0 if it is not said.
	Observed int64
}

// Package is a Provider, a Configuration or a Function.
type Package struct {
	Kind       image.Kind
	Name       string
	UID        types.UID
	Generation int64
	// Image is spec.package as it is written.
	Image image.Reference
	// Manual says that its revisions are activated by hand.
	Manual bool
	// PullPolicy is IfNotPresent, if it is empty.
	PullPolicy string
	// PullSecrets are the names of Secrets in Crossplane's namespace.
	PullSecrets []string
	// SkipsDependencies and IgnoresCrossplane are the fields of spec that say so.
	SkipsDependencies, IgnoresCrossplane bool
	Paused                               bool
	// Labels and Spec are those of the object.
	Labels     map[string]string
	Spec       map[string]any
	Revision   string
	Conditions []Condition
}

// Revision is a version of a package.
type Revision struct {
	Kind image.Kind
	Name string
	// Package is the name of the package.
	Package    string
	Active     bool
	Number     int64
	Image      string
	Objects    []Object
	Conditions []Condition
}

// Object names an object of a package, whatever the version of its kind.
type Object struct {
	Group, Kind, Name string
}

// String names the object.
func (o Object) String() string { return o.Kind + " " + o.Name }

// Healthy reports whether a package is installed and healthy, as it says itself.
func (p Package) Healthy() bool {
	for _, name := range []string{"Installed", "Healthy"} {
		if !slices.ContainsFunc(p.Conditions, func(c Condition) bool { return c.Type == name && c.True && c.Observed == p.Generation }) {
			return false
		}
	}
	return true
}

// Sourced returns the packages of a source.
func (s State) Sourced(source string) []Package {
	var out []Package
	for _, p := range s.Packages {
		if p.Image.Source == source {
			out = append(out, p)
		}
	}
	return out
}

// Named returns the package of a kind and a name.
func (s State) Named(kind image.Kind, name string) (Package, bool) {
	for _, p := range s.Packages {
		if p.Kind == kind && p.Name == name {
			return p, true
		}
	}
	return Package{}, false
}

// Of returns the revisions of a package, the newest first.
func (s State) Of(p Package) []Revision {
	var out []Revision
	for _, r := range s.Revisions {
		if r.Kind == p.Kind && r.Package == p.Name {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b Revision) int { return int(b.Number - a.Number) })
	return out
}

// Solvable is what is installed, for the solver.
func (s State) Solvable() []resolve.Package {
	var out []resolve.Package
	for _, l := range s.Lock.Packages {
		p := resolve.Package{Source: l.Source, Version: l.Version}
		for _, d := range l.Dependencies {
			p.Dependencies = append(p.Dependencies, resolve.Dependency{Source: d.Source, Range: d.Range})
		}
		out = append(out, p)
	}
	return out
}
