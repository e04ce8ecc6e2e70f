package snapshot

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// Store keeps before-images. It may be used concurrently.
type Store struct {
	objects   objects
	sensitive []schema.GroupKind
	nonces    nonces
	reach     reach
}

// NewStore stores through client, which acts as Janus itself: a ServiceAccount
// that changes targets has no business with the before-images. It needs get,
// create, patch and delete on ConfigMaps and Secrets, and get on Transactions.
// Records of sensitive kinds, to which Secret always belongs, go into Secrets.
func NewStore(client kubernetes.Interface, sensitive []schema.GroupKind) *Store {
	return &Store{
		objects:   objects{client.CoreV1().RESTClient()},
		sensitive: append([]schema.GroupKind{target.SecretKind}, sensitive...),
		nonces:    newNonces(),
		reach:     newReach(),
	}
}

// Sensitive reports whether the content of this kind is kept confidential.
func (s *Store) Sensitive(gk schema.GroupKind) bool { return slices.Contains(s.sensitive, gk) }

// Saved says where before-images are.
type Saved struct {
	// Ref lists every object, those of earlier calls included.
	Ref v1alpha1.RollbackRef
	// Images are in the order of the records.
	Images []v1alpha1.BeforeImage
	// Lost says that what became of a creation is not known, although the object may be
	// there: the request may land once that one is gone. It is set with an error, too.
	Lost bool
}

// parallel is how many requests one call has under way. More gains little
// against one API server.
const parallel = 4

// maxBatches bounds how many leftovers of earlier attempts are stepped over. An attempt at a
// large Transaction leaves many.
const maxBatches = 1000

