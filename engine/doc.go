// Package engine is the saga: it decides what a Transaction needs next and does
// it, one step at a time, so that whatever happens between two steps can be
// made good by the one that follows.
//
// Decide is a pure function from a Transaction, as the API server last stored
// it, and InFlight, what this process knows beyond the record, to the next
// Action. Each file named after a phase carries the actions of that phase out. A
// checkpoint is a write of the status that is refused if anybody wrote in
// between. It may record several intents; a step then changes one target, or
// several side by side if none of them depends on another.
//
// InFlight saves requests and is never needed: a process that starts with an
// empty one comes to the same end.
//
// The rule that everything rests on is visible in the types: a change or a
// compensation takes an Intent, and an Intent is made only from a Transaction
// that the API server has acknowledged to hold it. So nothing is sent that is
// not on record. Whoever finds an open intent that it did not record itself
// looks at the target before anything else.
//
// The package does no I/O and imports no client. What it needs from the world
// it declares in ports.go.
package engine
