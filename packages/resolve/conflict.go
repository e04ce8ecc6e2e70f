package resolve

import (
	"fmt"
	"slices"
	"strings"
)

// Reason is the kind of a conflict.
type Reason string

// The reasons, as the conditions of packages have them.
const (
	MissingDependency  Reason = "MissingDependency"
	VersionConflict    Reason = "VersionConflict"
	CircularDependency Reason = "CircularDependency"
)

// Conflict is the proof that there is no solution.
type Conflict struct {
	Reason Reason
	// Source is the package of which no version fits.
	Source string
	// Asked are the packages that ask for it.
	Asked []Ask
	// Tried are its versions, the preferred ones first, and what rules out each.
	Tried []Try
	// Cycle has the packages of a cycle in order; the first is also the last.
	Cycle []string
	// Removed says that the package is to be deleted.
	Removed bool
}

// Ask is a package that needs a version within a range.
type Ask struct {
	// Chain leads from what is wanted to the package that asks; one that stays as it is
	// stands alone.
	Chain []string
	// Stays says that it is installed and does not move.
	Stays bool
	Range string
}

// String is the ask as a clause.
func (a Ask) String() string {
	by := strings.Join(a.Chain, " > ")
	if a.Stays {
		by += " (installed)"
	}
	return by + " requires " + a.Range
}

// Try is a version that was ruled out.
type Try struct {
	Version string
	// Why is a clause about the version, unless Because has it.
	Why string
	// Because is a conflict that it would bring.
	Because *Conflict
}

// Error is the part of the proof that says most: what rules out the preferred version of
// each package. Tried has all of it.
func (c *Conflict) Error() string {
	if d := c.deeper(); d != nil {
		text := d.Because.Error()
		if more := len(c.Tried) - 1; more > 0 {
			text += fmt.Sprintf("; none of the %d other versions of %s would do", more, c.Source)
		}
		return text
	}
	switch {
	case c.Cycle != nil:
		return "packages depend on each other: " + strings.Join(c.Cycle, " > ")
	case c.Removed:
		return fmt.Sprintf("%s is to be deleted, but %s", c.Source, c.asks())
	case len(c.Asked) == 0:
		return fmt.Sprintf("%s cannot be installed: %s", c.Source, some(c.Tried))
	case len(c.Tried) == 0 && c.Asked[0].Stays:
		return c.asks() + ", which is not installed"
	case len(c.Tried) == 0:
		return c.asks() + ", but it has no version"
	case c.Reason == MissingDependency:
		return fmt.Sprintf("%s, but no compatible version was found among %s", c.asks(), some(c.Tried))
	default:
		return fmt.Sprintf("%s; no version is within all these ranges: there are %s", c.asks(), some(c.Tried))
	}
}

// deeper is the preferred version that only a conflict elsewhere rules out.
func (c *Conflict) deeper() *Try {
	for i := range c.Tried {
		if c.Tried[i].Because != nil {
			return &c.Tried[i]
		}
	}
	return nil
}

func (c *Conflict) asks() string {
	var out []string
	for i, a := range c.Asked {
		text := a.String()
		if i == 0 {
			text = strings.Replace(text, " requires ", " requires "+c.Source+" ", 1)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// some lists the first versions, and how many more there are.
func some(tried []Try) string {
	const most = 5
	var out []string
	for _, t := range tried[:min(most, len(tried))] {
		text := t.Version
		if t.Why != "" {
			text += " (" + t.Why + ")"
		}
		out = append(out, text)
	}
	if more := len(tried) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

// Sources are all packages that the proof is about, in the order of their names.
func (c *Conflict) Sources() []string {
	out := append([]string{c.Source}, c.Cycle...)
	for _, t := range c.Tried {
		if t.Because != nil {
			out = append(out, t.Because.Sources()...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// excluded is a conflict about one version alone.
func excluded(v, why string) *Conflict { return &Conflict{Tried: []Try{{Version: v, Why: why}}} }

// add records what has ruled out a version. A conflict about the same package, which another
// one that stays has brought up, becomes part of this one.
func (c *Conflict) add(v string, because *Conflict) {
	switch {
	case because.Source == "":
		c.Tried = append(c.Tried, because.Tried...)
	case because.Source == c.Source && because.Cycle == nil:
		for _, a := range because.Asked {
			if !slices.ContainsFunc(c.Asked, func(b Ask) bool { return b.String() == a.String() }) {
				c.Asked = append(c.Asked, a)
			}
		}
		c.Tried = append(c.Tried, Try{Version: v})
	default:
		c.Tried = append(c.Tried, Try{Version: v, Because: because})
	}
}

// judge finds the reason: an only version that leads to a cycle is one, and what no single
// package that asks could have is missing.
func (c *Conflict) judge() {
	if len(c.Tried) == 1 && c.Tried[0].Because != nil {
		c.Reason = c.Tried[0].Because.Reason
		return
	}
	c.Reason = VersionConflict
	for _, a := range c.Asked {
		if !slices.ContainsFunc(c.Tried, func(t Try) bool { return allows(a.Range, t.Version) }) {
			c.Reason = MissingDependency
		}
	}
}

// asks are those of the decided packages for a source.
func (s *search) asks(source string) []Ask {
	var out []Ask
	for _, by := range s.order {
		for _, d := range s.decided[by].Dependencies {
			if d.Source == source {
				out = append(out, Ask{Chain: s.chain(by), Range: d.Range})
			}
		}
	}
	return out
}

// chain leads from what is wanted to a decided package.
func (s *search) chain(source string) []string {
	var out []string
	for c := s.decided[source]; c != nil; c = s.decided[c.by] {
		out = append(out, c.String())
	}
	slices.Reverse(out)
	return out
}
