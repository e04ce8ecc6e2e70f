package revision

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"janus.io/janus/internal/errclass"
)

// counterName is the ControllerRevision of a namespace that has the last number which was given.
// It belongs to no Transaction, so that it stays when they go. Nobody lists it as a revision: it
// has no number in its name, and not their label.
const counterName = "janus-revisions"

// highest is the highest number that another is given after: no namespace comes so far, and
// a revision that was made by hand with a higher one must not use up the numbers.
const highest = 1 << 53

// attempts is how often a number is asked for that another process takes at the same time.
const attempts = 10

// counters are those of all namespaces, as this process wrote or read them last.
type counters struct {
	mu sync.Mutex
	by map[string]*counter
}

// counter is the counter of a namespace. Only the caller that has the turn uses the other fields.
type counter struct {
	turn   chan struct{} // has room for one: others of this process would only lose against it
	known  bool
	last   int64
	stored metav1.ObjectMeta // without a name if there is none
}

func (c *counters) of(namespace string) *counter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]*counter{}
	}
	if c.by[namespace] == nil {
		c.by[namespace] = &counter{turn: make(chan struct{}, 1)}
	}
	return c.by[namespace]
}

// Next gives a number of a namespace that was not given before, and is higher than all that were
// and than floor. If its error is of unknown outcome, a number may have been used up.
func (s *Store) Next(ctx context.Context, namespace string, floor int64) (int64, error) {
	c := s.counters.of(namespace)
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return 0, errclass.Wrap(ctx.Err(), "count in", describeCounter(namespace), false)
	}
	for range attempts {
		number, err := s.count(ctx, namespace, floor, c)
		if err == nil {
			return number, nil
		}
		c.known = false
		if !errclass.Is(err, errclass.StaleVersion) && !errclass.Is(err, errclass.AlreadyExists) && !errclass.Is(err, errclass.NotFound) {
			return 0, err
		}
	}
	return 0, errclass.New(errclass.Retryable, errclass.StaleVersion, "count in", describeCounter(namespace), "other processes count faster than it can be read")
}

// count takes the next number, if nobody has counted since c was known.
func (s *Store) count(ctx context.Context, namespace string, floor int64, c *counter) (int64, error) {
	if !c.known {
		if err := s.readCounter(ctx, namespace, c); err != nil {
			return 0, err
		}
	}
	next := max(c.last, floor) + 1
	object := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: counterName, Labels: map[string]string{"app.kubernetes.io/part-of": "janus"}},
		Revision:   next, Data: runtime.RawExtension{Raw: []byte("{}")},
	}
	request := s.client.Post()
	if c.stored.Name != "" {
		object.ObjectMeta = c.stored
		request = s.client.Put().Name(counterName)
	}
	var stored appsv1.ControllerRevision
	err := request.Namespace(namespace).Resource(resource).Body(object).Do(ctx).Into(&stored)
	if err != nil {
		return 0, errclass.Wrap(err, "count in", describeCounter(namespace), false)
	}
	c.last, c.stored = stored.Revision, stored.ObjectMeta
	return next, nil
}

// readCounter reads the counter of a namespace. Where there is none, or it was set to what no
// namespace reaches, it follows from the revisions that there are.
func (s *Store) readCounter(ctx context.Context, namespace string, c *counter) error {
	var stored appsv1.ControllerRevision
	err := s.client.Get().Namespace(namespace).Resource(resource).Name(counterName).Do(ctx).Into(&stored)
	if err = errclass.Wrap(err, "read", describeCounter(namespace), false); err != nil && !errclass.Is(err, errclass.NotFound) {
		return err
	}
	c.known, c.last, c.stored = true, stored.Revision, stored.ObjectMeta
	if err == nil && c.last <= highest {
		return nil
	}
	known, err := s.List(ctx, namespace)
	if err != nil {
		return err
	}
	c.last = 0
	for _, entry := range known {
		if entry.Number <= highest {
			c.last = max(c.last, entry.Number)
		}
	}
	return nil
}

func describeCounter(namespace string) string {
	return "ControllerRevision " + namespace + "/" + counterName
}
