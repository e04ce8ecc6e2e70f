package plan

// InFlight is what a process knows of open intents beyond what is on record.
type InFlight struct {
	// Fresh are the items for whose intents this process has sent nothing yet, and
	// nobody else has.
	Fresh map[int]bool
	// Over are the items whose change is in effect, or that are rolled back.
	Over map[int]bool
	// Parked are the items that are left as they are because the Transaction is suspended,
	// or stopped while it rolls back: changes that are not in effect, and compensations
	// that are not and cannot come to be.
	Parked map[int]bool
	// Due says that it is time to record what is over.
	Due bool
	// LookDue says that it is time to check whether what is waited for is
	// ready.
	LookDue bool
}

// DefaultWindow is how many intents may be open at once: those of the largest Transaction.
const DefaultWindow = 1000
