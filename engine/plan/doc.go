// Package plan decides: what the next step of a Transaction is, in which order its changes
// are begun, when its time is over, what its conditions say, and which moves of its states are
// legal. It is pure. A decision follows from the Transaction as the API server last stored it,
// from what the process has in flight, from the policy and from the time, all of which are
// passed in; nothing here sends a request, waits, or remembers anything.
//
// engine carries the decisions out.
package plan
