package namespaces

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// Options say whom a Follower tells, and where its record is.
type Options struct {
	Client kubernetes.Interface
	// Namespace is janusd's own, and Record the name of the ConfigMap there.
	Namespace, Record string
	// Set is told in which namespaces to run Transactions, and in which to finish those that
	// were begun.
	Set func(namespaces, leaving []string) error
	// Begun asks the API server whether a Transaction that was begun in a namespace has not
	// ended.
	Begun func(ctx context.Context, namespace string) (bool, error)
	// Keep is for how long a namespace stays on record after it was left; zero means ten
	// minutes. Another replica may learn later that it is to leave it.
	Keep  time.Duration
	Clock clock.WithTicker
	Log   *zap.Logger
}

// Follower has namespaces run as a Source tells.
type Follower struct {
	Options
	record record

	// members are the namespaces as last told, of which all are on record.
	members []string

	mu   sync.Mutex
	left map[string]time.Time // since when a namespace is not watched any more
}

// New makes a Follower that has not begun.
func New(o Options) *Follower {
	if o.Keep <= 0 {
		o.Keep = 10 * time.Minute
	}
	return &Follower{
		Options: o, left: map[string]time.Time{},
		record: record{client: o.Client.CoreV1().ConfigMaps(o.Namespace), name: o.Record, now: o.Clock.Now},
	}
}

// Left notes that a namespace is not watched any more.
func (f *Follower) Left(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left[namespace] = f.Clock.Now()
}

// again is how long to wait after an error.
const again = time.Second

// Run follows the source until ctx is done.
func (f *Follower) Run(ctx context.Context, source Source) {
	told := make(chan []string, 1)
	var telling sync.WaitGroup
	defer telling.Wait()
	telling.Go(func() {
		source.Run(ctx, func(names []string) {
			select {
			case <-told: // It is out of date.
			default:
			}
			told <- names
		})
	})
	ticker := f.Clock.NewTicker(max(f.Keep/10, 10*time.Millisecond))
	defer ticker.Stop()
	var names []string
	var retry <-chan time.Time
	known := false
	for {
		select {
		case <-ctx.Done():
			return
		case names = <-told:
			known, retry = true, nil
		case <-retry:
			retry = nil
		case <-ticker.C():
			if !known || retry != nil {
				continue
			}
			f.forget(ctx)
		}
		if err := f.follow(ctx, names); err != nil && ctx.Err() == nil {
			f.Log.Warn("following the namespaces failed; trying again", zap.Error(err))
			retry = f.Clock.After(again)
		}
	}
}

// follow has these namespaces run, once they are on record, and what was begun in others that are
// on record finished.
func (f *Follower) follow(ctx context.Context, names []string) error {
	recorded, err := f.entered(ctx, names)
	if err != nil {
		return err
	}
	f.members = names
	var leaving []string
	f.mu.Lock()
	for _, name := range names {
		delete(f.left, name)
	}
	for _, name := range recorded {
		if _, left := f.left[name]; !left && !slices.Contains(names, name) {
			leaving = append(leaving, name)
		}
	}
	f.mu.Unlock()
	return f.Set(names, leaving)
}

// entered returns what is on record, with all of these names.
func (f *Follower) entered(ctx context.Context, names []string) ([]string, error) {
	recorded, _, err := f.record.read(ctx)
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.Contains(recorded, name) && slices.Contains(f.members, name)
	})
	if len(missing) == 0 {
		return recorded, nil
	}
	return f.record.enter(ctx, missing)
}

// forget takes namespaces off the record that were left long ago, if nothing is to be finished
// there. Where something is, because a replica was late, that is done.
func (f *Follower) forget(ctx context.Context) {
	for _, name := range f.leftLongAgo() {
		_, version, err := f.record.read(ctx)
		begun := false
		if err == nil && version != "" {
			begun, err = f.Begun(ctx, name)
		}
		if err == nil && !begun && version != "" {
			err = f.record.remove(ctx, name, version)
		}
		if err != nil {
			f.Log.Warn("taking a namespace off the record failed; trying again", zap.String("namespace", name), zap.Error(err))
			continue
		}
		f.mu.Lock()
		delete(f.left, name) // If something was begun there, it is leaving again.
		f.mu.Unlock()
	}
}

func (f *Follower) leftLongAgo() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, since := range f.left {
		if f.Clock.Since(since) >= f.Keep {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
