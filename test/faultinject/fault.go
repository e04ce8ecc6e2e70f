package faultinject

// Fault is what happens to one attempt to send a request.
type Fault string

// NoFault lets the request through.
const NoFault Fault = ""

// Faults of writes. After a crash every further request of the process fails, until
// the test starts another process.
const (
	// CrashBefore ends the process before the request is sent.
	CrashBefore Fault = "crash-before"
	// CrashAfter ends the process after the API server has done what was asked.
	CrashAfter Fault = "crash-after"
	// LostReply keeps the answer back: the connection breaks.
	LostReply Fault = "reply-lost"
	// Late reports a time-out at once, and the request is sent a little later.
	Late Fault = "late"
	// LateAfterRestart ends the process, and the request is sent a little after the
	// next process has begun.
	LateAfterRestart Fault = "late-after-restart"
	// Conflict answers 409 as if the resourceVersion were stale; nothing is sent.
	Conflict Fault = "409"
	// TooMany answers 429 with Retry-After; nothing is sent.
	TooMany Fault = "429"
	// Failed answers 500; nothing is sent.
	Failed Fault = "500"
	// FailedApplied sends the request and answers 500.
	FailedApplied Fault = "500-applied"
	// TimedOutApplied sends the request and answers 504.
	TimedOutApplied Fault = "504-applied"
)

// Starting is a fault of writes and of reads: it answers 403, as an API server does that
// has not read the roles yet, and to the question whether it is ready 500. Nothing is
// sent.
const Starting Fault = "403-starting"

// Started is a fault of writes and of reads: it answers 403, as an API server does that
// reads the roles just then, and is ready when it is asked. Nothing is sent.
const Started Fault = "403-started"

// Faults of reads.
const (
	// Stale answers with the object, or the list, as it was before it last changed.
	Stale Fault = "stale"
	// FalseNotFound answers 404, whatever is there.
	FalseNotFound Fault = "false-404"
	// ReadFailed answers 500.
	ReadFailed Fault = "read-500"
	// Expired answers 410.
	Expired Fault = "410"
	// Truncated leaves the second half of a list out.
	Truncated Fault = "truncated"
)

// Faults of watches, each from the beginning of the stream to its end.
const (
	// Dropped loses every other event for a while, and then says that there was a gap.
	Dropped Fault = "watch-dropped"
	// Duplicated delivers every event twice.
	Duplicated Fault = "watch-duplicated"
	// Reordered swaps neighbours.
	Reordered Fault = "watch-reordered"
	// Frozen delivers nothing for a while, and then the stream breaks.
	Frozen Fault = "watch-frozen"
)

// Writes, Reads and Watches list the faults that can happen to a request of a kind.
var (
	Writes = []Fault{
		CrashBefore, CrashAfter, LostReply, Late, LateAfterRestart,
		Conflict, TooMany, Failed, FailedApplied, TimedOutApplied, Starting, Started,
	}
	Reads   = []Fault{CrashAfter, Stale, FalseNotFound, ReadFailed, Expired, Truncated, Starting, Started}
	Watches = []Fault{ReadFailed, Expired, Dropped, Duplicated, Reordered, Frozen}
)

// crashes reports whether the process ends.
func (f Fault) crashes() bool {
	return f == CrashBefore || f == CrashAfter || f == LateAfterRestart
}

// sends reports whether the request reaches the API server while its sender waits.
func (f Fault) sends() bool {
	switch f {
	case CrashBefore, Late, LateAfterRestart, Conflict, TooMany, Failed, Starting, Started, FalseNotFound, ReadFailed, Expired:
		return false
	}
	return true
}
