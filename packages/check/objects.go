package check

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/packages/change"
	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
)

// objects checks who has the objects that packages bring.
func (k *checking) objects() {
	by := map[installed.Object]change.Step{}
	for _, s := range k.steps() {
		for _, u := range s.Content.Objects {
			o := key(change.Brought(u))
			if other, twice := by[o]; twice && other.Source != s.Source {
				k.fail(CRDConflict, "%s is brought by %s %s and by %s %s: only one package can control it", o, other.Source, other.To, s.Source, s.To)
			}
			by[o] = s
			// Crossplane makes the definition of a managed kind of another one.
			candidates := []installed.Object{o}
			if change.Defines(o) && s.Kind == image.Provider {
				candidates = []installed.Object{change.DefinitionObject(o.Name), change.ManagedObject(o.Name)}
			}
			for _, one := range append(candidates, k.change.Found.Made[o]...) {
				if there := k.change.Found.Objects[one]; there != nil {
					k.controlled(s, one, there)
				}
			}
		}
	}
}

// key names an object as others would bring it: a definition is the same whether it is of
// a managed kind or not.
func key(o installed.Object) installed.Object {
	if o.Kind == change.ManagedKind {
		return change.DefinitionObject(o.Name)
	}
	return o
}

// controlled checks that a package may take control of an object.
func (k *checking) controlled(s change.Step, o installed.Object, there *unstructured.Unstructured) {
	owner := metav1.GetControllerOf(there)
	if owner == nil || owner.Kind == change.ManagedKind && owner.Name == o.Name || owner.Kind == change.CompositeKind && k.makes(owner.Name, o) {
		return
	}
	i := slices.IndexFunc(k.change.State.Revisions, func(r installed.Revision) bool {
		return r.Name == owner.Name && string(r.Kind)+"Revision" == owner.Kind
	})
	if i < 0 {
		k.fail(CRDConflict, "%s is controlled by %s %s, which is no revision of %s", o, owner.Kind, owner.Name, s.Source)
		// The garbage collector deletes what a revision has left that is gone.
		gone := strings.HasPrefix(owner.APIVersion, installed.Group+"/") || there.GetDeletionTimestamp() != nil
		k.found[len(k.found)-1].Temporary = gone
		return
	}
	r := k.change.State.Revisions[i]
	switch {
	case r.Kind == s.Kind && r.Package == s.Name:
	case s.Replaces != nil && r.Kind == s.Replaces.Kind && r.Package == s.Replaces.Name:
	default:
		k.fail(CRDConflict, "%s is controlled by %s %s: %s %s cannot control it too; have it take the place of that one, or delete that one first", o, r.Kind, r.Package, s.Source, s.To)
	}
}

// makes reports whether Crossplane makes a definition of one of composite resources that comes.
func (k *checking) makes(composite string, o installed.Object) bool {
	for by, made := range k.change.Found.Made {
		if by.Name == composite && slices.Contains(made, o) {
			return true
		}
	}
	return false
}

// data checks what happens to custom resources.
func (k *checking) data() {
	for _, s := range k.change.Steps {
		if s.Goes() {
			k.gone(s)
			continue
		}
		if s.Content == nil {
			continue
		}
		brought := map[string]bool{}
		for _, u := range s.Content.Objects {
			if change.Defines(change.Brought(u)) {
				brought[u.Name] = true
				k.definition(s, u.Name)
			}
		}
		if s.Existing == nil {
			continue
		}
		for _, name := range k.definitions(*s.Existing, false) {
			if kind, ok := k.change.Found.Kinds[name]; ok && !brought[name] {
				k.left(s, name, kind)
			}
		}
	}
}

