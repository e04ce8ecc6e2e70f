package snapshot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Reader loads records of one Transaction. It reads an object only when a record
// needs it, and once for all records that are loaded one after the other: the objects that it
// has used last it keeps, up to keptBytes of them, and that one does not exist.
// It may be used concurrently, and it lives no longer than one run of a
// Transaction.
type Reader struct {
	store  *Store
	owner  Owner
	places []place

	mu    sync.Mutex
	cache map[place]*cached
	used  []place // those of which data is kept, the one used last at the end
	size  int     // of that
}

// cached is an object with before-images. All but turn is under the mutex of the Reader.
type cached struct {
	turn chan struct{} // has room for one: anyone who reads the object
	read bool
	data map[string]string // nil: the object does not exist
}

// keptBytes is how much a Reader keeps. Records are loaded in the order of their items, or
// the other way round, several at once: that takes two objects, of 1 MiB each.
const keptBytes = 4 << 20

// Open returns a Reader for the before-images that ref names.
func (s *Store) Open(o Owner, ref v1alpha1.RollbackRef) *Reader {
	r := &Reader{store: s, owner: o, places: listed(o.Name, &ref), cache: map[place]*cached{}}
	for _, p := range r.places {
		r.cache[p] = &cached{turn: make(chan struct{}, 1)}
	}
	return r
}

// Load loads one record; anyone who needs several opens a Reader.
func (s *Store) Load(ctx context.Context, o Owner, ref v1alpha1.RollbackRef, image v1alpha1.BeforeImage) (Record, error) {
	return s.Open(o, ref).Load(ctx, image)
}

// Load loads a record and checks it against its digest. An error is terminal with
// reason BeforeImageLost where it or a part of it is missing, and
// BeforeImageTampered where it is not what was saved. Who owns the object does not
// matter, since the digest says more: a person may have put a lost one back.
func (r *Reader) Load(ctx context.Context, image v1alpha1.BeforeImage) (Record, error) {
	var missing, wrong *place
	for _, p := range r.order(image.Key) {
		data, err := r.object(ctx, p)
		if err != nil {
			return Record{}, err
		}
		if data == nil && missing == nil {
			missing = &p
		}
		if _, there := data[image.Key]; !there {
			continue
		}
		text, gone, err := r.assemble(ctx, p, image)
		if err != nil {
			return Record{}, err
		}
		if text != "" {
			return r.decode(p, image.Key, text)
		}
		if wrong == nil {
			wrong = &p
		}
		if gone != nil {
			missing = gone
		}
	}
	switch {
	case missing != nil:
		return Record{}, r.lost(*missing, image.Key, "the object does not exist")
	case wrong != nil:
		return Record{}, r.tampered(*wrong, image.Key, "the content is not what was saved")
	case len(r.places) == 0:
		return Record{}, r.lost(place{configMaps, 1}, image.Key, "the status names no object")
	default:
		return Record{}, r.lost(r.order(image.Key)[0], image.Key, "the key is missing")
	}
}

// order is the order in which objects are searched for a record: first where its
// key says that it begins, and of these the Secret first for the record of a
// Secret.
func (r *Reader) order(key string) []place {
	_, rest, _ := strings.Cut(key, "_")
	likely := place{configMaps, beginsIn(key)}
	if strings.HasPrefix(rest, "Secret_") {
		likely.kind = secrets
	}
	rank := func(p place) int {
		switch {
		case p == likely:
			return 0
		case p.number == likely.number:
			return 1
		default:
			return 2
		}
	}
	out := slices.Clone(r.places)
	slices.SortStableFunc(out, func(a, b place) int { return rank(a) - rank(b) })
	return out
}

// assemble puts the parts of a record together, beginning in the object at p,
// until they have the digest. The text is empty if they never do; gone is the
// object, if any, that is missing for that.
func (r *Reader) assemble(ctx context.Context, p place, image v1alpha1.BeforeImage) (text string, gone *place, err error) {
	var parts strings.Builder
	sum := sha256.New()
	for part := 1; ; part++ {
		data, err := r.object(ctx, p)
		if err != nil {
			return "", nil, err
		}
		piece, there := data[partKey(image.Key, part)]
		switch {
		case data == nil:
			return "", &p, nil
		case !there:
			return "", nil, nil
		}
		_, _ = parts.WriteString(piece)
		_, _ = sum.Write([]byte(piece))
		if digestOf(sum.Sum(nil)) == image.Digest {
			return parts.String(), nil, nil
		}
		p.number++
		if !slices.Contains(r.places, p) {
			return "", nil, nil
		}
	}
}

// object reads an object, unless it is kept.
func (r *Reader) object(ctx context.Context, p place) (map[string]string, error) {
	turn := r.cache[p].turn
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another to read before-images: %w", ctx.Err())
	}
	if data, kept := r.kept(p); kept {
		return data, nil
	}
	there, found, err := r.store.read(ctx, r.owner, p)
	if err != nil {
		return nil, err
	}
	data := there.data
	if found && data == nil {
		data = map[string]string{}
	}
	r.keep(p, data)
	return data, nil
}

// kept returns an object that is kept.
func (r *Reader) kept(p place) (data map[string]string, kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cache[p]
	if i := slices.Index(r.used, p); i >= 0 {
		r.used = append(slices.Delete(r.used, i, i+1), p)
	}
	return c.data, c.read
}

// keep keeps an object that was read, in place of those that were not used for longest.
func (r *Reader) keep(p place, data map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cache[p]
	c.read, c.data = true, data
	if data == nil {
		return
	}
	r.used, r.size = append(r.used, p), r.size+sizeOf(data)
	for r.size > keptBytes && len(r.used) > 1 {
		old := r.cache[r.used[0]]
		r.used, r.size = r.used[1:], r.size-sizeOf(old.data)
		old.read, old.data = false, nil
	}
}

func sizeOf(data map[string]string) int {
	n := 0
	for key, value := range data {
		n += len(key) + len(value)
	}
	return n
}

// decode reads a record whose digest is right. That it cannot be read all the
// same means that the digest was changed with it, or that a newer Janus wrote it.
func (r *Reader) decode(p place, key, text string) (Record, error) {
	record, err := Decode([]byte(text))
	if err != nil {
		return Record{}, r.tampered(p, key, err.Error())
	}
	record.Confidential = p.kind == secrets
	return record, nil
}

func (r *Reader) lost(p place, key, why string) error {
	return r.failure(errclass.BeforeImageLost, p, key, why).
		WithHint("nothing was restored from it; put the object back as it was, for example from a backup of the cluster, or correct the target by hand")
}

func (r *Reader) tampered(p place, key, why string) error {
	return r.failure(errclass.BeforeImageTampered, p, key, why).
		WithHint("nothing was restored from it; find out who changed it, then put the object back as it was, for example from a backup of the cluster, or correct the target by hand")
}

func (r *Reader) failure(reason string, p place, key, why string) *errclass.Error {
	return errclass.New(errclass.Terminal, reason, "load the before-image from",
		describe(r.owner.Namespace, p.kind, objectName(r.owner.Name, p.number)), "key %s: %s", key, why)
}
