package lockmgr

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// # Shared locks
//
// A Key that is Shared is locked together with others that share it, and to the exclusion of
// all who do not. There is one Lease all the same: its holder is SharedHolder, and an annotation
// lists who has it. Whoever wants it alone finds a Lease that exists, as ever, so a lock that
// nobody shares costs no request more.
//
// The list is changed by conditional writes of the whole Lease, so the rules for a Lease hold
// for it: who joins, and who takes the Lease over, have both seen all that the other has
// written. Each entry has a time of its own, judged like that of a Lease: it is over when the
// entry has stood unchanged, by the reader's own clock, for as long as it says. That others
// write the Lease meanwhile does not renew it.
//
// The Lease has no owner and the label of no holder: it must not go with one of several.
//
// Who waits for a Lease that is shared says so in a second annotation. While that is renewed,
// nobody joins: else the readers who come could keep the writer out for ever. Who waits for
// it holds only locks that come before, like whoever waits for the lock itself.

// SharedHolder is the holder of a Lease that several share. It looks like that of one of them, so
// that what guards their Leases against others guards this one, too.
const SharedHolder = "janus.io/shared/lock"

const (
	annotationReaders = "janus.io/shared-by"
	annotationWriter  = "janus.io/wanted-by"
	// maxReaders bounds the annotation. Who comes then waits.
	maxReaders = 200
	// wantedFor is how long it counts that somebody waits, and wantedAgain after how long that is
	// written again.
	wantedFor   = 30 * time.Second
	wantedAgain = 10 * time.Second
)

