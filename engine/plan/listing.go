package plan

import (
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Room is what a list in the status may take: so many entries, and so many bytes, which are
// the share of its item. The first entry is always listed, so that no list says nothing.
type Room struct {
	Entries, Bytes int

	listed int
}

// Has reports whether another entry of that size is listed. Once one is not, none is.
func (r *Room) Has(size int) bool {
	r.Bytes -= size
	if r.listed >= r.Entries || r.listed > 0 && r.Bytes < 0 {
		r.Entries = r.listed
		return false
	}
	r.listed++
	return true
}

// Most entries of the lists of an item, and the longest texts in them.
const (
	maxListed   = 16 // fields or managers
	maxWarnings = 8
	maxWarning  = 400
	maxManager  = 128
	maxPath     = 256 // where only the path of a field is listed
	maxField    = 512 // where it is listed with its values
	maxChanges  = 64  // fields of a plan
)

// ConflictsOf lists fields as an item does, as far as its share goes.
func ConflictsOf(fields []errclass.Field, share int) []api.FieldConflict {
	room := Room{Entries: maxListed, Bytes: share}
	var out []api.FieldConflict
	for _, f := range fields {
		c := api.FieldConflict{Field: errclass.Cut(f.Path, maxField), Now: f.Now, Before: f.Before}
		size := len(c.Field) + len(c.Now) + len(c.Before) + 60
		for _, manager := range f.Managers[:min(len(f.Managers), maxListed)] {
			c.Managers = append(c.Managers, errclass.Cut(manager, maxManager))
			size += len(manager)
		}
		if !room.Has(size) {
			break
		}
		out = append(out, c)
	}
	return out
}

// ChangesOf lists fields as a plan does, as far as its share goes, and counts the others.
func ChangesOf(fields []errclass.Field, share int) (out []api.FieldChange, more int64) {
	room := Room{Entries: maxChanges, Bytes: share}
	for n, f := range fields {
		c := api.FieldChange{Field: errclass.Cut(f.Path, maxField), Before: f.Before, After: f.Now}
		if !room.Has(len(c.Field) + len(c.Before) + len(c.After) + 40) {
			return out, int64(len(fields) - n)
		}
		out = append(out, c)
	}
	return out, 0
}

// Owned are fields by their paths, and the manager that owns them.
type Owned struct {
	Manager, Subresource string
	Paths                []string
}

// OwnedBy lists fields by their owners, as far as the share of an item goes, and counts the
// others: at most so many of each manager, and at least one.
func OwnedBy(owners []Owned, most, share int) []api.OwnedFields {
	var out []api.OwnedFields
	for _, o := range owners[:min(len(owners), maxListed)] {
		owned := api.OwnedFields{Manager: errclass.Cut(o.Manager, maxManager), Subresource: o.Subresource, Fields: []string{}}
		room := Room{Entries: most, Bytes: share - len(owned.Manager) - 60}
		for n, path := range o.Paths {
			path = errclass.Cut(path, maxPath)
			if !room.Has(len(path) + 8) {
				owned.More = int64(len(o.Paths) - n)
				break
			}
			owned.Fields = append(owned.Fields, path)
		}
		share = room.Bytes
		out = append(out, owned)
	}
	return out
}

// byOwner groups fields by who owns them.
func byOwner(fields []errclass.Field) []Owned {
	var out []Owned
	for _, f := range fields {
		for _, manager := range f.Managers {
			i := slices.IndexFunc(out, func(o Owned) bool { return o.Manager == manager && o.Subresource == f.Subresource })
			if i < 0 {
				i = len(out)
				out = append(out, Owned{Manager: manager, Subresource: f.Subresource})
			}
			out[i].Paths = append(out[i].Paths, f.Path)
		}
	}
	return out
}

// WithWarnings adds warnings to those that are listed, as far as the share of an item goes.
func WithWarnings(listed, warnings []string, share int) []string {
	room := Room{Entries: maxWarnings - len(listed), Bytes: share}
	for _, text := range warnings {
		text = errclass.Cut(errclass.Printable(text), maxWarning)
		if !room.Has(len(text)) {
			break
		}
		listed = append(slices.Clip(listed), text)
	}
	return listed
}
