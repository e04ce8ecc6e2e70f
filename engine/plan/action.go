package plan

import "time"

// Verb is what a step does.
type Verb string

// The verbs, in the order in which a Transaction meets them.
const (
	Nothing           Verb = "Nothing"           // ended, and cleared up
	Await             Verb = "Await"             // ended; look again at Action.At
	AddFinalizer      Verb = "AddFinalizer"      // add the finalizer
	Validate          Verb = "Validate"          // try the changes without effect
	Approve           Verb = "Approve"           // check an approval, and record it
	StandAgain        Verb = "StandAgain"        // the approved plan has changed: give the locks back, and make another plan
	Prepare           Verb = "Prepare"           // lock, read, save before-images
	Begin             Verb = "Begin"             // record the first intent
	Capture           Verb = "Capture"           // prepare an item whose target an earlier item changed
	CheckReady        Verb = "CheckReady"        // check whether what is in effect, or restored, is ready
	AwaitReady        Verb = "AwaitReady"        // nothing else is to be done until it is
	Open              Verb = "Open"              // record the intents of the next items
	Do                Verb = "Do"                // make a change whose intent was just recorded
	Observe           Verb = "Observe"           // observe an open intent, then do it if need be
	Record            Verb = "Record"            // record what is over
	Finish            Verb = "Finish"            // every change is in effect: end it
	Fail              Verb = "Fail"              // end before any change was made
	StartRollback     Verb = "StartRollback"     // stop committing, start rolling back
	ObserveUndo       Verb = "ObserveUndo"       // find out about an open intent while rolling back
	OpenUndo          Verb = "OpenUndo"          // record that items are about to be rolled back
	Undo              Verb = "Undo"              // compensate an item
	RetryUndos        Verb = "RetryUndos"        // roll back what was set aside, now that the others are rolled back
	Settle            Verb = "Settle"            // find out about a change that has failed, while others are made
	StopMaking        Verb = "StopMaking"        // begin nothing further, and leave what is in effect
	LeaveUndo         Verb = "LeaveUndo"         // record that items stay in effect, because what depends on them does
	SkipUndo          Verb = "SkipUndo"          // leave an item that was about to be rolled back, if that has not begun
	FinishUndo        Verb = "FinishUndo"        // nothing is left to roll back: end
	Recover           Verb = "Recover"           // take up a failed rollback again
	Suspend           Verb = "Suspend"           // record that it stands still
	StaySuspended     Verb = "StaySuspended"     // it stands still: keep the locks
	Resume            Verb = "Resume"            // record that it goes on
	AcceptPartial     Verb = "AcceptPartial"     // record that what is in effect is left so
	ObserveGeneration Verb = "ObserveGeneration" // ended; record that the spec has been seen, or that the clock was ahead
	CleanUp           Verb = "CleanUp"           // ended; remove what a recovery has taken that is not wanted
	Abandon           Verb = "Abandon"           // being deleted: let go of everything
)

// Action is the next step of a Transaction.
type Action struct {
	Verb Verb
	// Item is the item that the step is about, for those that are about one.
	Item int
	// Items are those that are made or rolled back side by side, Item first, for Do and Undo, and
	// those that stay in effect, for LeaveUndo.
	Items []int
	// Cause says why, for Fail, StartRollback and StopMaking.
	Cause Cause
	// At is when to look again, for Await.
	At time.Time
}
