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

	mu     sync.Mutex
	timers map[types.UID]clock.Timer // of Transactions in a phase that has just begun
}

func newLasting(c clock.WithDelayedExecution) *lasting {
	return &lasting{clock: c, timers: map[types.UID]clock.Timer{}}
}

// begin has something told of a Transaction in a while, unless it is over by then.
func (l *lasting) begin(uid types.UID, tell func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var timer clock.Timer
	timer = l.clock.AfterFunc(lastingPhase, func() {
		if l.take(uid, timer) {
			tell()
		}
	})
	l.timers[uid] = timer
}

// take removes the timer of a Transaction, and reports whether it was that one.
func (l *lasting) take(uid types.UID, timer clock.Timer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timers[uid] != timer {
		return false
	}
	delete(l.timers, uid)
	return true
}

// over has nothing told that has not been.
func (l *lasting) over(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if timer, ok := l.timers[uid]; ok {
		timer.Stop()
		delete(l.timers, uid)
	}
}
