package oracle

import (
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// judgeRemade: what a rollback has re-created is what was there, and not what
// another client has put in its place, and a custom object has its status again.
func (c *trial) judgeRemade(r *run) {
	s := r.end()
	if s == nil {
		return
	}
	c.judgeForeign(r, s)
	for i := range min(len(s.items), len(r.Items)) {
		if r.Spec.Changes[i].Type == api.Delete && s.items[i].in(api.ItemRolledBack) {
			c.judgeSuccessor(r, i)
			c.judgeStatus(r, i)
		}
	}
}

// judgeForeign: an object that another client has made in place of a target is not touched.
func (c *trial) judgeForeign(r *run, s *state) {
	for _, w := range r.writes {
		if w.made == nil || w.role != undo || w.Method != "PATCH" || w.item < 0 || w.item >= len(s.items) || !r.writesFields(w.item) {
			continue
		}
		before := s.items[w.item].before
		if before != nil && w.made.uid != before.uid && !w.made.made(r) {
			c.breach(NoLostWrite, "%s: %s@%d of uid %s, made by %s, is of what another client has made in place of uid %s",
				r.named(w.item), w.ref, w.made.Revision, w.made.uid, w.At, before.uid)
		}
	}
}

// judgeSuccessor: an object that another client has made where one was deleted is no
// deletion rolled back, unless it has the same content.
func (c *trial) judgeSuccessor(r *run, i int) {
	from, to := r.reached(i, api.ItemCommitting), r.reached(i, api.ItemRolledBack)
	if from == nil || to == nil || to.items[i].before == nil || to.items[i].before.uid == "" {
		return
	}
	o, before := c.objects[r.Items[i]], to.items[i].before
	now := o.at(to.Revision)
	if now == nil || now.uid == before.uid {
		return
	}
	for _, v := range o.all() {
		if v.Revision > from.Revision && v.Revision < to.Revision && v.before == nil && v.by.of(r) {
			return
		}
	}
	was := o.named(before.version)
	if was == nil || len(differences(c.merged(was), c.merged(now))) == 0 {
		return
	}
	c.breach(Atomicity, "%s: it is RolledBack (@%d), and %s@%d of uid %s is what another client has made since", r.named(i), to.Revision, now.Ref, now.Revision, now.uid)
}

// judgeStatus: a custom object that was re-created has the status that it had, unless
// another client has written it since. That of a kind of Kubernetes is its controller's.
func (c *trial) judgeStatus(r *run, i int) {
	to := r.reached(i, api.ItemRolledBack)
	if to == nil || to.items[i].before == nil || !custom(r.Items[i]) {
		return
	}
	o := c.objects[r.Items[i]]
	was, now := o.named(to.items[i].before.version), o.at(to.Revision)
	if was == nil || now == nil || now.uid == was.uid || was.Object.Object["status"] == nil {
		return
	}
	for _, v := range o.all() {
		if v.uid == now.uid && v.Revision <= to.Revision && !v.of(r) {
			return
		}
	}
	if has, had := now.Object.Object["status"], was.Object.Object["status"]; !same(had, has) {
		c.breach(Atomicity, "%s: %s@%d was made anew with status %s, and had %s", r.named(i), now.Ref, now.Revision, shown(has), shown(had))
	}
}

// custom reports whether a resource is of a kind that Kubernetes does not have itself.
func custom(ref Ref) bool {
	_, group, _ := strings.Cut(ref.Resource, ".")
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}
