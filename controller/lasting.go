package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// lastingPhase is after how long there is an event about a phase on the way to the end. Most
// Transactions are through all of them sooner, and an event is a write.
const lastingPhase = time.Second

// lasting tells of what lasts.
type lasting struct {
	clock clock.WithDelayedExecution

	mu    sync.Mutex
	begun map[types.UID]*begun // Transactions in a phase that has just begun
}

// begun is a phase that has just begun.
type begun struct{ timer clock.Timer }

func newLasting(c clock.WithDelayedExecution) *lasting {
	return &lasting{clock: c, begun: map[types.UID]*begun{}}
}

// begin has something told of a Transaction in a while, unless it is over by then.
func (l *lasting) begin(uid types.UID, tell func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	phase := &begun{}
	l.begun[uid] = phase
	phase.timer = l.clock.AfterFunc(lastingPhase, func() {
		if l.take(uid, phase) {
			tell()
		}
	})
}

// take removes a phase, and reports whether it has not ended before.
func (l *lasting) take(uid types.UID, phase *begun) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun[uid] != phase {
		return false
	}
	delete(l.begun, uid)
	return true
}

// over has nothing told that has not been.
func (l *lasting) over(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if phase, ok := l.begun[uid]; ok {
		phase.timer.Stop()
		delete(l.begun, uid)
	}
}
