package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"janus.io/janus/packages/change"
	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
	"janus.io/janus/packages/resolve"
	"janus.io/janus/packages/version"
)

// Change checks a change of which all packages are known.
func Change(c change.Change) Findings {
	k := &checking{change: c}
	if len(c.Steps) == 0 {
		k.warn(NothingToDo, "%s is as it is to be", c.Root)
	}
	for _, s := range c.Steps {
		k.step(s)
	}
	k.objects()
	k.data()
	k.functions()
	k.compositions()
	if c.Type == change.Replace {
		k.equivalent()
	}
	return k.found.Sorted()
}

// State checks what must be so before any change.
func State(s installed.State) Findings {
	k := &checking{change: change.Change{State: s}}
	if r := s.Lock.Resolved; r != nil && !r.True && len(s.Lock.Packages) > 0 {
		k.fail(PackageManagerBlocked, "Crossplane resolves no dependencies: %s", r.Message)
		k.found[len(k.found)-1].Temporary = true
	}
	if s.Crossplane.Upgrades {
		k.fail(Unsupported, "Crossplane moves dependencies by itself: turn off --enable-dependency-version-upgrades")
	}
	for i, p := range s.Packages {
		for _, other := range s.Packages[:i] {
			if other.Image.Source == p.Image.Source && p.Image.Source != "" {
				k.fail(DuplicateSource, "%s is installed twice, as %s %s and as %s %s: delete one of them", p.Image.Source, other.Kind, other.Name, p.Kind, p.Name)
			}
		}
	}
	return k.found.Sorted()
}

// Conflict is the finding of a conflict between versions.
func Conflict(err *resolve.Conflict) Finding {
	reason := Reason(err.Reason)
	if err.Removed {
		reason = HasDependents
	}
	return Finding{Reason: reason, Message: err.Error()}
}

// Unreadable is the finding of an error of an image; false if it is of something else.
func Unreadable(err error) (Finding, bool) {
	var of *image.Error
	var invalid *image.InvalidReferenceError
	var ambiguous *image.AmbiguousError
	switch {
	case errors.As(err, &of):
		return Finding{Reason: ImageUnusable, Message: of.Error(), Temporary: of.Temporary()}, true
	case errors.As(err, &invalid):
		return Finding{Reason: ImageUnusable, Message: invalid.Error()}, true
	case errors.As(err, &ambiguous):
		return Finding{Reason: Unsupported, Message: ambiguous.Error()}, true
	default:
		return Finding{}, false
	}
}

type checking struct {
	change change.Change
	found  Findings
}

func (k *checking) fail(reason Reason, format string, args ...any) {
	k.found = append(k.found, Finding{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (k *checking) warn(reason Reason, format string, args ...any) {
	k.found = append(k.found, Finding{Reason: reason, Message: fmt.Sprintf(format, args...), Warning: true})
}

// step checks one package.
func (k *checking) step(s change.Step) {
	if s.Existing != nil {
		k.existing(*s.Existing)
	}
	if s.Goes() {
		return
	}
	switch {
	case version.IsDigest(s.To):
		k.fail(Unsupported, "%s is asked for by digest: packages that need it by a range would become unhealthy", s.Source)
	case !version.IsFull(s.To):
		k.fail(Unsupported, "%s %s is no full version, such as v1.2.3: it could become another", s.Source, s.To)
	}
	if s.Content != nil && s.Content.Kind != s.Kind {
		k.fail(KindMismatch, "%s %s is a %s, and was to be a %s", s.Source, s.To, s.Content.Kind, s.Kind)
	}
	if s.Existing == nil {
		if other, ok := k.change.State.Named(s.Kind, s.Name); ok {
			k.fail(NameTaken, "%s %s is the package of %s: give another name to %s, or delete it", s.Kind, s.Name, other.Image, s.Source)
		}
	}
	k.crossplane(s)
	switch {
	case s.Comes():
	case version.IsFull(s.To) && version.IsFull(s.From) && version.Compare(s.To, s.From) < 0:
		k.warn(Downgrade, "%s goes back from %s to %s", s.Source, s.From, s.To)
		fallthrough
	default:
		if s.Kind != image.Configuration && s.From != s.To {
			k.warn(Outage, "%s does not run between %s and %s: Crossplane stops the old revision first", s.Source, s.From, s.To)
		}
	}
	if at, err := k.change.State.Configs.Location(image.Reference{Source: s.Source, Version: s.To}.String()); err == nil {
		if name, err := k.change.State.Configs.Verification(at); err == nil && name != "" {
			k.warn(Unverified, "%s %s is to have its signature verified, by ImageConfig %s: Crossplane does that, the plan does not", s.Source, s.To, name)
		}
	}
}

// existing checks the settings of a package that changes.
func (k *checking) existing(p installed.Package) {
	named := string(p.Kind) + " " + p.Name
	if p.PullPolicy != "" && p.PullPolicy != "IfNotPresent" {
		k.fail(Unsupported, "%s has packagePullPolicy %s: what it installs could be another image than was planned; set IfNotPresent", named, p.PullPolicy)
	}
	if p.Paused {
		k.fail(Unsupported, "%s is paused: remove the annotation crossplane.io/paused", named)
	}
	if p.Manual && k.change.Type == change.Install {
		k.fail(Unsupported, "%s activates its revisions by hand: set revisionActivationPolicy Automatic", named)
	}
	if p.SkipsDependencies {
		k.fail(Unsupported, "%s has skipDependencyResolution: Crossplane does not note what it needs", named)
	}
}

func (k *checking) crossplane(s change.Step) {
	if s.Content == nil || s.Content.Crossplane == "" || s.Existing != nil && s.Existing.IgnoresCrossplane || s.Wish.Spec["ignoreCrossplaneConstraints"] == true {
		return
	}
	is := k.change.State.Crossplane.Version
	r, err := version.ParseRange(s.Content.Crossplane)
	switch {
	case err != nil:
	case is == "":
		k.warn(CrossplaneIncompatible, "%s %s works with Crossplane %s, and the version of this one is not known: give it with --crossplane-version", s.Source, s.To, r)
	case !r.Allows(is):
		k.fail(CrossplaneIncompatible, "%s %s works with Crossplane %s, and this is %s", s.Source, s.To, r, is)
	}
}

// few names the first of some, and how many more there are.
func few(names []string, all int) string {
	const most = 5
	shown := names[:min(most, len(names))]
	text := strings.Join(shown, ", ")
	if more := all - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// steps are those of packages that have content afterwards.
func (k *checking) steps() []change.Step {
	return slices.DeleteFunc(slices.Clone(k.change.Steps), func(s change.Step) bool { return s.Content == nil })
}
