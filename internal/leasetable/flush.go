package leasetable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

var errContended = errors.New("others write the Lease all the time")

// attempts is how often a table is written again because another client has written it in between.
const attempts = 30

// tables are those that this process uses.
type tables struct {
	mu sync.Mutex
	of map[string]*table // by namespace
}

// A table is one of them. The mutex of tables guards it.
type table struct {
	*tables
	namespace string
	objects   coordinationv1client.LeaseInterface
	waiting   []*ask
	running   bool
	// users is how many have asked and have no answer yet.
	users int

	// Only who runs has what follows.

	// known is the table as it was read or written last, nil if that is not known. One that has no uid
	// does not exist.
	known *coordinationv1.Lease
}

// ask asks a table, and waits for the answer. If ctx is done before, it is not known.
func (ts *tables) ask(ctx context.Context, objects coordinationv1client.LeaseInterface, namespace string, a *ask) ([]*coordinationv1.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("ask for Lease %s/%s: %w", namespace, Name, err)
	}
	a.ctx = context.WithoutCancel(ctx)
	ts.mu.Lock()
	t := ts.of[namespace]
	if t == nil {
		t = &table{tables: ts, namespace: namespace, objects: objects}
		ts.of[namespace] = t
	}
	t.users++
	t.waiting = append(t.waiting, a)
	if a.together, _ = ctx.Value(togetherKey{}).(*together); a.together != nil {
		a.together.join(t)
	} else {
		t.begin()
	}
	ts.mu.Unlock()
	defer t.leave()
	select {
	case <-a.done:
		return a.answer, a.err
	case <-ctx.Done():
		t.withdraw(a)
		return nil, fmt.Errorf("ask for Lease %s/%s: %w", namespace, Name, ctx.Err())
	}
}

// withdraw drops what nobody waits for any more, if it has not begun.
func (t *table) withdraw(a *ask) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = slices.DeleteFunc(t.waiting, func(other *ask) bool { return other == a })
	if a.together != nil {
		a.together.waiting--
		a.together = nil
	}
}

// leave forgets the table if nobody uses it and it does not exist.
func (t *table) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 && !t.running && (t.known == nil || t.known.UID == "") {
		delete(t.of, t.namespace)
	}
}

// begin has all answered that wait, as soon as those before have been. It needs the mutex.
func (t *table) begin() {
	if t.running || len(t.waiting) == 0 {
		return
	}
	t.running = true
	go t.run()
}

func (t *table) run() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.running {
		asks := t.waiting
		t.waiting = nil
		t.mu.Unlock()
		// In whatever order goroutines have come, the same requests follow from the same asks.
		slices.SortStableFunc(asks, func(a, b *ask) int { return cmp.Compare(a.name, b.name) })
		t.flush(asks)
		t.mu.Lock()
		for _, a := range asks {
			if a.together != nil {
				a.together.waiting-- // It goes on, and may ask again.
				a.together = nil
			}
			close(a.done)
		}
		t.running = t.isDue()
	}
}

// isDue reports whether an ask waits that need not wait for others.
func (t *table) isDue() bool {
	for _, a := range t.waiting {
		if a.together == nil || a.together.waiting >= a.together.alive {
			return true
		}
	}
	return false
}

// flush answers all, with one write if there is something to change.
func (t *table) flush(asks []*ask) {
	var failed error = apierrors.NewConflict(resource, Name, errContended) // as long as races are all that fails
	fresh := false
	for attempt := range attempts {
		if t.known == nil && attempt == 0 && onlyCreate(asks) {
			t.known = t.none() // Most often it is so.
		}
		if t.known == nil {
			if err := t.read(asks[0].ctx); err != nil {
				failed = err
				break
			}
			fresh = true
		}
		now, err := t.apply(asks)
		if err != nil {
			failed = err
			break
		}
		if len(now.changes) == 0 && fresh {
			return
		}
		if len(now.changes) == 0 {
			t.known = nil // Others may have written since, so that the answer is another.
			continue
		}
		outdated, err := t.write(asks, now)
		if err == nil {
			return
		}
		t.known = nil
		if !outdated {
			failed = err
			break
		}
		if err := t.read(asks[0].ctx); err != nil {
			failed = err
			break
		}
		fresh = true
	}
	for _, a := range asks {
		if a.err == nil || !fresh {
			a.answer, a.err = nil, failed
		}
	}
}

// onlyCreate reports whether nobody asks for what is there already.
func onlyCreate(asks []*ask) bool {
	return !slices.ContainsFunc(asks, func(a *ask) bool { return !a.creates })
}

func (t *table) none() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: Name}}
}

// read reads the table. That there is none is believed only after a second look: who was told so would
// leave a lock behind.
func (t *table) read(ctx context.Context) error {
	found, err := t.objects.Get(ctx, Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		found, err = t.objects.Get(ctx, Name, metav1.GetOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		t.known = t.none()
		return nil
	case err != nil:
		return err
	}
	t.known = found
	return nil
}

// apply makes what is asked for of the table as it is known. What has no room is refused.
func (t *table) apply(asks []*ask) (*moment, error) {
	now, err := momentOf(t.known)
	if err != nil {
		return nil, err
	}
	now.make(asks)
	if err := now.encode(); err != nil || len(now.changes) == 0 {
		return now, err
	}
	if len(now.next.Annotations[Annotation])+longer*len(now.all) <= room {
		return now, nil
	}
	now.undo(now.changes)
	if err := now.makeWhatFits(asks); err != nil {
		return nil, err
	}
	return now, now.encode()
}

// write stores what was changed, and deletes a table in which nothing is left. It says whether the table was
// another than the one that is known.
func (t *table) write(asks []*ask, now *moment) (outdated bool, err error) {
	ctx := asks[0].ctx
	switch {
	case len(now.all) == 0 && t.known.UID == "":
		return false, nil // Something was made and deleted again.
	case len(now.all) == 0:
		err = t.objects.Delete(ctx, Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &t.known.UID, ResourceVersion: &t.known.ResourceVersion}})
		if err == nil {
			t.known = t.none()
		}
		return apierrors.IsConflict(err) || apierrors.IsNotFound(err), err
	case t.known.UID == "":
		now.next, err = t.objects.Create(ctx, now.next, metav1.CreateOptions{})
		outdated = apierrors.IsAlreadyExists(err)
	default:
		now.next, err = t.objects.Update(ctx, now.next, metav1.UpdateOptions{})
		outdated = apierrors.IsConflict(err) || apierrors.IsNotFound(err)
	}
	if err != nil {
		return outdated, err
	}
	t.known = now.next
	for _, a := range asks {
		a.madeIn(t.known.UID)
	}
	return false, nil
}
