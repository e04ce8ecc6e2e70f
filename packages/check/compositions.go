package check

import (
	"janus.io/janus/packages/change"
	"janus.io/janus/packages/installed"
)

// compositions checks that no composite resource that stays has a composition that goes.
func (k *checking) compositions() {
	checked := map[string]bool{}
	check := func(o installed.Object, goes string) {
		kind, found := k.change.Found.Composed[o.Name]
		if o.Kind != change.CompositionKind || !found || checked[o.Name] {
			return
		}
		checked[o.Name] = true
		if kind.Unread != "" {
			k.warn(Unverified, "%s %s: whether it composes anything is not known: %s", o, goes, kind.Unread)
		}
		if kind.Count > 0 {
			k.fail(HasDependents, "%s %s, and composes %s: give each another composition first", o, goes, few(kind.Names, kind.Count))
		}
	}
	for _, s := range k.change.Steps {
		if s.Goes() && s.Existing != nil {
			for _, r := range k.change.State.Of(*s.Existing) {
				for _, o := range r.Objects {
					check(o, "goes with "+s.Source)
				}
			}
		}
		for _, o := range k.change.Left(s) {
			check(o, "goes with the old revision of "+s.Source+", as "+s.To+" doesn't have it")
		}
	}
}
