package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

const (
	// maxData is how many bytes of data the server takes in one ConfigMap or
	// Secret.
	maxData = 1_048_576
	// margin is kept free of it. The server counts the values and we the keys as
	// well, so it guards only against a server that counts something else too.
	margin = 1_024
	// capacity is what goes into one object, keys included.
	capacity = maxData - margin
)

// stored is an encoded record on its way into objects.
type stored struct {
	key  string // as Key returns it
	data string
}

// chunk is the content of one object.
type chunk struct {
	place place
	data  map[string]string
	size  int
}

func (c *chunk) put(key, value string) {
	c.data[key] = value
	c.size += len(key) + len(value)
}

// batch is what one Save writes into one kind of object, numbered from first on
// without a gap. Its first object is written before the others, and each object
// says which is the last: so everything that a crash left can be found from the
// first.
type batch struct {
	chunks []*chunk
	// keys are those of the first part of each record, in their order.
	keys []string
	// mark is the same in all objects of a batch, and in no other batch.
	mark string
	// lost is set when what became of a creation is not known.
	lost *atomic.Bool
}

// layout packs records, in their order, into objects numbered from first on. A
// record is cut only if it would not fit an object of its own, so that most can
// be read with one request.
func layout(k kind, first int, records []stored) batch {
	p := packer{kind: k, next: first}
	for _, r := range records {
		p.add(r)
	}
	sum := sha256.New()
	for i, r := range records {
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", p.out.keys[i], len(r.data), r.data)
	}
	p.out.mark = strconv.Itoa(p.next-1) + "." + hex.EncodeToString(sum.Sum(nil))
	return p.out
}

// packer fills one object after the other.
type packer struct {
	kind    kind
	next    int
	current *chunk
	out     batch
}

func (p *packer) open() {
	p.current = &chunk{place: place{p.kind, p.next}, data: map[string]string{}}
	p.out.chunks = append(p.out.chunks, p.current)
	p.next++
}

func (p *packer) add(r stored) {
	if p.current == nil || p.current.size+len(numbered(r.key, p.next-1))+len(r.data) > capacity {
		p.open()
	}
	key := numbered(r.key, p.current.place.number)
	p.out.keys = append(p.out.keys, key)
	rest := r.data
	for part := 1; ; part++ {
		name := partKey(key, part)
		room := capacity - p.current.size - len(name)
		if len(rest) <= room {
			p.current.put(name, rest)
			return
		}
		cut := runeStart(rest, room)
		p.current.put(name, rest[:cut])
		rest = rest[cut:]
		p.open()
	}
}

// runeStart is the last place up to at where no character is cut in two: a
// ConfigMap takes nothing but UTF-8.
func runeStart(s string, at int) int {
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

// partKey is the key of a part of a record, counted from 1.
func partKey(key string, part int) string {
	if part == 1 {
		return key
	}
	return key + "." + strconv.Itoa(part)
}

// numbered adds to a key the number of the object that the record begins in,
// unless it is the first: anyone who restores a record knows from its key which
// object to read.
func numbered(key string, object int) string {
	if object == 1 {
		return key
	}
	return key + ".o" + strconv.Itoa(object)
}

// beginsIn reads that number. It is a hint, for the name of a target may look
// the same; where it is wrong, the other objects are searched.
func beginsIn(key string) int {
	if digits, found := afterLast(key, ".o"); found {
		if n, err := strconv.Atoi(digits); err == nil && n > 1 {
			return n
		}
	}
	return 1
}

// lastOf reads the number of a batch's last object off its mark. A mark that
// another client has changed names no more than the object that carries it.
func lastOf(mark string, number int) int {
	digits, _, _ := strings.Cut(mark, ".")
	n, err := strconv.Atoi(digits)
	if err != nil || n < number || n > maxObjects {
		return number
	}
	return n
}

// maxObjects is how many objects status.rollbackRef can list.
const maxObjects = 10_000

func (b batch) last() int { return b.chunks[len(b.chunks)-1].place.number }
