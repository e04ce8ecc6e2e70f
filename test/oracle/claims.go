package oracle

import (
	"slices"

	"janus.io/janus/test/faultinject"
)

// asserts reports whether another client has come to own a field with a version, by an apply
// of the value that it had already. They want it, though they have changed nothing.
func (v *version) asserts(path []string) bool {
	had := appliers(v.before, path)
	for manager := range appliers(v, path) {
		if !had[manager] {
			return true
		}
	}
	return false
}

// appliers are the managers that own a field by an apply. Of a list with keys, or of
// what is in one, nothing is said.
func appliers(v *version, path []string) map[string]bool {
	out := map[string]bool{}
	for _, e := range list(v.Object.Object, "metadata", "managedFields") {
		entry, _ := e.(map[string]any)
		if str(entry, "operation") != "Apply" || str(entry, "subresource") != "" {
			continue
		}
		fields, owned := entry["fieldsV1"].(map[string]any)
		for _, name := range path {
			if fields, owned = fields["f:"+name].(map[string]any); !owned {
				break
			}
		}
		if owned {
			out[str(entry, "manager")] = true
		}
	}
	return out
}

// claims lists the fields that another client has come to own with a version, as they are: a
// rollback keeps what their owner wants.
func (c *trial) claims(v *version) []change {
	var out []change
	for _, d := range differences(nil, c.merged(v)) {
		if v.asserts(d.path) {
			out = append(out, d)
		}
	}
	return out
}

// repeatedAround returns the request by which an item was rolled back again after a version,
// if it was before, or that was begun, and the record of that got lost: then nobody can
// tell what another client has undone meanwhile from what is to be restored.
func (c *trial) repeatedAround(r *run, o *object, middle *version) *write {
	before := map[int]*write{} // by item
	for _, v := range o.versions {
		w := v.by
		if !w.of(r) || w.role != undo || w.Method != "PATCH" {
			continue
		}
		first := before[w.item]
		if v.Revision < middle.Revision {
			before[w.item] = w
		} else if first != nil && (first.Process != w.Process || c.recordedBetween(first, w)) {
			return w
		}
	}
	return nil
}

// recordedBetween reports whether a process tried to write the Transaction between two
// of its requests.
func (c *trial) recordedBetween(first, second *write) bool {
	return slices.ContainsFunc(c.Calls, func(call faultinject.Call) bool {
		return call.Method == "PUT" && call.Subresource == "status" && call.Process == first.Process && first.Sent < call.Sent && call.Sent < second.Sent
	})
}

// remadeByAnother reports whether an object, which another client has deleted, had been
// re-created in a rollback by a process, and then was again by another: that one cannot
// tell the deletion from the Transaction's own.
func remadeByAnother(r *run, o *object, deleted *version) bool {
	var before, after *write
	for _, v := range o.versions {
		w := v.by
		if !w.of(r) || w.role != undo || w.Method != "POST" {
			continue
		}
		if v.uid == deleted.uid {
			before = w
		} else if v.Revision > deleted.Revision {
			after = w
		}
	}
	return before != nil && after != nil && before.Process != after.Process
}
