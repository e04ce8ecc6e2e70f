package apisim

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// collector is who the garbage collector and the namespace controller write as.
const collector = "system:serviceaccount:kube-system:generic-garbage-collector"

// noteOwners remembers that there may be something to collect.
func (s *Server) noteOwners(obj content) {
	if _, ok := metadata(obj)["ownerReferences"]; ok || deleting(obj) {
		s.dirty = true
	}
}

// Collect does what the garbage collector and the namespace controller would get to
// do until nothing is left for them: it deletes objects whose owners are all gone,
// takes references to gone owners off, finishes foreground and orphaning deletions,
// and removes the content of namespaces that are being deleted. It reports whether
// it wrote anything.
func (s *Server) Collect() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.version
	s.collect()
	return s.version != before
}

func (s *Server) collect() {
	for again := true; again; {
		before := s.version
		s.dirty = false
		for _, gr := range sortedResources(s.tables) {
			for _, o := range s.tables[gr].sorted() {
				if s.find(o.kind, namespaceOf(o.content), nameOf(o.content)) == o {
					s.attend(o)
				}
			}
		}
		again = s.version != before
	}
}

// attend does what is to be done about one object.
func (s *Server) attend(o *stored) {
	if o.kind.namespaced {
		if namespace := s.find(s.kinds[namespaces], "", namespaceOf(o.content)); namespace != nil && deleting(namespace.content) && !deleting(o.content) {
			s.drop(o, metav1.DeletePropagationBackground)
			return
		}
	}
	if deleting(o.content) {
		s.finish(o)
		return
	}
	s.disown(o)
}

// drop deletes an object as the controllers do.
func (s *Server) drop(o *stored, policy metav1.DeletionPropagation) {
	uid := types.UID(uidOf(o.content))
	r := s.own(o)
	_, _ = r.deleteObject(&metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid}})
}

func (s *Server) own(o *stored) *request {
	return &request{Server: s, verb: "delete", kind: o.kind.preferred(), namespace: namespaceOf(o.content), name: nameOf(o.content), user: collector}
}

// finish takes the collector's own finalizers off an object that is being deleted,
// once they have been seen to.
func (s *Server) finish(o *stored) {
	finalizers := finalizersOf(o.content)
	switch {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		for _, d := range s.dependents(o) {
			s.unlink(d, []string{uidOf(o.content)})
		}
		s.release(o, metav1.FinalizerOrphanDependents)
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		blocked := false
		for _, d := range s.dependents(o) {
			blocked = blocked || blocks(d, uidOf(o.content))
			if !deleting(d.content) {
				s.disown(d)
			}
		}
		if !blocked {
			s.release(o, metav1.FinalizerDeleteDependents)
		}
	case o.kind == s.kinds[namespaces]:
		s.finalizeNamespace(o)
	}
}

// release takes a finalizer off.
func (s *Server) release(o *stored, finalizer string) {
	o = s.find(o.kind, namespaceOf(o.content), nameOf(o.content))
	if o == nil {
		return
	}
	o = o.as(o.kind.preferred())
	obj := maps.Clone(o.content)
	setFinalizers(ownMetadata(obj), removeFinalizer(finalizersOf(obj), finalizer))
	s.rewrite(o, obj)
}

// rewrite stores what the garbage collector has changed.
func (s *Server) rewrite(o *stored, obj content) {
	r := s.own(o)
	r.manager = "kube-controller-manager"
	obj = r.owned(o, obj)
	_, _ = r.replace(obj, o)
}

// finalizeNamespace lets a namespace go that has no content left.
func (s *Server) finalizeNamespace(o *stored) {
	for _, t := range s.tables {
		for _, other := range t {
			if other.kind.namespaced && namespaceOf(other.content) == nameOf(o.content) {
				return
			}
		}
	}
	obj := maps.Clone(o.content)
	ownMetadata(obj)
	obj["spec"] = content{}
	_, _ = s.own(o).storeUpdate(obj, o)
}

func (s *Server) dependents(owner *stored) []*stored {
	var out []*stored
	for _, gr := range sortedResources(s.tables) {
		for _, o := range s.tables[gr].sorted() {
			for _, ref := range references(o) {
				if string(ref.UID) == uidOf(owner.content) {
					out = append(out, o)
				}
			}
		}
	}
	return out
}

func references(o *stored) []metav1.OwnerReference {
	if _, ok := metadata(o.content)["ownerReferences"]; !ok {
		return nil
	}
	return accessor(o.content).GetOwnerReferences()
}

// blocks says that an owner's foreground deletion waits for the object.
func blocks(o *stored, owner string) bool {
	for _, ref := range references(o) {
		if string(ref.UID) == owner && ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion {
			return true
		}
	}
	return false
}

// disown deletes an object whose owners are all gone or wait for their dependents,
// and takes the references to such owners off one that has others.
func (s *Server) disown(o *stored) {
	var solid, dangling, waiting []string
	for _, ref := range references(o) {
		owner := s.owner(ref, namespaceOf(o.content))
		switch {
		case owner == nil:
			dangling = append(dangling, string(ref.UID))
		case deleting(owner.content) && slices.Contains(finalizersOf(owner.content), metav1.FinalizerDeleteDependents):
			waiting = append(waiting, string(ref.UID))
		default:
			solid = append(solid, string(ref.UID))
		}
	}
	switch {
	case len(solid) > 0 && len(dangling)+len(waiting) > 0:
		s.unlink(o, append(dangling, waiting...))
	case len(solid) > 0 || len(dangling)+len(waiting) == 0:
	case len(waiting) > 0 && len(s.dependents(o)) > 0:
		s.drop(o, metav1.DeletePropagationForeground)
	default:
		s.drop(o, s.policyOf(o))
	}
}

// policyOf is how an object is deleted whose owners are gone: as its finalizers say.
func (s *Server) policyOf(o *stored) metav1.DeletionPropagation {
	finalizers := finalizersOf(o.content)
	switch {
	case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	default:
		return metav1.DeletePropagationBackground
	}
}

// owner finds who a reference means, by name and uid.
func (s *Server) owner(ref metav1.OwnerReference, namespace string) *stored {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil
	}
	for _, k := range s.kinds {
		if k.gvk.GroupKind() != gv.WithKind(ref.Kind).GroupKind() {
			continue
		}
		if !k.namespaced {
			namespace = ""
		}
		if o := s.find(k, namespace, ref.Name); o != nil && uidOf(o.content) == string(ref.UID) {
			return o
		}
	}
	return nil
}

// unlink takes references off an object.
func (s *Server) unlink(o *stored, uids []string) {
	o = s.find(o.kind, namespaceOf(o.content), nameOf(o.content))
	if o == nil {
		return
	}
	o = o.as(o.kind.preferred())
	obj := maps.Clone(o.content)
	m := ownMetadata(obj)
	list, _ := m["ownerReferences"].([]any)
	var rest []any
	for _, ref := range list {
		if fields, _ := ref.(content); !slices.Contains(uids, text(fields, "uid")) {
			rest = append(rest, ref)
		}
	}
	if len(rest) == len(list) {
		return
	}
	if m["ownerReferences"] = rest; len(rest) == 0 {
		delete(m, "ownerReferences")
	}
	s.rewrite(o, obj)
}
