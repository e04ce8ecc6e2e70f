package oracle

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"janus.io/janus/test/faultinject"
)

// trial is the evidence put in order: what became of each object, and who made
// which version of it.
type trial struct {
	Evidence
	objects  map[Ref]*object
	writes   []*write // those that landed, in the order in which they were sent
	entries  []*write // what those of tables of locks did to one entry
	runs     []*run
	targets  map[Ref][]*run
	own      map[Ref]bool    // what Janus keeps for itself: Transactions and before-images
	users    map[string]bool // whom Janus may act as
	breaches []Breach
}

// object is everything that was stored under one name.
type object struct {
	ref      Ref
	versions []*version
}

// version is one of them.
type version struct {
	*Version
	// before is the version that this one follows; nil for the first of an object.
	before *version
	uid    string
	// by is the request of Janus that has made it; nil if it is another client's.
	by *write
	// ownEnd is set where the end of an object follows from a deletion by Janus that
	// had to wait.
	ownEnd bool

	plain    map[string]any // see content
	compared map[string]any // see merged
}

// write is a request of Janus that landed.
type write struct {
	*faultinject.Call
	ref    Ref
	sent   skimmed // the body
	answer skimmed
	// made is the version that it has made, nil if nothing changed by it.
	made *version

	run  *run // whose it is, for a write to a target
	item int  // of that run; -1 for a hand-over
	role role
	// effect is what effectOf has found.
	effect effect
}

// newCase puts the evidence in order.
func newCase(e Evidence) *trial {
	c := &trial{
		Evidence: e, objects: map[Ref]*object{}, targets: map[Ref][]*run{},
		own: map[Ref]bool{}, users: map[string]bool{},
	}
	c.enterHistory()
	c.enterWrites()
	c.openTables()
	for i := range e.Runs {
		c.enterRun(&e.Runs[i])
	}
	for _, w := range c.writes {
		c.assign(w)
	}
	return c
}

// enterHistory chains the versions of each object.
func (c *trial) enterHistory() {
	all := make([]version, len(c.History))
	for i := range c.History {
		v := &all[i]
		v.Version = &c.History[i]
		if v.Object != nil {
			v.uid = str(v.Object.Object, "metadata", "uid")
		}
		o := c.objects[v.Ref]
		if o == nil {
			o = &object{ref: v.Ref}
			c.objects[v.Ref] = o
		}
		if n := len(o.versions); n > 0 && !o.versions[n-1].Deleted {
			v.before = o.versions[n-1]
			v.ownEnd = false
		}
		o.versions = append(o.versions, v)
	}
}

// at returns the version that was stored before a revision, nil if there was none or
// the object had been deleted.
func (o *object) at(revision int64) *version {
	if o == nil {
		return nil
	}
	n := sort.Search(len(o.versions), func(i int) bool { return o.versions[i].Revision >= revision })
	if n == 0 || o.versions[n-1].Deleted {
		return nil
	}
	return o.versions[n-1]
}

// absent reports whether there was none at some time between two revisions.
func (o *object) absent(from, to int64) bool {
	if o.at(from) == nil {
		return true
	}
	return slices.ContainsFunc(o.versions, func(v *version) bool { return v.Deleted && v.Revision > from && v.Revision < to })
}

// all returns the versions of an object; none of one that was never seen.
func (o *object) all() []*version {
	if o == nil {
		return nil
	}
	return o.versions
}

// last is the version that is there at the end; nil if the object is gone.
func (o *object) last() *version {
	if o == nil || len(o.versions) == 0 || o.versions[len(o.versions)-1].Deleted {
		return nil
	}
	return o.versions[len(o.versions)-1]
}

// named returns the version with a resourceVersion.
func (o *object) named(resourceVersion string) *version {
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if o == nil || err != nil {
		return nil
	}
	n := sort.Search(len(o.versions), func(i int) bool { return o.versions[i].Revision >= revision })
	if n == len(o.versions) || o.versions[n].Revision != revision {
		return nil
	}
	return o.versions[n]
}

// refOf returns what a request is about.
func refOf(call *faultinject.Call) Ref {
	ref := Ref{Resource: call.Resource, Namespace: call.Namespace, Name: call.Name}
	if rest, ok := strings.CutPrefix(call.Path, "/apis/"); ok && ref.Resource != "" {
		if group, _, ok := strings.Cut(rest, "/"); ok {
			ref.Resource += "." + group
		}
	}
	return ref
}

func (v *version) resourceVersion() string {
	return str(v.Object.Object, "metadata", "resourceVersion")
}

// terminating reports whether an object is on its way out.
func (v *version) terminating() bool {
	return v != nil && str(v.Object.Object, "metadata", "deletionTimestamp") != ""
}

// str reads a text out of an object; empty if there is none.
func str(object map[string]any, path ...string) string {
	text, _ := at(object, path...).(string)
	return text
}

// at reads a value out of an object; nil if there is none.
func at(object map[string]any, path ...string) any {
	for _, name := range path[:len(path)-1] {
		object, _ = object[name].(map[string]any)
	}
	return object[path[len(path)-1]]
}

// number reads an integer, no matter who has decoded it.
func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case int:
		return int64(v)
	case float64:
		return int64(v)
	default:
		return 0
	}
}
