package namespaces

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// A Source tells which namespaces there are, each time that they change, until ctx is done.
type Source interface {
	Run(ctx context.Context, tell func(names []string))
}

// Names returns the namespaces of a list, each once and in order. An empty name is refused, above
// all: to a client it means all namespaces.
func Names(list []string) ([]string, error) {
	names := make([]string, 0, len(list))
	for _, name := range list {
		name = strings.TrimSpace(name)
		if len(validation.IsDNS1123Label(name)) > 0 {
			return nil, fmt.Errorf("%q is no name of a namespace", name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Labelled are the namespaces that a selector selects. client has no request timeout.
type Labelled struct {
	Client   metadata.Interface
	Selector labels.Selector
}

// Run implements Source. A namespace that is being deleted is one until it is gone: what is to be
// finished there needs janusd.
func (l Labelled) Run(ctx context.Context, tell func([]string)) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	informer := metadatainformer.NewFilteredMetadataInformer(l.Client, resource, metav1.NamespaceAll, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = l.Selector.String() }).Informer()
	changed := make(chan struct{}, 1)
	wake := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: wake, DeleteFunc: wake})
	if err != nil {
		return // Only of an informer that has ended.
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return
	}
	var last []string
	for first := true; ; first = false {
		names := informer.GetStore().ListKeys()
		slices.Sort(names)
		if first || !slices.Equal(names, last) {
			tell(names)
			last = names
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// reread is how often a file is read. It is not watched: where it is a volume of a ConfigMap, its
// directory is replaced, and a network file system tells of nothing.
const reread = 2 * time.Second

// File has the names of namespaces, one in a line or with commas between. What follows a # is a comment.
type File struct {
	Path  string
	Clock clock.WithTicker
	Log   *zap.Logger
}

// Read reads the file.
func (f File) Read() ([]string, error) {
	content, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(string(content)) {
		line, _, _ = strings.Cut(line, "#")
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				list = append(list, name)
			}
		}
	}
	names, err := Names(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return names, nil
}

// Run implements Source. What cannot be read, or is no list of namespaces, changes nothing.
func (f File) Run(ctx context.Context, tell func([]string)) {
	ticker := f.Clock.NewTicker(reread)
	defer ticker.Stop()
	var read readings
	said := ""
	for {
		names, err := f.Read()
		if err != nil && err.Error() != said {
			f.Log.Warn("reading the namespaces failed; they stay as they are until it can be read", zap.Error(err))
		}
		if said = ""; err != nil {
			said = err.Error()
		}
		if read.isChange(names, err == nil) {
			tell(names)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// readings are what was read of a file. A change counts when it was read twice in a row: a file
// that is being written may be empty, or half of it there.
type readings struct {
	any       bool
	last      []string // that counted
	changed   []string // what was read since, once
	isChanged bool
}

// isChange reports whether the names that were just read count, and are others than before.
func (r *readings) isChange(names []string, ok bool) bool {
	again := r.isChanged && slices.Equal(names, r.changed)
	r.isChanged = false
	switch {
	case !ok, r.any && slices.Equal(names, r.last):
		return false
	case r.any && !again:
		r.changed, r.isChanged = names, true
		return false
	}
	r.any, r.last = true, names
	return true
}
