package plan

import (
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// Policy holds the limits that are not the Transaction's own.
type Policy struct {
	// Recoveries is how often a failed rollback is taken up again.
	Recoveries int32
	// RecoveryDelay is the wait before the first recovery; each further one waits
	// four times as long.
	RecoveryDelay time.Duration
	// SettleTime is how long a request may take to land after its sender has
	// given up on it. An intent is not written off before that.
	SettleTime time.Duration
	// Lateness is after how long a run no longer takes for granted that the Transaction
	// is as it knows it; zero means DefaultLateness. Anyone who runs goes from one
	// checkpoint to the next in much less. Who hung meanwhile, or waited long for an
	// answer, may have been replaced: another process may have made the change and
	// rolled it back, so that the target is again as a request expects it.
	Lateness time.Duration
	// CatchUp is for how long what was refused is tried again after something was
	// rolled back that may make it possible; zero means DefaultCatchUp.
	CatchUp time.Duration
	// AddressTime and QuotaTime are for how long a rollback tries again before it fails where an
	// address is taken, and where a quota is used up; zero means the default.
	AddressTime, QuotaTime time.Duration
	// Window is how many intents may be open at once; zero means DefaultWindow.
	Window int
	// RevisionHistoryLimit is how many committed Transactions of a namespace are
	// remembered where the one that commits does not say.
	RevisionHistoryLimit int32
}

// DefaultLateness is far more than a request takes, and far less than it takes to
// replace a process.
const DefaultLateness = time.Second

// DefaultCatchUp is more than it takes until all of an API server goes by a schema, a
// policy or a role that was changed.
const DefaultCatchUp = 5 * time.Second

// The control plane may go on counting an object that was deleted, or holding its address.
const (
	// DefaultAddressTime is more than an API server may hold an address that no Service has. It
	// repairs what is noted of the addresses of Services: where it sees the deletion of one
	// late, it takes the address for forgotten, and notes it once more. It drops such a note when
	// that is a minute old; until then not even a Service of the same name can have the address.
	DefaultAddressTime = 65 * time.Second
	// DefaultQuotaTime is twice the Lease of a controller manager: if that dies, another takes over
	// after 15 s, and counts what the quota limits.
	DefaultQuotaTime = 30 * time.Second
)

// CountedLate is for how long a compensation that was refused is tried again because the control
// plane may still count or hold what was deleted; zero for any other refusal.
func (p Policy) CountedLate(refusal error) time.Duration {
	switch errclass.RefuserOf(refusal) {
	case errclass.ByAddress:
		return p.AddressTime
	case errclass.ByFullQuota:
		return p.QuotaTime
	default:
		return 0
	}
}

// WithDefaults has the defaults where p says nothing.
func (p Policy) WithDefaults() Policy {
	if p.Lateness <= 0 {
		p.Lateness = DefaultLateness
	}
	if p.CatchUp <= 0 {
		p.CatchUp = DefaultCatchUp
	}
	if p.AddressTime <= 0 {
		p.AddressTime = DefaultAddressTime
	}
	if p.QuotaTime <= 0 {
		p.QuotaTime = DefaultQuotaTime
	}
	if p.Window <= 0 {
		p.Window = DefaultWindow
	}
	return p
}

// DefaultPolicy takes a failed rollback up three times, after half a minute, two
// minutes and eight. The settle time covers the request timeout of 15 s, which
// the API server is told and keeps, and some slack for the network.
var DefaultPolicy = Policy{Recoveries: 3, RecoveryDelay: 30 * time.Second, SettleTime: 20 * time.Second}

// HistoryLimit is how many committed Transactions of its namespace are remembered once
// t has committed; 0 leaves the history alone.
func (p Policy) HistoryLimit(t *api.Transaction) int {
	if own := t.Spec.RevisionHistoryLimit; own != nil {
		return int(*own)
	}
	return int(p.RevisionHistoryLimit)
}
