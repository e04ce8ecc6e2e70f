package wiring

import (
	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate"
)

// takenBy lists what a change takes from others, as far as its share goes. Of a
// confidential object, a path that would quote a value is cut.
func takenBy(c mutate.Change, fields []fieldmerge.OwnedFields, share int) []api.OwnedFields {
	var out []api.OwnedFields
	for _, f := range fields {
		if len(out) == 16 {
			break
		}
		owned := api.OwnedFields{Manager: errclass.Cut(errclass.Printable(f.Manager), 128), Subresource: f.Subresource, Fields: []string{}}
		share -= len(owned.Manager) + 60
		for i, path := range f.Paths {
			if c.Sensitive {
				path = errclass.FieldOnly(path)
			}
			path = errclass.Cut(errclass.Printable(path), 256)
			if share -= len(path) + 8; share < 0 && i > 0 || i == 32 {
				owned.More = int64(len(f.Paths) - i)
				break
			}
			owned.Fields = append(owned.Fields, path)
		}
		out = append(out, owned)
	}
	return out
}

// warningsFor are warnings as an item lists them, as far as its share goes.
func warningsFor(warnings []string, share int) []string {
	var out []string
	for _, w := range warnings {
		w = errclass.Cut(errclass.Printable(w), 400)
		if share -= len(w); len(out) == 8 || len(out) > 0 && share < 0 {
			break
		}
		out = append(out, w)
	}
	return out
}
