package plan

// Knowledge is what a process knows of an open intent beyond what is on record.
type Knowledge int

const (
	// Unknown means that a request for it may have taken effect, or may yet. It is the zero
	// value: so is an intent that another process has recorded.
	Unknown Knowledge = iota
	// Unsent means that this process has recorded it, and nobody has sent anything for it.
	Unsent
	// Ineffective means that this process has recorded it, and that no request for it has
	// taken effect or may.
	Ineffective
	// Over means that the change is in effect, or that it is rolled back.
	Over
	// Parked means that it is left as it is because the Transaction is suspended, or stopped
	// while it rolls back: a change that is not in effect, or a compensation that is not and
	// cannot come to be.
	Parked
	// ParkedIneffective is Parked, and Ineffective once it is taken up again.
	ParkedIneffective
)

func (k Knowledge) String() string {
	return [...]string{"unknown", "unsent", "ineffective", "over", "parked", "parked, ineffective"}[k]
}

// Event is what happens to an open intent in a process.
type Event int

const (
	// Recorded means that this process has put the intent on record.
	Recorded Event = iota
	// Sent means that a request for it is about to be sent.
	Sent
	// Lost means that a request for it has taken effect, or may.
	Lost
	// Ended means that the change is in effect, or that it is rolled back.
	Ended
	// Left means that it was looked at, and is left as it is.
	Left
	// TakenUp means that it is no longer left.
	TakenUp
)

// after has what is known of an intent after an event: each event may happen at any time, and
// only Recorded makes known again what was unknown.
var after = [...][6]Knowledge{
	//                  Recorded, Sent, Lost, Ended, Left, TakenUp
	Unknown:           {Unsent, Unknown, Unknown, Over, Parked, Unknown},
	Unsent:            {Unsent, Ineffective, Unknown, Over, ParkedIneffective, Ineffective},
	Ineffective:       {Unsent, Ineffective, Unknown, Over, ParkedIneffective, Ineffective},
	Over:              {Unsent, Over, Over, Over, Over, Over},
	Parked:            {Unsent, Unknown, Unknown, Over, Parked, Unknown},
	ParkedIneffective: {Unsent, Ineffective, Unknown, Over, ParkedIneffective, Ineffective},
}

// After returns what is known of an intent after an event.
func (k Knowledge) After(e Event) Knowledge { return after[k][e] }

// NoEffect reports whether no request for the intent has taken effect or may.
func (k Knowledge) NoEffect() bool {
	return k == Unsent || k == Ineffective || k == ParkedIneffective
}

// IsParked reports whether the intent is left as it is.
func (k Knowledge) IsParked() bool { return k == Parked || k == ParkedIneffective }

// Known is what a process knows of the open intents of a Transaction, by item.
type Known map[int]Knowledge

// Any reports whether one of them is k.
func (known Known) Any(k Knowledge) bool {
	for _, one := range known {
		if one == k {
			return true
		}
	}
	return false
}

// InFlight is what a process knows of a Transaction that runs, beyond what is on record.
type InFlight struct {
	Known Known
	// Due says that it is time to record what is over.
	Due bool
	// ReadyCheckDue says that it is time to check whether what is waited for is
	// ready.
	ReadyCheckDue bool
	// again says that compensations were sent by a rollback before this one, which a recovery takes up.
	again bool
}

// over reports whether what was begun with item i is over, and not on record.
func (f InFlight) over(i int) bool { return f.Known[i] == Over }

// untouched reports whether nothing was sent for item i, or nothing of it is in effect or can come
// to be.
func (f InFlight) untouched(i int) bool {
	return f.Known[i] == Unsent && !f.again || f.Known[i].IsParked()
}

// DefaultWindow is how many intents may be open at once: those of the largest Transaction.
const DefaultWindow = 1000