// A reader is who shares a lock, or waits for one that is shared.
type reader struct {
	Holder      string            `json:"holder"`
	Seconds     int32             `json:"seconds"`
	Renewed     metav1.MicroTime  `json:"renewed"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func (h Holder) reader(ttl int32, now time.Time) reader {
	return reader{Holder: h.Identity, Seconds: ttl, Renewed: metav1.MicroTime{Time: now}, Labels: h.Labels, Annotations: h.Annotations}
}

// readersOf returns who shares a Lease. It is not shared if it does not say so, or if that cannot
// be read: then it has a holder of a strange name, and expires.
func readersOf(lease *coordinationv1.Lease) (readers []reader, shared bool) {
	if holderOf(lease) != SharedHolder || json.Unmarshal([]byte(lease.Annotations[annotationReaders]), &readers) != nil {
		return nil, false
	}
	return readers, true
}

// writerOf returns who waits for a shared Lease; nil if nobody says so.
func writerOf(lease *coordinationv1.Lease) *reader {
	var writer reader
	if json.Unmarshal([]byte(lease.Annotations[annotationWriter]), &writer) != nil || writer.Holder == "" {
		return nil
	}
	return &writer
}

// SharedBy returns the holders who share a Lease; none if one has it alone.
func SharedBy(lease *coordinationv1.Lease) []string {
	readers, _ := readersOf(lease)
	var out []string
	for _, r := range readers {
		out = append(out, r.Holder)
	}
	return out
}

func readerIn(readers []reader, identity string) (reader, bool) {
	i := slices.IndexFunc(readers, func(r reader) bool { return r.Holder == identity })
	if i < 0 {
		return reader{}, false
	}
	return readers[i], true
}

// isOurs reports whether a holder has a Lease, alone or with others.
func isOurs(lease *coordinationv1.Lease, identity string) bool {
	if readers, shared := readersOf(lease); shared {
		_, ok := readerIn(readers, identity)
		return ok
	}
	return holderOf(lease) == identity
}

// namedHolder is who has a Lease, for messages: of several, the first.
func namedHolder(lease *coordinationv1.Lease) string {
	if readers, _ := readersOf(lease); len(readers) > 0 {
		return readers[0].Holder
	}
	return holderOf(lease)
}

// sharedBy writes into a Lease who shares it.
func sharedBy(lease *coordinationv1.Lease, readers []reader, now time.Time) {
	slices.SortFunc(readers, func(a, b reader) int { return strings.Compare(a.Holder, b.Holder) })
	text, err := json.Marshal(readers)
	if err != nil {
		panic(err) // It is made of text and numbers.
	}
	seconds := int32(1)
	for _, r := range readers {
		seconds = max(seconds, r.Seconds)
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[annotationReaders] = string(text)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = ptr.To(SharedHolder), &seconds
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
}

// joined is a shared Lease with a holder in the list, whose time begins again.
func joined(lease *coordinationv1.Lease, readers []reader, h Holder, now time.Time) *coordinationv1.Lease {
	next := lease.DeepCopy()
	if own, ok := readerIn(readers, h.Identity); ok && now.Truncate(time.Microsecond).Equal(own.Renewed.Time) {
		now = now.Add(time.Microsecond)
	}
	others := slices.DeleteFunc(slices.Clone(readers), func(r reader) bool { return r.Holder == h.Identity })
	sharedBy(next, append(others, h.reader(h.seconds(), now)), now)
	return next
}

// without is a shared Lease with a holder out of the list; nil if nobody else is in it.
func without(lease *coordinationv1.Lease, identity string) *coordinationv1.Lease {
	readers, shared := readersOf(lease)
	others := slices.DeleteFunc(slices.Clone(readers), func(r reader) bool { return r.Holder == identity })
	if !shared || len(others) == 0 {
		return nil
	}
	next := lease.DeepCopy()
	sharedBy(next, others, ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time)
	return next
}

// asLease is the Lease that a reader would have if it did not share it.
func (r reader) asLease(lease *coordinationv1.Lease) *coordinationv1.Lease {
	own := lease.DeepCopy()
	own.Labels, own.Annotations = maps.Clone(r.Labels), maps.Clone(r.Annotations)
	own.Spec.HolderIdentity, own.Spec.LeaseDurationSeconds = ptr.To(r.Holder), ptr.To(r.Seconds)
	return own
}

// claimShared judges a shared Lease that was just read, like claim.
func (m *Manager) claimShared(ctx context.Context, h Holder, key Key, lease *coordinationv1.Lease, readers []reader) (*coordinationv1.Lease, error) {
	now := m.clock.Now()
	held := func(by reader, left time.Duration) error {
		return &HeldError{Key: key, Lease: placeOf(lease).String(), Holder: by.Holder, Until: left}
	}
	writer := writerOf(lease)
	known := readers
	if writer != nil {
		known = append(slices.Clone(readers), reader{Holder: "waits: " + writer.Holder, Renewed: writer.Renewed})
	}
	stood := m.memory.watchReaders(h.Identity, lease, known, now)
	if key.Shared {
		_, again := readerIn(readers, h.Identity)
		switch {
		case again:
		case writer != nil && writer.Holder != h.Identity && stood["waits: "+writer.Holder] < wantedFor:
			return nil, held(*writer, wantedFor-stood["waits: "+writer.Holder])
		case len(readers) >= maxReaders:
			return nil, held(readers[0], m.limits.recheck)
		}
		return joined(lease, readers, h, now), nil
	}
	for _, r := range readers {
		left := time.Duration(r.Seconds)*time.Second - stood[r.Holder]
		if r.Holder != h.Identity && left > 0 && !h.ended(ctx, r.asLease(lease)) {
			return nil, held(r, min(left, wantedAgain)) // By then it is to say again that it waits.
		}
	}
	return takenOver(lease, h, key, now), nil
}

// want says in a shared Lease that a holder waits for it, so that nobody joins meanwhile. It is
// said again before it stops to count. If the write fails it is said at the next try.
func (m *Manager) want(ctx context.Context, h Holder, key Key, lease *coordinationv1.Lease) {
	now := m.clock.Now()
	if _, shared := readersOf(lease); !shared || key.Shared || lease.DeletionTimestamp != nil {
		return
	}
	if writer := writerOf(lease); writer != nil {
		own := writer.Holder == h.Identity
		ago := now.Sub(writer.Renewed.Time)
		if own && ago >= 0 && ago < wantedAgain || !own && m.memory.stood(placeOf(lease), "waits: "+writer.Holder, now) < wantedAgain {
			return
		}
	}
	text, err := json.Marshal(reader{Holder: h.Identity, Seconds: int32(wantedFor / time.Second), Renewed: metav1.MicroTime{Time: now}})
	if err != nil || h.confirm(ctx, false) != nil {
		return
	}
	next := lease.DeepCopy()
	next.Annotations[annotationWriter] = string(text)
	_, _ = m.client.Leases(lease.Namespace).Update(ctx, next, metav1.UpdateOptions{})
}

// letGo deletes a holder's Lease, or takes the holder out of the list of those that share it,
// only if the Lease is exactly the one that was read.
func (m *Manager) letGo(ctx context.Context, h Holder, lease *coordinationv1.Lease) error {
	next := without(lease, h.Identity)
	if next == nil {
		return m.delete(ctx, lease)
	}
	_, err := m.client.Leases(lease.Namespace).Update(ctx, next, metav1.UpdateOptions{})
	return err
}

// giveUpShare takes a holder out of the list as this process has entered it, whatever others have
// written there since.
func (m *Manager) giveUpShare(ctx context.Context, h Holder, lease *coordinationv1.Lease) error {
	was, _ := readersOf(lease)
	own, _ := readerIn(was, h.Identity)
	var err error
	for range m.limits.attempts {
		if err = m.letGo(ctx, h, lease); !apierrors.IsConflict(err) {
			return err
		}
		if lease, err = m.get(ctx, placeOf(lease)); err != nil {
			return err
		}
		now, _ := readersOf(lease)
		if is, ok := readerIn(now, h.Identity); !ok || !is.Renewed.Equal(&own.Renewed) {
			return nil // There is nothing left that is this process' own.
		}
	}
	return err
}
