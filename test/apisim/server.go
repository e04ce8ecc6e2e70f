package apisim

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// Options say how a Server behaves. The zero value is a server that allows
// everything.
type Options struct {
	// Now is the clock; nil means the real one, which in a bubble of testing/synctest
	// is that of the bubble. The times in managedFields are always by the latter, as
	// the library that makes them reads it.
	Now func() time.Time
	// Seed makes uids and generated names: the same ones for the same requests.
	Seed uint64
	// CRDs are CustomResourceDefinitions to begin with.
	CRDs []*Definition
	// Namespaces exist from the beginning, besides default.
	Namespaces []string
	// Objects exist from the beginning, in one of these namespaces, as another Server
	// has stored them, but with uids and resourceVersions of this one.
	Objects []*unstructured.Unstructured
	// Allowed is asked about every request but those for discovery, and by
	// SelfSubjectAccessReviews. Nil allows everything. It must not call the Server.
	Allowed func(Access) bool
	// Admit is asked about every write, dry runs too, once the object is complete. An
	// error refuses it; one that is no Status becomes a 403. It must not call the
	// Server.
	Admit func(Admission) error
	// Mutate may change the Object of every write, dry runs too, before it is checked, and
	// reports whether it has. It must not call the Server.
	Mutate func(Admission) bool
	// Observe is told of every change when it is stored. It must not call the Server.
	Observe func(Change)
	// CollectAtOnce does [Server.Collect] after every write that could give rise to it.
	CollectAtOnce bool
	// Ownerless says of which objects no managedFields are kept, where a test looks at
	// none of them: to keep them is the greater part of the work of a write. Nil keeps
	// all, as a real server does. Such an object cannot be applied.
	Ownerless func(resource schema.GroupResource, name string) bool
}

// Access is something that a user wants to do.
type Access struct {
	User                                                         string
	Verb, Group, Version, Resource, Subresource, Namespace, Name string
}

// Admission is a write as an admission webhook sees it.
type Admission struct {
	Access
	// Operation is CREATE, UPDATE or DELETE.
	Operation string
	// Object is what is to be stored, nil for a deletion. Old is what is there, nil for
	// a creation. Neither may be changed.
	Object, Old *unstructured.Unstructured
	DryRun      bool
}

// Server is the model. Its methods may be called concurrently.
type Server struct {
	options Options
	now     func() time.Time

	mu        sync.Mutex
	random    *rand.Rand
	version   uint64
	compacted uint64
	changes   []Change
	kinds     map[schema.GroupVersionResource]*kind
	tables    map[schema.GroupResource]table
	managers  map[managerKey]*fieldManager
	watchers  []*watcher
	// discovered are the discovery documents, nil when they are to be made again.
	discovered [2][]byte
	documents  map[schema.GroupVersion]*document
	// dirty says that the garbage collector may find something to do.
	dirty bool
	// starting says that what is stored is served already.
	starting bool
}

// New makes a Server.
func New(options Options) *Server {
	s := &Server{
		options: options, now: options.Now,
		random:    rand.New(rand.NewPCG(options.Seed, 0x6a616e7573)), //nolint:gosec // the same uids for the same seed are the point
		kinds:     make(map[schema.GroupVersionResource]*kind, len(builtins)+len(options.CRDs)),
		tables:    map[schema.GroupResource]table{},
		managers:  map[managerKey]*fieldManager{},
		documents: map[schema.GroupVersion]*document{},
		version:   firstVersion,
	}
	if s.now == nil {
		s.now = clock.RealClock{}.Now
	}
	for _, k := range builtins {
		s.kinds[k.groupVersion().WithResource(k.resource)] = k
		s.documents[k.groupVersion()] = k.schemas
	}
	for _, d := range options.CRDs {
		s.addKinds(d)
		s.addDefinition(d)
	}
	for _, namespace := range append([]string{metav1.NamespaceDefault}, options.Namespaces...) {
		s.addNamespace(namespace)
	}
	for _, obj := range options.Objects {
		s.addObject(obj)
	}
	return s
}

var definitions = crdKind.GroupVersion().WithResource("customresourcedefinitions")

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// administrator is who sends a request that impersonates nobody.
const administrator = "kubernetes-admin"

// Version is the resourceVersion of the last write.
func (s *Server) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Get returns an object as it is stored, or nil. It must not be changed.
func (s *Server) Get(resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.kinds[resource]
	if !ok {
		return nil
	}
	found := s.find(k, namespace, name)
	if found == nil {
		return nil
	}
	return wrap(found.content)
}

// Objects returns every object, by resource, namespace and name. They must not be
// changed.
func (s *Server) Objects() []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, gr := range sortedResources(s.tables) {
		for _, o := range s.tables[gr].sorted() {
			out = append(out, wrap(o.content))
		}
	}
	return out
}

// uid makes a uid of version 4.
func (s *Server) uid() string {
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], s.random.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], s.random.Uint64())
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	digits := hex.EncodeToString(raw[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// suffix is what the server puts behind a generateName.
func (s *Server) suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	out := make([]byte, 5)
	for i := range out {
		out[i] = letters[s.random.IntN(len(letters))]
	}
	return string(out)
}

func (s *Server) timestamp() string { return s.now().UTC().Format(time.RFC3339) }

// RoundTrip answers a request.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := bodyOf(req)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.answer(req, body)
	if s.options.CollectAtOnce && s.dirty && req.Method != http.MethodGet {
		s.collect()
	}
	return answer, nil
}

func removeFinalizer(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(f string) bool { return f == name })
}
