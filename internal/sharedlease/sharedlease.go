// Package sharedlease reads and writes what a Lease says that several holders share: who they
// are, and who waits to have it alone. It is a record; lockmgr has the rules for it.
package sharedlease

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Holder is the holder of a Lease that readers share. No Transaction can have this
// identity, and no namespace this name: a program that does not know shared
// locks waits for the Lease as for that of any other holder.
const Holder = "janus.io/shared"

const (
	// AnnotationReaders lists, as JSON, who shares a Lease.
	AnnotationReaders = "janus.io/shared-by"
	// AnnotationNext has, as JSON, the writer that waits for a shared Lease.
	AnnotationNext = "janus.io/wanted-by"
)

// An Entry is one holder in a shared Lease. The format is read by every janusd of the cluster, also
// during an upgrade.
type Entry struct {
	Holder  string           `json:"holder"`
	Seconds int32            `json:"seconds"`
	Renewed metav1.MicroTime `json:"renewed"`
	// Over is the resourceVersion of the Lease that this entry was written over, empty for one
	// that came with the Lease. It tells each writing of an entry from all others, whatever the
	// clocks say.
	Over string `json:"over,omitempty"`
	// Owner is set if the holder can own the Lease.
	Owner *metav1.OwnerReference `json:"owner,omitempty"`
}

// A Sharing is what a shared Lease says.
type Sharing struct {
	Readers []Entry
	Next    *Entry
}

// Of reads what a Lease says of its readers. A list that cannot be read is none: the
// Lease then has a holder of a strange name, and expires.
func Of(lease *coordinationv1.Lease) (s Sharing, shared bool) {
	var readers []Entry
	if holderOf(lease) != Holder || json.Unmarshal([]byte(lease.Annotations[AnnotationReaders]), &readers) != nil {
		return Sharing{}, false
	}
	for _, r := range readers {
		if r.Holder != "" {
			s = s.With(r) // Each once, even if it is listed twice.
		}
	}
	var next Entry
	if json.Unmarshal([]byte(lease.Annotations[AnnotationNext]), &next) == nil && next.Holder != "" {
		s.Next = &next
	}
	return s, true
}

// By returns the holders that share a Lease; none if it has one holder or none.
func By(lease *coordinationv1.Lease) []string {
	s, _ := Of(lease)
	out := make([]string, len(s.Readers))
	for i, r := range s.Readers {
		out[i] = r.Holder
	}
	return out
}

// NextOf returns the holder that waits to have a shared Lease alone; empty if none does.
func NextOf(lease *coordinationv1.Lease) string {
	if s, _ := Of(lease); s.Next != nil {
		return s.Next.Holder
	}
	return ""
}

// Holders are those who have a Lease: one, or those who share it. An empty Lease has none.
func Holders(lease *coordinationv1.Lease) []string {
	if _, shared := Of(lease); shared {
		return By(lease)
	}
	if holder := holderOf(lease); holder != "" {
		return []string{holder}
	}
	return nil
}

// Reader returns the entry of a reader.
func (s Sharing) Reader(identity string) (Entry, bool) {
	i := slices.IndexFunc(s.Readers, func(r Entry) bool { return r.Holder == identity })
	if i < 0 {
		return Entry{}, false
	}
	return s.Readers[i], true
}

// Duration is how long the entry lasts without being renewed.
func (e Entry) Duration() time.Duration { return time.Duration(e.Seconds) * time.Second }

// With is the sharing with a reader in it, in the place of an entry that it had.
func (s Sharing) With(r Entry) Sharing {
	s.Readers = slices.Clone(s.Readers)
	if i := slices.IndexFunc(s.Readers, func(old Entry) bool { return old.Holder == r.Holder }); i >= 0 {
		s.Readers[i] = r
		return s
	}
	s.Readers = append(s.Readers, r)
	return s
}

// Without is the sharing without a holder, as a reader and as the next.
func (s Sharing) Without(identity string) Sharing {
	s.Readers = slices.DeleteFunc(slices.Clone(s.Readers), func(r Entry) bool { return r.Holder == identity })
	if s.Next != nil && s.Next.Holder == identity {
		s.Next = nil
	}
	return s
}

// IsEmpty says whether nobody is in it.
func (s Sharing) IsEmpty() bool { return len(s.Readers) == 0 && s.Next == nil }

// all are the readers and the next.
func (s Sharing) all() []Entry {
	if s.Next == nil {
		return s.Readers
	}
	return append(slices.Clone(s.Readers), *s.Next)
}

// In is a copy of the Lease that says this. Its duration is the longest of all, so that a
// program that judges the Lease as a whole takes it from no holder too early.
func (s Sharing) In(lease *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	lease = lease.DeepCopy()
	annotations := maps.Clone(lease.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	readers := s.Readers
	if readers == nil {
		readers = []Entry{}
	}
	annotations[AnnotationReaders] = encode(readers)
	delete(annotations, AnnotationNext)
	if s.Next != nil {
		annotations[AnnotationNext] = encode(s.Next)
	}
	lease.Annotations = annotations
	seconds := int32(1)
	for _, e := range s.all() {
		seconds = max(seconds, e.Seconds)
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To(Holder), &seconds
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	lease.OwnerReferences = s.owners()
	return lease
}

// owners are those of the Lease: all in it, or none if one of them cannot own it.
func (s Sharing) owners() []metav1.OwnerReference {
	var out []metav1.OwnerReference
	for _, e := range s.all() {
		if e.Owner == nil {
			return nil
		}
		if !slices.ContainsFunc(out, func(o metav1.OwnerReference) bool { return o.UID == e.Owner.UID }) {
			out = append(out, *e.Owner)
		}
	}
	return out
}

// encode cannot fail: what it is given is made of text, numbers and times.
func encode(what any) string {
	text, err := json.Marshal(what)
	if err != nil {
		panic(fmt.Sprintf("sharedlease: encode %T: %v", what, err))
	}
	return string(text)
}

func holderOf(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }
