package apisim

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// stored is one version of an object. It does not change.
type stored struct {
	kind *kind
	// content is the object as it is read, raw as it was written: without the defaults
	// of what was missing.
	content, raw content
	version      uint64
	data         []byte
	// of is the object in the version in which it is stored, if this is another one, and
	// shown are the other versions that were asked for.
	of    *stored
	shown map[*kind]*stored
	// typed is the content with its parts told apart, once that was needed.
	typed *typed.TypedValue
}

// unstored is an object that is answered and not kept.
func (r *request) unstored(obj content) *stored {
	base := r.kind.stores()
	out := &stored{kind: base, content: base.shape.reread(converted(obj, base), r.applied)}
	return out.as(r.kind)
}

// encoded returns the object as JSON.
func (o *stored) encoded() []byte {
	if o.data == nil {
		o.data = encode(o.content)
	}
	return o.data
}

// table has the objects of a kind by namespace and name.
type table map[types.NamespacedName]*stored

// Change is one write that was stored.
type Change struct {
	// Type is Added, Modified or Deleted.
	Type watch.EventType
	// Version is the resourceVersion of the write. Each write has the next one.
	Version uint64
	// Old is the object before, nil if there was none, and New the object after: for
	// a deletion, the object as it was, with the resourceVersion of its deletion.
	// Neither may be changed.
	Old, New *unstructured.Unstructured
	// User is who asked for it.
	User string

	kind *kind
}

func (s *Server) table(k *kind) table {
	t, ok := s.tables[k.groupResource()]
	if !ok {
		t = table{}
		s.tables[k.groupResource()] = t
	}
	return t
}

func (s *Server) find(k *kind, namespace, name string) *stored {
	return s.tables[k.groupResource()][types.NamespacedName{Namespace: namespace, Name: name}].as(k)
}

// put stores an object, whose top level and metadata are the caller's own, under
// the next resourceVersion.
func (r *request) put(obj content) *stored {
	s, k := r.Server, r.kind.stores()
	old := s.find(k, namespaceOf(obj), nameOf(obj))
	s.version++
	delete(metadata(obj), "selfLink")
	metadata(obj)["resourceVersion"] = strconv.FormatUint(s.version, 10)
	obj = converted(obj, k)
	next := &stored{kind: k, content: k.shape.reread(obj, r.applied), raw: obj, version: s.version}
	if r.fresh != nil && isSame(r.freshOf, next.content) {
		// What has changed since was taken from the object before, or is metadata that
		// nobody owns.
		next.typed = r.fresh
	}
	obj = next.content
	s.table(k)[types.NamespacedName{Namespace: namespaceOf(obj), Name: nameOf(obj)}] = next
	change := Change{Type: watch.Added, Version: s.version, New: wrap(obj), User: r.user, kind: k}
	if old != nil {
		change.Type, change.Old = watch.Modified, wrap(old.content)
	}
	s.record(change)
	return next.as(r.kind)
}

// remove takes an object out, and returns it with the resourceVersion of that, in the same
// version of its kind.
func (s *Server) remove(old *stored, user string) *stored {
	s.version++
	asked := old.kind
	old = old.base()
	obj := maps.Clone(old.content)
	ownMetadata(obj)["resourceVersion"] = strconv.FormatUint(s.version, 10)
	delete(s.table(old.kind), types.NamespacedName{Namespace: namespaceOf(obj), Name: nameOf(obj)})
	s.record(Change{Type: watch.Deleted, Version: s.version, Old: wrap(old.content), New: wrap(obj), User: user, kind: old.kind})
	gone := &stored{kind: old.kind, content: obj, raw: obj, version: s.version}
	return gone.as(asked)
}

func wrap(obj content) *unstructured.Unstructured { return &unstructured.Unstructured{Object: obj} }

// record tells everybody of a change.
func (s *Server) record(c Change) {
	s.changes = append(s.changes, c)
	if c.kind.gvk == crdKind && !s.starting {
		s.serve(c)
	}
	s.tell(c)
	if s.options.Observe != nil {
		s.options.Observe(c)
	}
}

// History returns every write so far, in the order of their resourceVersions. The
// resourceVersions of a compaction, see [Server.Forget], are missing.
func (s *Server) History() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.changes)
}

// Forget compacts the history as a real API server does after a while: watches from
// an earlier resourceVersion than the present one are refused as expired.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes, s.compacted = nil, s.version
}
