package harness

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"janus.io/janus/engine"
	"janus.io/janus/internal/outcome"
)

// Around is what a test does just before Janus makes a change, or undoes one.
// Either gets the name of the Transaction and the index of the item; both may be
// nil.
type Around struct {
	Do, Undo func(transaction string, item int)
}

// Acting puts a test's acts between the calls of Janus' changes.
func Acting(around Around) Option {
	return WithChanges(func(inner engine.Changes) engine.Changes { return &acting{inner, around} })
}

type acting struct {
	engine.Changes
	around Around
}

func (a *acting) Do(ctx context.Context, in engine.Intent) error {
	if a.around.Do != nil {
		a.around.Do(in.Transaction().Name, in.Index())
	}
	return a.Changes.Do(ctx, in)
}

func (a *acting) Undo(ctx context.Context, in engine.Intent) (outcome.Undone, error) {
	if a.around.Undo != nil {
		a.around.Undo(in.Transaction().Name, in.Index())
	}
	return a.Changes.Undo(ctx, in)
}

// In returns the same Env in another namespace, for objects and Transactions there.
func (e *Env) In(namespace string) *Env {
	other := *e
	other.Namespace = namespace
	return &other
}

// Log is what a Janus has logged.
type Log struct {
	testing.TB
	mu   sync.Mutex
	text strings.Builder
}

// StartLogged is Start, and keeps what is logged.
func (e *Env) StartLogged(options ...Option) *Log {
	e.t.Helper()
	log := &Log{TB: e.t}
	logged := *e
	logged.t = log
	logged.Start(options...)
	return log
}

// Logf keeps a line and passes it on.
func (l *Log) Logf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, format+"\n", args...)
	l.TB.Logf(format, args...)
}

// Text is everything logged so far.
func (l *Log) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Served waits until a kind, such as "apps/v1 Deployment", is served.
func (e *Env) Served(kind string) {
	e.t.Helper()
	gvk, _ := parseRef(e, kind+"/")
	require.NoError(e.t, e.awaitServed(e.t.Context(), gvk), "%s is not served", kind)
}

// Published waits until the API server publishes the schema of a kind, such as
// "apps/v1 Deployment": it does so some time after it serves a kind that is new.
func (e *Env) Published(kind string) {
	e.t.Helper()
	gvk, _ := parseRef(e, kind+"/")
	e.Until("the schema of "+kind+" is published", func() bool {
		paths, err := e.Kube.Discovery().OpenAPIV3().Paths()
		require.NoError(e.t, err)
		path, ok := paths["apis/"+gvk.GroupVersion().String()]
		if !ok {
			return false
		}
		document, err := path.Schema("application/json")
		return err == nil && strings.Contains(string(document), `"kind":"`+gvk.Kind+`"`)
	})
}
