package wiring

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/content"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/target"
)

// sources reads the contents that are not in a Transaction but in keys of Secrets and
// ConfigMaps. What a key holds when the Transaction is accepted is pinned by its digest in the
// status, and nothing else is used from then on.
type sources struct {
	own      dynamic.Interface // as janusd
	clock    clock.PassiveClock
	parallel int

	mu    sync.Mutex
	kept  map[types.UID]map[int]pinned
	size  int // of what is kept
	turns map[types.UID]chan struct{}
}

// pinned are the bytes of one content, and what they are pinned by.
type pinned struct {
	data   []byte
	digest string
}

// keptBytes is how much of what was read is kept, of all Transactions together: an object holds
// the contents of many items, and each of them is asked for several times.
const keptBytes = 8 << 20

func newSources(own dynamic.Interface, now clock.PassiveClock, parallel int) *sources {
	return &sources{own: own, clock: now, parallel: parallel, kept: map[types.UID]map[int]pinned{}, turns: map[types.UID]chan struct{}{}}
}

// content is the content of the change of an item, from wherever it is.
func (s *sources) content(ctx context.Context, t *api.Transaction, i int, id *target.Identity) (map[string]any, error) {
	change := plan.ChangeOf(t, i)
	if change.ContentFrom == nil {
		return contentOf(change)
	}
	data, err := s.bytes(ctx, t, i, id)
	if err != nil {
		return nil, err
	}
	decoded, err := content.Decode(data)
	if err != nil {
		return nil, errclass.New(errclass.Terminal, errclass.Invalid, "read the content of", describeTarget(t, i), "%s: %w", describeSource(t, i), err)
	}
	return decoded, nil
}

// weight is about how many bytes the content of an item takes, decoded, if it is kept outside of the
// Transaction.
func (s *sources) weight(ctx context.Context, t *api.Transaction, i int, id *target.Identity) (int64, error) {
	if plan.ChangeOf(t, i).ContentFrom == nil {
		return 0, nil
	}
	data, err := s.bytes(ctx, t, i, id)
	return content.Weight(data), err
}

// bytes are those of the content of an item that is kept outside of the Transaction.
func (s *sources) bytes(ctx context.Context, t *api.Transaction, i int, id *target.Identity) ([]byte, error) {
	if data, known := s.get(t.UID, i, t.Status.Items[i].ContentDigest); known {
		return data, nil
	}
	return s.fetch(ctx, t, i, id)
}

// fetch reads the content of an item, and keeps what else the same object holds. Several items
// are worked on at once, and most of the contents of one object are asked for together: so one
// reads it, and the others wait for that.
func (s *sources) fetch(ctx context.Context, t *api.Transaction, i int, id *target.Identity) ([]byte, error) {
	turn := s.turn(t.UID)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another to read contents: %w", ctx.Err())
	}
	want := t.Status.Items[i].ContentDigest
	if data, known := s.get(t.UID, i, want); known {
		return data, nil
	}
	of := sourceObjectOf(t.Spec.Changes[i].ContentFrom)
	object, err := s.read(ctx, t, i, id)
	if err != nil {
		return nil, err
	}
	for j := range t.Status.Items[:min(len(t.Status.Items), len(t.Spec.Changes))] {
		other := t.Spec.Changes[j].ContentFrom
		if j == i || other == nil || sourceObjectOf(other) != of {
			continue
		}
		if found, ok := content.Value(object, other.Ref().Key); ok && digestOf(other, object, found) == t.Status.Items[j].ContentDigest {
			s.keep(t.UID, j, pinned{found, t.Status.Items[j].ContentDigest})
		}
	}
	return s.check(t, i, object, want)
}

// pinnedAtOnce is how many sources are read at once when all are read. Each takes several times
// its size while its contents are taken out of it.
const pinnedAtOnce = 4

