package oracle

import (
	"regexp"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// itemManager is what the field managers of items look like, of whichever Transaction.
var itemManager = regexp.MustCompile(`^janus-[0-9a-f]{8}-[0-9]+$`)

// judgeNewOwners: a hand-over leaves no field without an owner that had one before the
// Transaction, and gives to the manager of hand-overs nothing but the marks of Janus. What
// the item of a Transaction that ended half-way owned may stay there: nobody is to take it
// for that Transaction's. An undo leaves fields to who owned them before what it undoes.
func (c *trial) judgeNewOwners(r *run, w *write) {
	var base *version
	for _, other := range r.writes {
		if other.ref == w.ref && other.made != nil && other.role == do {
			base = other.made.before
			break
		}
	}
	if base != nil && (base.Deleted || base.uid != w.made.uid) || r.Spec.UndoOf != nil || r.Spec.FieldManager == defaultManager {
		return
	}
	spared := fieldsBy(w.made.before, itemOfAnother(r))
	// By one stale answer the before-image may be of an earlier version, which differs in its owners alone.
	for _, was := range []*version{base, c.objects[w.ref].named(r.imageVersion(w.ref))} {
		if was != nil {
			spared = spared.Union(fieldsBy(was, func(manager string) bool { return manager == defaultManager || itemManager.MatchString(manager) }))
		}
	}
	fieldsBy(w.made, func(manager string) bool { return manager == defaultManager }).Difference(spared).Iterate(func(p fieldpath.Path) {
		if !isOfJanus(p) {
			c.breach(Atomicity, "%s: the hand-over %s has made %s the owner of %s in %s@%d, which it was not before", r, w.At, defaultManager, p, w.ref, w.made.Revision)
		}
	})
	if base == nil {
		return
	}
	owned := fieldsBy(w.made, func(string) bool { return true }).Union(c.judgeGivenUp(r, w, base))
	fieldsBy(base, func(manager string) bool { return !itemManager.MatchString(manager) }).Difference(owned).Iterate(func(p fieldpath.Path) {
		if inMap(w.ref, p) && at(w.made.Object.Object, names(p)...) != nil {
			c.breach(Atomicity, "%s: the hand-over %s has left %s in %s@%d to nobody, and it had an owner @%d", r, w.At, p, w.ref, w.made.Revision, base.Revision)
		}
	})
}

// imageVersion is the resourceVersion of the first before-image of a target; empty if there is none.
func (r *run) imageVersion(target Ref) string {
	for i, ref := range r.Items {
		if image := r.imageOf(i); ref == target && image != nil {
			return image.version
		}
	}
	return ""
}

func itemOfAnother(r *run) func(string) bool {
	return func(manager string) bool {
		return itemManager.MatchString(manager) && !strings.HasPrefix(manager, r.family())
	}
}

// fieldsBy returns what managers own of an object.
func fieldsBy(v *version, whose func(manager string) bool) *fieldpath.Set {
	out := fieldpath.NewSet()
	if v == nil {
		return out
	}
	for _, entry := range entriesOf(v) {
		if whose(str(entry, "manager")) {
			out = out.Union(fieldsOf(entry))
		}
	}
	return out
}

// isOfJanus reports whether a field is a label or an annotation by which Janus tells whose an
// object is.
func isOfJanus(p fieldpath.Path) bool {
	path := names(p)
	return len(path) == 3 && path[0] == "metadata" && strings.HasPrefix(path[2], "janus.io/")
}

// inMap reports whether a field is an entry of a map of which the server changes nothing.
func inMap(ref Ref, p fieldpath.Path) bool {
	path := names(p)
	switch len(path) {
	case 2:
		return path[0] == "data" && plainData(ref)
	case 3:
		return path[0] == "metadata" && (path[1] == "labels" || path[1] == "annotations")
	}
	return false
}

// names are those of the fields of a path; none for a path through items of lists.
func names(p fieldpath.Path) []string {
	out := make([]string, 0, len(p))
	for _, element := range p {
		if element.FieldName == nil {
			return nil
		}
		out = append(out, *element.FieldName)
	}
	return out
}
