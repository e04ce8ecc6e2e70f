// Package change says what a change of packages consists of: which packages come, move and go,
// in which order, with what content, and what was found in the cluster about it. It is what
// is checked, shown and compiled into a Transaction.
package change

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
	"janus.io/janus/packages/schema"
)

// Type is what is done.
type Type string

// The types.
const (
	Install Type = "Install"
	Delete  Type = "Delete"
	Replace Type = "Replace"
)

// Change is a change of packages.
type Change struct {
	Type Type
	// Root is the source that is installed or deleted; for Replace the one that comes.
	Root string
	// Steps are what happens to packages: dependencies come before those that need them, and go
	// after them. A package in whose place another comes is none of them.
	Steps []Step
	// Replaced is the package that is to be replaced, as it was asked for. What it needs may be
	// replaced with it.
	Replaced *installed.Package
	// State is what there was.
	State installed.State
	// Found is what the cluster has of the objects of the packages.
	Found Found
}

// Step is what happens to one package.
type Step struct {
	Source string
	Kind   image.Kind
	// Name is that of the package in the cluster.
	Name string
	// From is the version that is installed, and To the one afterwards; either may be empty.
	From, To string
	// Digest is that of the image, and Revision the name of the revision of it.
	Digest, Revision string
	// Content is what is in the image; nil for what goes.
	Content *image.Package
	// Existing is the package in the cluster; nil for what comes.
	Existing *installed.Package
	// Replaces is the package in whose place this one comes.
	Replaces *installed.Package
	// Wish is what the package is to have beside its image.
	Wish Wish
}

// Wish is what a package is to have beside its image.
type Wish struct {
	Labels map[string]string
	// Spec are fields of the spec, spec.package aside.
	Spec map[string]any
}

// Met reports whether a package has all of it.
func (w Wish) Met(p installed.Package) bool {
	for name, value := range w.Labels {
		if p.Labels[name] != value {
			return false
		}
	}
	return has(p.Spec, w.Spec)
}

// has reports whether a value has all of another.
func has(there, wanted any) bool {
	fields, ok := wanted.(map[string]any)
	if !ok {
		return equality.Semantic.DeepEqual(there, wanted)
	}
	of, _ := there.(map[string]any)
	for name, value := range fields {
		if !has(of[name], value) {
			return false
		}
	}
	return true
}

// Comes reports whether the package is new.
func (s Step) Comes() bool { return s.From == "" }

// Goes reports whether the package is deleted.
func (s Step) Goes() bool { return s.To == "" }

// Going are the objects of packages that go.
func (c Change) Going() map[installed.Object]bool {
	out := map[installed.Object]bool{}
	for _, s := range c.Steps {
		if !s.Goes() || s.Existing == nil {
			continue
		}
		for _, r := range c.State.Of(*s.Existing) {
			for _, o := range r.Objects {
				out[o] = true
			}
		}
	}
	return out
}

// Left are the objects of the current revision of a package that the version that comes no longer
// has. Crossplane deletes them with that revision.
func (c Change) Left(s Step) []installed.Object {
	if s.Existing == nil || s.Content == nil {
		return nil
	}
	brought := map[installed.Object]bool{}
	for _, u := range s.Content.Objects {
		brought[Brought(u)] = true
	}
	var out []installed.Object
	for _, r := range c.State.Of(*s.Existing) {
		for _, o := range r.Objects {
			if r.Name == s.Existing.Revision && !brought[o] {
				out = append(out, o)
			}
		}
	}
	return out
}

// Stopped are the names of the functions that run no more afterwards.
func (c Change) Stopped() []string {
	var out []string
	for _, s := range c.Steps {
		switch {
		case s.Goes() && s.Kind == image.Function:
			out = append(out, s.Name)
		case s.Replaces != nil && s.Replaces.Kind == image.Function:
			out = append(out, s.Replaces.Name)
		}
	}
	return out
}

// Found is what the cluster has.
type Found struct {
	// Objects are those that there are, of all that the packages have or had.
	Objects map[installed.Object]*unstructured.Unstructured
	// Kinds are the definitions of custom resources that there are, by their names.
	Kinds map[string]Kind
	// Made are the definitions that Crossplane makes of a definition that comes.
	Made map[installed.Object][]installed.Object
	// Runs are the objects with a pipeline in which a function runs, by the names of functions.
	Runs map[string][]installed.Object
	// RunsUnread says why not all of these could be read.
	RunsUnread string
	// Composed are the composite resources of compositions that go, by the names of these.
	Composed map[string]Kind
}

// Kind is a definition in the cluster with its custom resources, or with some of them.
type Kind struct {
	// Differences are those to the definition that comes.
	Differences []schema.Difference
	// Count is how many custom resources there are.
	Count int
	// Names are the first of them.
	Names []string
	// Harmed are the first of those that the definition that comes would harm, and
	// HarmedCount is how many there are.
	Harmed      []Harm
	HarmedCount int
	// Unread says why the custom resources could not be read.
	Unread string
}

// Resources says how many custom resources there are.
func (k Kind) Resources() string {
	if k.Count == 1 {
		return "1 custom resource"
	}
	return fmt.Sprintf("%d custom resources", k.Count)
}

// Harm is what happens to a custom resource.
type Harm struct {
	Name string
	schema.Effect
}

// Brought names an object that a package brings.
func Brought(o image.Object) installed.Object {
	return installed.Object{Group: o.Group, Kind: o.Kind, Name: o.Name}
}

// Object names an object.
func Object(u *unstructured.Unstructured) installed.Object {
	gvk := u.GroupVersionKind()
	return installed.Object{Group: gvk.Group, Kind: gvk.Kind, Name: u.GetName()}
}
