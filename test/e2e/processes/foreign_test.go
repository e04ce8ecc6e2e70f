package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// foreignManager is the field manager of the foreign writer.
const foreignManager = "foreign"

// foreign writes to targets all the time: annotations and keys that no Transaction
// knows of, each of them once.
type foreign struct {
	w      *world
	random *rand.Rand
	stop   context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	writes []foreignWrite
}

// foreignWrite is a write that was acknowledged.
type foreignWrite struct {
	ref      string
	path     []string
	value    string
	revision uint64
}

// interfere starts the foreign writer.
func (w *world) interfere() *foreign {
	ctx, cancel := context.WithCancel(context.Background())
	f := &foreign{w: w, random: w.random("foreign"), stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for n := 0; ctx.Err() == nil; n++ {
			f.write(ctx, n)
			pause(f.random, 20*time.Millisecond, 100*time.Millisecond)
		}
	}()
	return f
}

// end stops the foreign writer and waits until it has.
func (f *foreign) end() {
	f.stop()
	<-f.done
}

// choose picks a target of a Transaction that is under way, or a hot ConfigMap.
func (f *foreign) choose() (kind, string) {
	var targets []*target
	for _, s := range f.w.load.active() {
		for _, t := range s.targets {
			if s.noisy && t.initial != nil {
				targets = append(targets, t)
			}
		}
	}
	if len(targets) == 0 || f.random.IntN(100) < 10 {
		return configMap, hots[f.random.IntN(len(hots))]
	}
	t := targets[f.random.IntN(len(targets))]
	return t.kind, t.name
}

// write makes the n-th write and notes it if it is acknowledged.
func (f *foreign) write(ctx context.Context, n int) {
	k, name := f.choose()
	value := strconv.Itoa(n)
	path := []string{"metadata", "annotations", foreignAnnotation + value}
	if k == configMap && n%2 == 0 {
		path = []string{"data", foreignKey + value}
	}
	patch, err := json.Marshal(map[string]any{path[0]: nested(path[1:], value)})
	if err != nil {
		f.w.t.Errorf("encode a patch: %v", err)
		return
	}
	// The request is not cut off when the writer is to end.
	obj, err := f.w.Dynamic.Resource(k.resource()).Namespace(f.w.namespace).
		Patch(context.WithoutCancel(ctx), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: foreignManager})
	switch {
	case apierrors.IsNotFound(err):
		f.w.counts.add("foreign writes to what was gone", 1)
		return
	case err != nil:
		f.w.counts.add("foreign writes without an acknowledgement", 1)
		breathe(ctx)
		return
	}
	revision, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		f.w.t.Errorf("resourceVersion of %s: %v", name, err)
	}
	f.w.counts.add("foreign writes acknowledged", 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes = append(f.writes, foreignWrite{fmt.Sprintf("%s/%s", k.Kind, name), path, value, revision})
}

// nested is a value inside of maps.
func nested(path []string, value string) any {
	if len(path) == 0 {
		return value
	}
	return map[string]any{path[0]: nested(path[1:], value)}
}
