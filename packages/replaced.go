package packages

import (
	"slices"

	"janus.io/janus/packages/change"
	"janus.io/janus/packages/installed"
)

// What takes the place of a package brings dependencies of its own. One that defines a kind
// that a dependency of the old package has takes the place of that one: a provider of another
// publisher comes with its family.

// replacedBy returns the package in whose place a step comes; nil if it is none of those that
// are replaced.
func (q *planning) replacedBy(s change.Step) *installed.Package {
	if s.Source == q.plan.Change.Root {
		return q.plan.Change.Replaced
	}
	for _, p := range q.replaced[1:] {
		if q.defines(s, *p) {
			return p
		}
	}
	return nil
}

// alsoReplaced finds a dependency of what is replaced in whose place a step comes, and which is
// not known to be replaced yet. It returns the source, empty if there is none.
func (q *planning) alsoReplaced() string {
	if q.plan.Change.Replaced == nil {
		return ""
	}
	for _, source := range q.needed(q.plan.Change.Replaced.Image.Source) {
		there := q.plan.Change.State.Sourced(source)
		if len(there) != 1 || slices.ContainsFunc(q.replaced, func(p *installed.Package) bool { return p.Image.Source == source }) {
			continue
		}
		if slices.ContainsFunc(q.plan.Change.Steps, func(s change.Step) bool { return s.Comes() && s.Source != q.plan.Change.Root && q.defines(s, there[0]) }) {
			q.replaced = append(q.replaced, &there[0])
			return source
		}
	}
	return ""
}

// needed are the sources that one needs, directly or through others, as Crossplane's Lock says.
func (q *planning) needed(source string) []string {
	out := []string{source}
	for i := 0; i < len(out); i++ {
		for _, l := range q.plan.Change.State.Lock.Packages {
			if l.Source != out[i] {
				continue
			}
			for _, d := range l.Dependencies {
				if !slices.Contains(out, d.Source) {
					out = append(out, d.Source)
				}
			}
		}
	}
	return out[1:]
}

// defines reports whether a step brings a kind that a package has.
func (q *planning) defines(s change.Step, p installed.Package) bool {
	if s.Content == nil || s.Kind != p.Kind {
		return false
	}
	for _, r := range q.plan.Change.State.Of(p) {
		if r.Name != p.Revision {
			continue
		}
		for _, u := range s.Content.Objects {
			if change.Defines(change.Brought(u)) && slices.ContainsFunc(r.Objects, func(o installed.Object) bool { return change.Defines(o) && o.Name == u.Name }) {
				return true
			}
		}
	}
	return false
}
