package oracle

import "encoding/json"

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
