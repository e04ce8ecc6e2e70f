package oracle

import "slices"

// judgeOrder: the items of a list are where they were before, among those that were
// there. What others have added, removed or moved meanwhile is theirs.
func (c *trial) judgeOrder(r *run, target Ref, want standing, last *version, excused []string) {
	if want.base == nil || want.remade {
		return
	}
	before, now := c.sequences(want.base), c.sequences(last)
	for path, was := range before {
		stayed, found := among(was, now[path]), among(now[path], was)
		if slices.Equal(stayed, found) || excuses(excused, path) || c.movedByOthers(r, want.base, path, was) {
			continue
		}
		c.breach(Atomicity, "%s: %s@%d has the items of %s in the order %v, and they were in the order %v @%d",
			r, target, last.Revision, path, found, stayed, want.base.Revision)
	}
}

// movedByOthers reports whether another client has added, removed or moved certain items
// of a list since a version.
func (c *trial) movedByOthers(r *run, since *version, path string, items []string) bool {
	for _, v := range c.objects[since.Ref].versions {
		if v.Revision <= since.Revision || v.before == nil || v.of(r) || v.Deleted {
			continue
		}
		if !slices.Equal(among(c.sequences(v.before)[path], items), among(c.sequences(v)[path], items)) {
			return true
		}
	}
	return false
}

// among leaves in a list what another has too.
func among(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(id string) bool { return !slices.Contains(other, id) })
}

// sequences returns the items of each keyed list of an object in their order, by the
// path of the list.
func (c *trial) sequences(v *version) map[string][]string {
	out := map[string][]string{}
	c.listed(out, nil, "", v.content())
	return out
}

func (c *trial) listed(out map[string][]string, path []string, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			c.listed(out, appended(path, key), key, inner)
		}
	case []any:
		ids := c.identities(name, v)
		if ids == nil {
			return
		}
		out[dotted(path)] = ids
		for i, id := range ids {
			c.listed(out, appended(path, id), "", v[i])
		}
	}
}