// Save stores the records of a Transaction, and returns when that is durable. It
// counts once a status with what it returns has been written. Existing is what
// that status names already, and what earlier calls have returned that save the others
// of a Transaction whose records are saved in several calls: it stays as it is, and what is
// added goes into further objects. Small Transactions take one request, and two if some of
// the kinds are sensitive.
//
// A call may be repeated after any error. What an earlier attempt left is taken
// over where it is equal; otherwise it is left alone and stepped over, because it
// may be what a second controller's status is about to name. SweepUnlisted
// removes it at the end. What a gone Transaction of the same name has left is
// replaced.
//
// An error is terminal with reason AlreadyExists where another client's object
// has the name, TooLarge where status.rollbackRef could not list the objects,
// and Invalid for records that repeat an item.
func (s *Store) Save(ctx context.Context, o Owner, existing *v1alpha1.RollbackRef, records []Encoded) (Saved, error) {
	images := make([]v1alpha1.BeforeImage, len(records))
	positions := map[kind][]int{}
	encoded := map[kind][]stored{}
	items := map[int]bool{}
	for i, r := range records {
		if items[r.item] {
			return Saved{}, errclass.New(errclass.Terminal, errclass.Invalid, "save", r.target, "two before-images of item %d", r.item)
		}
		items[r.item] = true
		encoded[r.kind] = append(encoded[r.kind], r.stored)
		positions[r.kind] = append(positions[r.kind], i)
		images[i] = r.image
	}

	known := listed(o.Name, existing)
	batches := make([]batch, len(kinds))
	var lost atomic.Bool
	var group errgroup.Group
	for n, k := range kinds {
		if len(encoded[k]) > 0 {
			group.Go(func() (err error) {
				batches[n], err = s.saveKind(ctx, o, k, last(known, k)+1, encoded[k], &lost)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return Saved{Lost: lost.Load()}, err
	}
	ref, err := refOf(o, existing, batches)
	for n, k := range kinds {
		for j, key := range batches[n].keys {
			images[positions[k][j]].Key = key
		}
	}
	return Saved{Ref: ref, Images: images, Lost: lost.Load()}, err
}

// Encoded is a record as it is going to be stored. It takes much less memory than the objects
// that the record was made of.
type Encoded struct {
	stored
	item   int
	target string
	kind   kind
	image  v1alpha1.BeforeImage // without its key, which is known once the record has been laid out
}

// Bytes is how many bytes it takes in the store.
func (e Encoded) Bytes() int { return len(e.key) + len(e.data) }

// Encode encodes a record. An error is terminal with reason Invalid.
func (s *Store) Encode(r Record) (Encoded, error) {
	data, err := s.encode(r)
	if err != nil {
		return Encoded{}, errclass.New(errclass.Terminal, errclass.Invalid, "save", r.Target.String(), "the before-image cannot be encoded: %w", err)
	}
	return Encoded{
		stored: stored{Key(r.Item, r.Target), string(data)}, item: r.Item, target: r.Target.String(), kind: s.kindFor(r), image: imageOf(r, data),
	}, nil
}

// encode adds a nonce to what goes into a Secret.
func (s *Store) encode(r Record) ([]byte, error) {
	data, err := Encode(r)
	if err != nil || s.kindFor(r) != secrets {
		return data, err
	}
	d, err := documentOf(r)
	if err != nil {
		return nil, err
	}
	d.Nonce = s.nonces.of(data)
	return json.Marshal(d)
}

func (s *Store) kindFor(r Record) kind {
	if r.Confidential || s.Sensitive(r.Target.GVK.GroupKind()) {
		return secrets
	}
	return configMaps
}

// imageOf is what the status says of a record; its key is known once it has been
// laid out.
func imageOf(r Record, data []byte) v1alpha1.BeforeImage {
	image := v1alpha1.BeforeImage{Digest: Digest(data)}
	if r.Before != nil {
		image.UID, image.ResourceVersion = r.Before.GetUID(), r.Before.GetResourceVersion()
	}
	return image
}

func refOf(o Owner, existing *v1alpha1.RollbackRef, batches []batch) (v1alpha1.RollbackRef, error) {
	var ref v1alpha1.RollbackRef
	if existing != nil {
		ref = *existing.DeepCopy()
	}
	if ref.Name == "" {
		ref.Name = objectName(o.Name, 1)
	}
	for _, b := range batches {
		for _, c := range b.chunks {
			ref.Objects = append(ref.Objects, c.place.entry(o.Name))
		}
	}
	if len(ref.Objects) > maxObjects {
		return v1alpha1.RollbackRef{}, tooLarge(o)
	}
	return ref, nil
}

func tooLarge(o Owner) error {
	return errclass.New(errclass.Terminal, errclass.TooLarge, "save the before-images of", "Transaction "+o.Namespace+"/"+o.Name,
		"they take more than %d objects", maxObjects).WithHint("split the Transaction")
}

// saveKind writes the records that go into one kind of object, at the first
// numbers that are free.
func (s *Store) saveKind(ctx context.Context, o Owner, k kind, first int, records []stored, lost *atomic.Bool) (batch, error) {
	for range maxBatches {
		b := layout(k, first, records)
		b.lost = lost
		if first+len(b.chunks)-1 > maxObjects {
			return batch{}, tooLarge(o)
		}
		occupied, err := s.write(ctx, o, b)
		if err != nil {
			return batch{}, err
		}
		if occupied == 0 {
			return b, nil
		}
		first = occupied + 1
	}
	return batch{}, errclass.New(errclass.Terminal, errclass.AlreadyExists, "create", describe(o.Namespace, k, objectName(o.Name, first)),
		"earlier attempts have left %d batches of before-images", maxBatches).
		WithHint("delete the Transaction and create it again")
}

// write creates the objects of a batch: the first one, and then the others side
// by side. If one of the names is occupied by another batch of the same
// Transaction, it says up to which number.
func (s *Store) write(ctx context.Context, o Owner, b batch) (occupied int, err error) {
	occupied, err = s.put(ctx, o, b, b.chunks[0])
	if err != nil || occupied > 0 {
		return occupied, err
	}
	rest := b.chunks[1:]
	others := make([]int, len(rest))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, c := range rest {
		group.Go(func() (err error) {
			others[i], err = s.put(ctx, o, b, c)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if len(rest) > 0 && slices.Max(others) > 0 {
		return max(slices.Max(others), b.last()), nil
	}
	return 0, nil
}
