package wiring

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// rightsLife is for how long it counts that a ServiceAccount may do something. It is asked so
// that a Transaction is refused before anything is done for it; each request is judged again by
// the API server when it is made.
const rightsLife = time.Minute

// maxRights is how many answers are kept.
const maxRights = 10000

// rights are what ServiceAccounts may do, for a while.
type rights struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	told map[right]answer
}

// answer is what a ServiceAccount was told.
type answer struct {
	may bool
	at  time.Time
}

// right is what a ServiceAccount has asked.
type right struct {
	account types.UID
	question
}

func newRights(c clock.PassiveClock) *rights {
	return &rights{clock: c, told: map[right]answer{}}
}

// granted reports whether a ServiceAccount was told a short time ago that it may do that. Where
// something is refused for lack of a right, what it may not do is asked each time: it may have
// been granted because of the answer.
func (r *rights) granted(account types.UID, q question) bool {
	may, known := r.answered(account, q)
	return known && may
}

// answered returns what a ServiceAccount was told a short time ago.
func (r *rights) answered(account types.UID, q question) (may, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.told[right{account, q}]
	return a.may, ok && r.clock.Since(a.at) < rightsLife
}

// note notes what a ServiceAccount was told.
func (r *rights) note(account types.UID, q question, may bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.told) >= maxRights {
		clear(r.told)
	}
	r.told[right{account, q}] = answer{may: may, at: r.clock.Now()}
}

// forget forgets what a ServiceAccount may do, of which something was refused all the same.
func (r *rights) forget(account types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for known := range r.told {
		if known.account == account {
			delete(r.told, known)
		}
	}
}
