package oracle

import api "janus.io/janus/api/v1alpha1"

// mostRefusals is how often a creation may be refused until that is believed. A refusal that
// an earlier change may be the reason of is borne for five seconds, and the creation tried twice in
// each, once more when it is first told of, and once more when the time is over: 13 times. Each try
// asks twice, since the API server may have become ready in between. Who begins again does not know
// since when: another process after a crash, and the same one that was told that the Transaction
// does not exist. Plans have two faults at most.
const mostRefusals = 3 * 13 * 2

// mostRecreations is how often the same may be refused to a rollback that creates again what the
// Transaction had deleted: for half a minute, in which it is tried twelve times, and so in each of
// two recoveries. Each try asks twice here as well.
const mostRecreations = 3 * 12 * 2

// judgeRefused: what is refused for good is not asked for again and again.
func (c *trial) judgeRefused(r *run) {
	refused := map[Ref]int{}
	for i := range c.Calls {
		call := &c.Calls[i]
		if call.Method == "POST" && call.Code == 403 && !call.DryRun && call.User == r.user {
			refused[refOf(call)]++
		}
	}
	for i, target := range r.Items {
		// Which of several Transactions has asked for a target is not told by the request, nor for which change.
		most := mostRefusals * len(c.targets[target])
		if r.hasDeletionOf(target) {
			most += mostRecreations
		}
		if n := refused[target]; r.Spec.Changes[i].Type == api.Create && n > most {
			c.breach(Termination, "%s: it was refused %d times, and asked for again", r.named(i), n)
		}
	}
}

// hasDeletionOf reports whether a change of the Transaction deletes a target.
func (r *run) hasDeletionOf(target Ref) bool {
	for i, of := range r.Items {
		if of == target && r.Spec.Changes[i].Type == api.Delete {
			return true
		}
	}
	return false
}