// pin reads the sources of some items, and returns what pins the content of each. What is wrong is
// said of each item by itself; an error is worth another try.
func (s *sources) pin(ctx context.Context, t *api.Transaction, which []int, id *target.Identity) (digests []string, wrong []error, err error) {
	digests, wrong = make([]string, len(t.Spec.Changes)), make([]error, len(t.Spec.Changes))
	items := map[sourceObject][]int{}
	for _, i := range which {
		change := t.Spec.Changes[i]
		switch from := change.ContentFrom; {
		case from == nil:
		case (from.SecretKeyRef == nil) == (from.ConfigMapKeyRef == nil), change.Content != nil:
			wrong[i] = errclass.New(errclass.Terminal, errclass.Invalid, "validate", describeTarget(t, i), "it takes one of content, secretKeyRef and configMapKeyRef")
		default:
			of := sourceObjectOf(from)
			items[of] = append(items[of], i)
		}
	}
	objects := slices.SortedFunc(maps.Keys(items), sourceObject.compare)
	failed := make([]error, len(objects))
	fanout.Do(min(s.parallel, pinnedAtOnce), len(objects), func(n int) {
		of := items[objects[n]]
		object, err := s.read(ctx, t, of[0], id)
		if err != nil {
			failed[n] = err
			return
		}
		for _, i := range of {
			var data []byte
			if data, wrong[i] = s.check(t, i, object, ""); wrong[i] == nil {
				digests[i] = digestOf(t.Spec.Changes[i].ContentFrom, object, data)
			}
		}
	})
	for n, err := range failed {
		if err == nil {
			continue
		}
		if mayHeal(err) {
			return nil, nil, err
		}
		for _, i := range items[objects[n]] {
			wrong[i] = err
		}
	}
	return digests, wrong, nil
}

// check returns the bytes of an item's content if they are what they must be: what was pinned,
// or where nothing is yet, what the spec says.
func (s *sources) check(t *api.Transaction, i int, object *unstructured.Unstructured, want string) ([]byte, error) {
	from := t.Spec.Changes[i].ContentFrom
	data, ok := content.Value(object, from.Ref().Key)
	if !ok {
		return nil, missing(t, i, "it has no such key")
	}
	got := digestOf(from, object, data)
	switch {
	case want != "" && got != want:
		return nil, errclass.New(errclass.Conflict, errclass.ContentChanged, "read the content of", describeTarget(t, i),
			"%s has changed since the Transaction was accepted", describeSource(t, i)).
			WithHint("create the Transaction again if what it holds now is wanted")
	case from.Digest != "" && content.Digest(data) != from.Digest:
		return nil, errclass.New(errclass.Terminal, errclass.ContentChanged, "read the content of", describeTarget(t, i),
			"%s does not have the digest %s", describeSource(t, i), from.Digest).
			WithHint("create the Transaction again with the digest of what it holds, or without one")
	}
	s.keep(t.UID, i, pinned{data, got})
	return data, nil
}

// readTooLate is the error about a change whose source another one may change before it is made:
// its content would be what the source held when the Transaction was accepted, and after a crash
// nobody could read that any more.
func readTooLate(t *api.Transaction, i, first int) error {
	return errclass.New(errclass.Terminal, errclass.Invalid, "read the content of", describeTarget(t, i),
		"%s is the target of item %s, and contents are read before the first change", describeSource(t, i), plan.ChangeName(first, t.Spec.Changes[first])).
		WithHint("change the source in another Transaction, or after the changes that need it")
}

// sourceObject is a Secret or a ConfigMap in the namespace of a Transaction.
type sourceObject struct {
	secret bool
	name   string
}

func sourceObjectOf(from *api.ContentSource) sourceObject {
	return sourceObject{from.Confidential(), from.Ref().Name}
}

func (o sourceObject) compare(other sourceObject) int {
	switch {
	case o == other:
		return 0
	case o.secret == other.secret && o.name < other.name, !o.secret && other.secret:
		return -1
	default:
		return 1
	}
}

func (o sourceObject) ref(namespace string) target.Ref {
	version := schema.GroupVersion{Version: "v1"}
	ref := target.Ref{GVK: version.WithKind("ConfigMap"), GVR: version.WithResource("configmaps"), Namespace: namespace, Name: o.name}
	if o.secret {
		ref.GVK, ref.GVR = version.WithKind("Secret"), version.WithResource("secrets")
	}
	return ref
}

