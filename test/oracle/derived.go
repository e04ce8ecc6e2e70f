package oracle

import (
	"encoding/json"
	"slices"

	api "janus.io/janus/api/v1alpha1"
)

// enterDerived finds the contents of the changes of an undo, and of releases: they are kept with the
// before-images, and nowhere else.
func (c *trial) enterDerived(r *run) {
	for _, s := range r.states {
		for i := range min(len(s.items), len(r.contents)) {
			derived := r.Spec.UndoOf != nil || r.Spec.Changes[i].Release != nil
			if before := s.items[i].before; derived && before != nil && r.contents[i] == nil {
				r.contents[i] = c.derivedContent(r, s, before)
			}
		}
	}
}

// derivedContent reads what was stored with a before-image.
func (c *trial) derivedContent(r *run, s *state, before *image) map[string]any {
	for _, name := range s.images {
		o := c.objects[imageRef(r.Namespace, name)]
		for _, v := range o.all() {
			text, ok := record(v, before.key)
			if !ok {
				continue
			}
			text += c.furtherParts(r, s, before.key, v.Revision)
			var kept struct {
				Content map[string]any `json:"content"`
			}
			if digest(text) == before.digest && json.Unmarshal([]byte(text), &kept) == nil {
				return kept.Content
			}
		}
	}
	return nil
}

// hasStep reports whether an object has what the Update of an undo changes in its before-image, and
// whether the write that made it has changed nothing else: what others have written in between to
// the rest, which the content has as it was, stays.
func (c *trial) hasStep(r *run, i int, v *version, asked map[string]any, by *state) bool {
	before := by.items[i].before
	if r.Spec.UndoOf == nil || r.Spec.Changes[i].Type != api.Update || before == nil {
		return false
	}
	image := c.objects[r.Items[i]].named(before.version)
	if image == nil {
		return false
	}
	was, _ := c.parts("", askedFor(image.content(), v.Ref)).(map[string]any)
	wanted, _ := c.parts("", asked).(map[string]any)
	step := c.notAdmitted(differences(was, wanted))
	for _, d := range step {
		if !same(at(c.merged(v), d.path...), d.now) {
			return false
		}
	}
	if !v.of(r) {
		return true
	}
	return !slices.ContainsFunc(c.notAdmitted(differences(c.merged(v.before), c.merged(v))), func(d change) bool {
		return !slices.ContainsFunc(step, func(s change) bool { return slices.Equal(s.path, d.path) })
	})
}
