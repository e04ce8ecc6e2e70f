package leasetable

import (
	"context"
	"errors"
	"slices"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// An ask is one question to a table, or one change of it.
type ask struct {
	name   string // of the Lease; empty for all
	change change
	// creates is set for the creation of an entry.
	creates bool
	// lease is what is to be written, nil if nothing is.
	lease *coordinationv1.Lease

	ctx      context.Context //nolint:containedctx // of the one who asked: another may send the request
	together *together       // nil for one that is asked by itself
	done     chan struct{}   // closed when there is an answer
	answer   []*coordinationv1.Lease
	err      error
}

// A change makes the change of an ask at a moment, if it can be made, and says what the answer is. It is
// made again when the table was another.
type change func(at *moment) (answer []*coordinationv1.Lease, err error)

// A moment is a table while it is changed.
type moment struct {
	table *coordinationv1.Lease
	all   entries
	// next is the table as it is to be written.
	next *coordinationv1.Lease
	// written is how often each entry has been written at this moment.
	written map[string]int
	// changes are those that were made, in their order.
	changes []replaced
}

// replaced is an entry, and the one that was there before. Either is nil if there is none.
type replaced struct{ was, is *coordinationv1.Lease }

var (
	resource    = coordinationv1.Resource("leases")
	errOutdated = errors.New("the Lease has been written, or made again, since it was read")
)

// momentOf is a table that is about to be changed.
func momentOf(table *coordinationv1.Lease) (*moment, error) {
	all, err := decode(table)
	if err != nil {
		return nil, err
	}
	return &moment{table: table, all: all, written: map[string]int{}}, nil
}

// make makes what is asked for, and returns the changes.
func (m *moment) make(asks []*ask) []replaced {
	before := len(m.changes)
	for _, a := range asks {
		a.answer, a.err = a.change(m)
	}
	return m.changes[before:]
}

// undo undoes the last changes.
func (m *moment) undo(changes []replaced) {
	for _, r := range slices.Backward(changes) {
		if r.was == nil {
			delete(m.all, r.is.Name)
		} else {
			m.all[r.was.Name] = r.was
		}
	}
	m.changes = m.changes[:len(m.changes)-len(changes)]
}

// encode makes next, the table of the entries, if anything is to be written.
func (m *moment) encode() (err error) {
	m.next = m.table
	if len(m.changes) > 0 && len(m.all) > 0 {
		m.next, err = encode(m.table, m.all)
	}
	return err
}

// version is the resourceVersion of what is written now.
func (m *moment) version(name string) string {
	over := m.table.ResourceVersion
	if over == "" {
		over = "0"
	}
	return over + "." + strconv.Itoa(m.written[name])
}

func (m *moment) put(lease *coordinationv1.Lease) []*coordinationv1.Lease {
	m.changes = append(m.changes, replaced{m.all[lease.Name], lease})
	m.all[lease.Name] = lease
	m.written[lease.Name]++
	return []*coordinationv1.Lease{lease}
}

// met is the entry of a name, if it is the one that was asked for.
func (m *moment) met(name string, uid *types.UID, version *string) (*coordinationv1.Lease, error) {
	found := m.all[name]
	switch {
	case found == nil:
		return nil, apierrors.NewNotFound(resource, name)
	case uid != nil && *uid != "" && *uid != found.UID, version != nil && *version != "" && *version != found.ResourceVersion:
		return nil, apierrors.NewConflict(resource, name, errOutdated)
	default:
		return found, nil
	}
}

func creation(lease *coordinationv1.Lease) change {
	return func(at *moment) ([]*coordinationv1.Lease, error) {
		switch {
		case at.all[lease.Name] != nil:
			return nil, apierrors.NewAlreadyExists(resource, lease.Name)
		case at.table.DeletionTimestamp != nil:
			return nil, apierrors.NewServiceUnavailable("Lease " + at.table.Namespace + "/" + Name + " is being deleted")
		}
		made, version := kept(lease), at.version(lease.Name)
		made.UID, made.ResourceVersion = uidOf(at.table.UID, version), version
		return at.put(made), nil
	}
}

func update(lease *coordinationv1.Lease) change {
	return func(at *moment) ([]*coordinationv1.Lease, error) {
		found, err := at.met(lease.Name, &lease.UID, &lease.ResourceVersion)
		if apierrors.IsNotFound(err) && lease.UID != "" {
			err = apierrors.NewConflict(resource, lease.Name, errOutdated) // As the API server says of Leases.
		}
		if err != nil {
			return nil, err
		}
		next := kept(lease)
		next.UID, next.ResourceVersion = found.UID, at.version(lease.Name)
		return at.put(next), nil
	}
}

func deletion(name string, conditions *metav1.Preconditions) change {
	if conditions == nil {
		conditions = &metav1.Preconditions{}
	}
	return func(at *moment) ([]*coordinationv1.Lease, error) {
		found, err := at.met(name, conditions.UID, conditions.ResourceVersion)
		if err != nil {
			return nil, err
		}
		delete(at.all, name)
		at.changes = append(at.changes, replaced{was: found})
		return nil, nil
	}
}

func reading(name string) change {
	return func(at *moment) ([]*coordinationv1.Lease, error) {
		found, err := at.met(name, nil, nil)
		if err != nil {
			return nil, err
		}
		return []*coordinationv1.Lease{found}, nil
	}
}

func listing(selector labels.Selector) change {
	return func(at *moment) (out []*coordinationv1.Lease, err error) {
		for _, lease := range at.all {
			if selector.Matches(labels.Set(lease.Labels)) {
				out = append(out, lease)
			}
		}
		return out, nil
	}
}

// kept is what a table keeps of a Lease.
func kept(lease *coordinationv1.Lease) *coordinationv1.Lease {
	lease = lease.DeepCopy()
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: lease.Namespace, Name: lease.Name, Labels: lease.Labels, Annotations: lease.Annotations, OwnerReferences: lease.OwnerReferences,
		},
		Spec: lease.Spec,
	}
}

// madeIn gives what was created the uid that follows from that of the table.
func (a *ask) madeIn(table types.UID) {
	for i, lease := range a.answer {
		lease = lease.DeepCopy()
		lease.UID = uidOf(table, createdOf(lease))
		a.answer[i] = lease
	}
}
