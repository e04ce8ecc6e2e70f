// Package engine is the saga: it does what a Transaction needs next, one step at a
// time, so that whatever happens between two steps can be made good by the one
// that follows.
//
// What that is plan.Decide says, a pure function from a Transaction, as the API
// server last stored it, and plan.InFlight, what this process knows beyond the record,
// to the next action. Each file named after a phase carries its actions out. A
// checkpoint is a write of the status that is refused if anybody wrote in
// between. It may record several intents; a step then changes one target, or
// several side by side if none of them depends on another.
//
// What is in flight saves requests and is never needed: a process that starts with
// nothing comes to the same end.
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
