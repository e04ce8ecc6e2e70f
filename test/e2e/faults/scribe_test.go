package faults

import (
	"fmt"
	"strings"
	"testing"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/oracle"
)

// scribe asks the watcher for histories, once for all runs that want theirs at the
// same time: it takes some requests to know that a watch has told everything.
type scribe struct {
	watcher *harness.Watcher
	asked   chan wish
}

type wish struct {
	namespaces []string
	answer     chan answer
}

type answer struct {
	history oracle.History
	err     error
}

func newScribe(watcher *harness.Watcher) *scribe {
	s := &scribe{watcher: watcher, asked: make(chan wish)}
	go s.serve()
	return s
}

// history is what was stored in the namespaces before the call, and maybe in others.
func (s *scribe) history(namespaces []string) (oracle.History, error) {
	w := wish{namespaces, make(chan answer, 1)}
	s.asked <- w
	a := <-w.answer
	return a.history, a.err
}

func (s *scribe) serve() {
	for first := range s.asked {
		wishes := []wish{first}
		for more := true; more; {
			select {
			case w := <-s.asked:
				wishes = append(wishes, w)
			default:
				more = false
			}
		}
		wanted := map[string]bool{}
		var namespaces []string
		for _, w := range wishes {
			for _, ns := range w.namespaces {
				if !wanted[ns] {
					wanted[ns] = true
					namespaces = append(namespaces, ns)
				}
			}
		}
		history, err := s.look(namespaces)
		for _, w := range wishes {
			w.answer <- answer{history, err}
		}
	}
}

func (s *scribe) look(namespaces []string) (out oracle.History, err error) {
	failed := &failures{}
	defer func() {
		if recover() != nil || len(failed.texts) > 0 {
			err = fmt.Errorf("the history is not to be had: %s", strings.Join(failed.texts, "; "))
		}
	}()
	return s.watcher.For(failed).History(namespaces...), nil
}

// failures is a test that collects what went wrong and ends nothing but the call.
type failures struct {
	testing.TB
	texts []string
}

// Helper implements testing.TB.
func (f *failures) Helper() {}

// Errorf implements testing.TB.
func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

// errStop ends a call that has failed.
type errStop struct{}

// FailNow implements testing.TB.
func (f *failures) FailNow() { panic(errStop{}) }
