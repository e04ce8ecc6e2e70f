// Package engine is the saga: it does what a Transaction needs next, one step at a
// time, so that whatever happens between two steps can be made good by the one
// that follows.
//
// What that is plan.Decide says, a pure function from a Transaction, as the API
// server last stored it, and plan.InFlight, what this process knows beyond the record,
// to the next action. A checkpoint is a write of the status that is refused if another
// client wrote in between. It may record several intents; a step then changes one target,
// or several side by side if none of them depends on another.
//
// # What calls what
//
// Files call down this list, and never up:
//
//	run.go              runs of a Transaction, from one step to the next
//	step.go             the table of which phase carries out which action
//	preflight.go, approve.go, prepare.go, commit.go (with send.go, pace.go, guard.go), await.go,
//	suspend.go, stop.go, rollback.go (with aside.go, undo.go), finalize.go (with history.go),
//	cleanup.go, ttl.go, retry.go
//	                    the phases, each a type of its own around a saga
//	goingon.go          the way on without what has failed
//	startrollback.go    the way from committing to rolling back
//	intent.go, images.go, locks.go, poll.go
//	                    intents, before-images, locks, and how often to look again
//	open.go, checkpoint.go, inflight.go, settle.go
//	                    what is recorded, and when a request can no longer land
//	saga.go             one run of one Transaction
//	ports.go            what the engine needs from the world
//
// What a process remembers of Transactions is in engine/internal/memory. A saga has the
// Memory of its own Transaction; only the Engine has those of all. What is remembered saves
// requests and is never needed: a process that starts with nothing comes to the same end.
//
// # What is visible in the types
//
// A change or a compensation takes an Intent, and an Intent is made only from a Transaction
// that the API server has acknowledged to hold it. So nothing is sent that is
// not on record. Anyone who finds an open intent that it did not record itself
// looks at the target before anything else.
//
// An Intent, and a before-image, also takes the proof that the step has kept the locks.
//
// The package does no I/O and imports no client.
package engine