// definitions are the names of those that the current revision of a package has, or all of
// its revisions.
func (k *checking) definitions(p installed.Package, all bool) []string {
	var out []string
	for _, r := range k.change.State.Of(p) {
		for _, o := range r.Objects {
			if (all || r.Name == p.Revision) && change.Defines(o) && !slices.Contains(out, o.Name) {
				out = append(out, o.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// definition checks what a definition that comes does to what exists.
func (k *checking) definition(s change.Step, name string) {
	kind, ok := k.change.Found.Kinds[name]
	if !ok {
		return
	}
	var breaking, ofKind []string
	for _, d := range kind.Differences {
		switch {
		case d.Kind:
			ofKind = append(ofKind, d.String())
		case d.Breaking:
			breaking = append(breaking, d.String())
		}
	}
	if len(ofKind) > 0 {
		k.fail(SchemaIncompatible, "%s %s changes %s: %s", s.Source, s.To, name, few(ofKind, len(ofKind)))
	}
	switch {
	case len(breaking) == 0:
	case kind.Unread != "":
		k.fail(SchemaIncompatible, "%s %s narrows %s, and its custom resources cannot be read (%s): %s", s.Source, s.To, name, kind.Unread, few(breaking, len(breaking)))
	case kind.HarmedCount > 0:
		var harmed []string
		for _, h := range kind.Harmed {
			harmed = append(harmed, h.Name+" ("+harm(h)+")")
		}
		k.fail(SchemaIncompatible, "%s %s narrows %s, which harms %d of %s: %s", s.Source, s.To, name, kind.HarmedCount, kind.Resources(), few(harmed, kind.HarmedCount))
	default:
		k.warn(SchemaIncompatible, "%s %s narrows %s, which harms none of %s: %s", s.Source, s.To, name, kind.Resources(), few(breaking, len(breaking)))
	}
}

func harm(h change.Harm) string {
	var parts []string
	if len(h.Dropped) > 0 {
		parts = append(parts, "loses "+few(h.Dropped, len(h.Dropped)))
	}
	if len(h.Invalid) > 0 {
		parts = append(parts, "is invalid: "+few(h.Invalid, len(h.Invalid)))
	}
	return strings.Join(parts, "; ")
}

// left checks a definition that a package has no more. Crossplane keeps it with the old
// revision, and deletes it with that.
func (k *checking) left(s change.Step, name string, kind change.Kind) {
	switch {
	case kind.Unread != "":
		k.fail(DataLoss, "%s %s has no %s any more, and its custom resources cannot be read: %s", s.Source, s.To, name, kind.Unread)
	case kind.Count > 0:
		k.fail(DataLoss, "%s %s has no %s any more, and Crossplane deletes it with the old revision: delete its %s first: %s", s.Source, s.To, name, kind.Resources(), few(kind.Names, kind.Count))
	default:
		k.warn(DataLoss, "%s %s has no %s any more; there are no custom resources of it", s.Source, s.To, name)
	}
}

// gone checks the data of a package that is deleted. A definition that only an old revision
// still has goes too.
func (k *checking) gone(s change.Step) {
	if s.Existing == nil {
		return
	}
	for _, name := range k.definitions(*s.Existing, true) {
		kind, ok := k.change.Found.Kinds[name]
		switch {
		case !ok:
		case kind.Unread != "":
			k.fail(DataLoss, "%s goes with %s, and its custom resources cannot be read: %s", name, s.Source, kind.Unread)
		case kind.Count > 0:
			k.fail(DataLoss, "%s goes with %s: delete its %s first: %s", name, s.Source, kind.Resources(), few(kind.Names, kind.Count))
		}
	}
}

// equivalent checks that each package has all that the one has in whose place it comes.
func (k *checking) equivalent() {
	replaced := map[string]bool{}
	for _, s := range k.change.Steps {
		if s.Replaces != nil {
			replaced[s.Replaces.Image.Source] = true
		}
	}
	for _, s := range k.change.Steps {
		if s.Replaces != nil && s.Content != nil {
			k.takes(s, *s.Replaces, replaced)
		}
	}
}

// takes checks that a package can take the place of an old one.
func (k *checking) takes(s change.Step, old installed.Package, replaced map[string]bool) {
	if s.Kind != old.Kind {
		k.fail(NotEquivalent, "%s is a %s, and %s is a %s", s.Source, s.Kind, old.Image.Source, old.Kind)
	}
	if s.Existing != nil {
		k.fail(Unsupported, "%s is installed: delete %s %s instead", s.Source, old.Kind, old.Name)
	}
	has := map[string]bool{}
	for _, u := range s.Content.Objects {
		has[u.Name] = true
	}
	for _, name := range k.definitions(old, false) {
		if !has[name] {
			k.fail(NotEquivalent, "%s %s has no %s, which %s has", s.Source, s.To, name, old.Image.Source)
		}
	}
	for _, l := range k.change.State.Lock.Packages {
		if !replaced[l.Source] && slices.ContainsFunc(l.Dependencies, func(d image.Dependency) bool { return d.Source == old.Image.Source }) {
			k.fail(HasDependents, "%s %s requires %s, whatever takes its place", l.Source, l.Version, old.Image.Source)
		}
	}
}
