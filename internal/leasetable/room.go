package leasetable

import (
	"cmp"
	"math"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"janus.io/janus/internal/sharedlease"
)

const (
	// limit is how many bytes the entries have at most. All annotations of an object may have 256 KiB.
	limit = 250_000
	// room is what of it is for new entries. The rest is for renewals that part a group.
	room = 230_000
	// longer is by how many bytes an entry is longer at most once it has been renewed.
	longer = 24
)

// A size is how many bytes entries take in a table. Each counts as long as it is once it has been renewed.
type size struct {
	bytes int
	heads map[string]int // how many entries have each
}

func sizeOf(all entries) (size, error) {
	s := size{heads: map[string]int{}}
	for _, lease := range all {
		if err := s.add(lease, 1); err != nil {
			return size{}, err
		}
	}
	return s, nil
}

// add counts an entry n more times, or no more if n is -1. It may be nil.
func (s *size) add(lease *coordinationv1.Lease, n int) error {
	if lease == nil {
		return nil
	}
	head, err := headOf(lease)
	if err != nil {
		return err
	}
	was := s.heads[head]
	s.heads[head] += n
	s.bytes += n * (len(lease.Name) + len(createdOf(lease)) + len(lease.ResourceVersion) + len(`"":" ",`))
	if was == 0 || s.heads[head] == 0 {
		s.bytes += n * (len(head) + len(","))
	}
	return nil
}

// change counts what a party has changed, or undoes that if n is -1.
func (s *size) change(all []replaced, n int) error {
	for _, r := range all {
		if err := cmp.Or(s.add(r.is, n), s.add(r.was, -n)); err != nil {
			return err
		}
	}
	return nil
}

// A party are asks of which all find room or none: what waits for room is to hold nothing that others wait for.
type party struct {
	asks []*ask
	// most is how many bytes all entries may have if they have more because of it.
	most int
}

// parties are the asks in the order in which they get room: what is held comes before what is new.
func parties(asks []*ask, all entries) []*party {
	var out []*party
	joined := map[*together]*party{}
	for _, a := range asks {
		most := a.most(all)
		if most == room && a.together != nil {
			if p := joined[a.together]; p != nil {
				p.asks = append(p.asks, a)
				continue
			}
		}
		p := &party{asks: []*ask{a}, most: most}
		if out = append(out, p); most == room {
			joined[a.together] = p
		}
	}
	slices.SortStableFunc(out, func(a, b *party) int { return cmp.Compare(b.most, a.most) })
	return out
}

// most is how many bytes all entries may have with what is asked for: less if it is new, and any number if it
// takes a holder out.
func (a *ask) most(all entries) int {
	if a.lease == nil {
		return math.MaxInt
	}
	switch found := all[a.lease.Name]; {
	case found == nil || claims(a.lease) > claims(found):
		return room
	case claims(a.lease) == claims(found):
		return limit
	default:
		return math.MaxInt
	}
}

// claims is how many have a Lease or are the next.
func claims(lease *coordinationv1.Lease) int {
	n := len(sharedlease.Holders(lease))
	if sharedlease.NextOf(lease) != "" {
		n++
	}
	return n
}

// makeWhatFits makes what has room, where not all of it may have.
func (m *moment) makeWhatFits(asks []*ask) error {
	taken, err := sizeOf(m.all)
	if err != nil {
		return err
	}
	for _, p := range parties(asks, m.all) {
		before := taken.bytes
		changes := m.make(p.asks)
		if err := taken.change(changes, 1); err != nil {
			return err
		}
		if taken.bytes <= p.most || taken.bytes <= before {
			continue
		}
		if err := taken.change(changes, -1); err != nil {
			return err
		}
		m.undo(changes)
		for _, a := range p.asks {
			if a.err == nil {
				a.answer, a.err = nil, m.full()
			}
		}
	}
	return nil
}

func (m *moment) full() error {
	return apierrors.NewTooManyRequests("the Lease of all locks of namespace "+m.table.Namespace+" is full: wait until other Transactions have ended", 5)
}