// read gets the object that holds the content of an item. It does so as the ServiceAccount of
// the Transaction, for a person may name any object; with its own rights it reads only what was
// stored for this very Transaction, by anyone who knew what it holds.
func (s *sources) read(ctx context.Context, t *api.Transaction, i int, id *target.Identity) (*unstructured.Unstructured, error) {
	from := t.Spec.Changes[i].ContentFrom
	ref := sourceObjectOf(from).ref(t.Namespace)
	if from.Digest != "" && api.IsContentObject(ref.Name, t.Name) {
		object, err := s.own.Resource(ref.GVR).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case errclass.Is(err, errclass.NotFound):
			return nil, s.notStored(t, i)
		case errclass.Is(err, errclass.AccessDenied):
			return nil, errclass.New(errclass.Retryable, errclass.AccessDenied, "read", ref.String(), "%w", err).
				WithHint("Janus itself needs the right to get it: install its RBAC as shipped")
		case err != nil:
			return nil, errclass.Wrap(err, "read", ref.String(), true)
		case storedFor(object, t):
			return object, nil
		}
	}
	object, err := id.Resource(ref).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case errclass.Is(err, errclass.NotFound):
		return nil, missing(t, i, "it does not exist")
	case errclass.Is(err, errclass.AccessDenied):
		return nil, errclass.New(errclass.Terminal, errclass.AccessDenied, "read the content of", describeTarget(t, i),
			"ServiceAccount %s may not get %s", id.Account, ref).WithHint(fmt.Sprintf("grant it get on %s %s", ref.GVR.Resource, ref.Name))
	case err != nil:
		return nil, errclass.Wrap(err, "read", ref.String(), true)
	}
	return object, nil
}

// storedFor reports whether an object holds content of a Transaction and of no other.
func storedFor(object *unstructured.Unstructured, t *api.Transaction) bool {
	return object.GetLabels()[api.ContentLabel] == string(t.UID) &&
		slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == t.UID })
}

// digestOf pins a content. The key of that of a Secret is known to those alone who may read the
// Secret: nobody else can guess from the digest what it holds.
func digestOf(from *api.ContentSource, object *unstructured.Unstructured, data []byte) string {
	if from.Confidential() {
		return content.KeyedDigest(string(object.GetUID()), data)
	}
	return content.Digest(data)
}

func missing(t *api.Transaction, i int, why string) error {
	err := errclass.New(errclass.Retryable, errclass.ContentMissing, "read the content of", describeTarget(t, i), "%s is missing: %s", describeSource(t, i), why).
		WithHint("create it, or delete the Transaction")
	err.Awaited = []errclass.Awaited{{ID: sourceObjectOf(t.Spec.Changes[i].ContentFrom).ref(t.Namespace).ID()}}
	return err
}

// notStored is the error about content that kubectl janus run has yet to store. A command that
// was killed never does.
func (s *sources) notStored(t *api.Transaction, i int) error {
	if t.Status.Phase != "" && t.Status.Phase != api.PhasePending || s.clock.Since(t.CreationTimestamp.Time) < storeTime {
		return errclass.New(errclass.Retryable, errclass.ContentMissing, "read the content of", describeTarget(t, i),
			"%s is missing: it has not been stored yet", describeSource(t, i)).
			WithHint("kubectl janus run stores it; if that has ended, delete the Transaction and run it again")
	}
	return errclass.New(errclass.Terminal, errclass.ContentMissing, "read the content of", describeTarget(t, i),
		"%s is missing: kubectl janus run has not stored it within %s of the creation of the Transaction", describeSource(t, i), storeTime).
		WithHint("run the command again")
}

// storeTime is how long kubectl janus run may take to store contents.
const storeTime = 10 * time.Minute

func describeTarget(t *api.Transaction, i int) string {
	return t.Spec.Changes[i].Target.String()
}

func describeSource(t *api.Transaction, i int) string {
	from := t.Spec.Changes[i].ContentFrom
	return fmt.Sprintf("key %s of %s", from.Ref().Key, sourceObjectOf(from).ref(t.Namespace))
}
