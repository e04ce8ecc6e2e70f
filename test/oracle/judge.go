package oracle

import "fmt"

// The guarantees, as the contract names them. Lock order and termination show as
// one: that every Transaction ends.
const (
	DurableIntent   = "durable intent"
	Atomicity       = "atomicity"
	NoLostWrite     = "no lost write"
	ExactlyOnce     = "exactly once"
	LockExclusion   = "lock exclusion"
	NothingLeft     = "nothing left"
	Termination     = "termination"
	Identity        = "identity"
	Confidentiality = "confidentiality"
	Phases          = "phases"
	Order           = "order"
	Bystanders      = "bystanders"
	Approval        = "approval"
	// Whole is about the evidence itself: a history that lacks something proves
	// nothing.
	Whole = "whole evidence"
)

// Guarantees lists all that Judge looks at, in the order in which it does.
var Guarantees = []string{
	Whole, DurableIntent, Atomicity, NoLostWrite, ExactlyOnce, LockExclusion,
	NothingLeft, Termination, Identity, Confidentiality, Phases, Order, Bystanders, Approval,
}

// Judge lists what the evidence shows to be broken. It reads the evidence only, and
// may be called from several goroutines.
func Judge(e Evidence) []Breach {
	c := newCase(e)
	c.judgeWhole()
	for _, r := range c.runs {
		c.judgeIntent(r)
		c.judgeDryRun(r)
		if !r.tampered {
			c.judgePhases(r)
			c.judgeDepends(r)
			c.judgeNeeds(r)
			c.judgeConditions(r)
			c.judgeReadyAgain(r)
			c.judgeResults(r)
			c.judgeDeletions(r)
			c.judgeGuards(r)
			c.judgeHandOver(r)
			c.judgeCommit(r)
			c.judgeUnchanged(r)
			c.judgeRollback(r)
			c.judgeContinued(r)
			c.judgeUnresolved(r)
			c.judgePlaces(r)
			c.judgeAdmitted(r)
			c.judgeRemade(r)
			c.judgeBystanders(r)
			c.judgeCancelled(r)
			c.judgeKept(r)
			c.judgeAccount(r)
			c.judgeRefused(r)
			c.judgeRemembered(r)
			c.judgeTakenBack(r)
			c.judgeNumbers(r)
			c.judgeSources(r)
			c.judgeApproval(r)
		}
		c.judgeLost(r)
		c.judgeOnce(r)
		c.judgeHeld(r)
		c.judgeReleased(r)
		c.judgeLeft(r)
		c.judgeEnd(r)
	}
	c.judgeStrays()
	c.judgeLocks()
	c.judgeBound()
	c.judgeIdentity()
	c.judgeSecrecy()
	return c.breaches
}

// breach notes what is broken.
func (c *trial) breach(guarantee, format string, args ...any) {
	c.breaches = append(c.breaches, Breach{Guarantee: guarantee, Message: fmt.Sprintf(format, args...)})
}
