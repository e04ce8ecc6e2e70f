package snapshot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Reader loads records of one Transaction. It reads an object only when a record
// needs it, and at most once; what it keeps is no larger than what it has read.
// It may be used concurrently, and it lives no longer than one run of a
// Transaction: what it has read it never looks at again.
type Reader struct {
	store  *Store
	owner  Owner
	places []place
	cache  map[place]*cached
}

// cached is an object with before-images.
type cached struct {
	turn chan struct{} // has room for one: whoever reads the object, or looks at it
	read bool
	data map[string]string // nil: the object does not exist
}

// Open returns a Reader for the before-images that ref names.
func (s *Store) Open(o Owner, ref v1alpha1.RollbackRef) *Reader {
	r := &Reader{store: s, owner: o, places: listed(o.Name, &ref), cache: map[place]*cached{}}
	for _, p := range r.places {
		r.cache[p] = &cached{turn: make(chan struct{}, 1)}
	}
	return r
}

// Load loads one record; whoever needs several opens a Reader.
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

// object reads an object, the first time.
func (r *Reader) object(ctx context.Context, p place) (map[string]string, error) {
	c := r.cache[p]
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another to read before-images: %w", ctx.Err())
	}
	if c.read {
		return c.data, nil
	}
	there, found, err := r.store.read(ctx, r.owner, p)
	if err != nil {
		return nil, err
	}
	if c.read, c.data = true, there.data; found && c.data == nil {
		c.data = map[string]string{}
	}
	return c.data, nil
}

// decode reads a record whose digest is right. That it cannot be read all the
// same means that the digest was changed with it, or that a newer Janus wrote it.
func (r *Reader) decode(p place, key, text string) (Record, error) {
	record, err := Decode([]byte(text))
	if err != nil {
		return Record{}, r.tampered(p, key, err.Error())
	}
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
