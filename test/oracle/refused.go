package oracle

import api "janus.io/janus/api/v1alpha1"

// mostRefusals is how often a creation may be refused until that is believed. A refusal that
// an earlier change may be the reason of is borne for five seconds, and the creation tried twice in
// each, once more when it is first told of, and once more when the time is over: 13 times. Each try
// asks twice, since the API server may have become ready in between. Who begins again does not know
// since when: another process after a crash, and the same one that was told that the Transaction
// does not exist. Plans have two faults at most.
const mostRefusals = 3 * 13 * 2

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
		// Which of several Transactions has asked for a target is not told by the request.
		if n := refused[target]; r.Spec.Changes[i].Type == api.Create && n > mostRefusals*len(c.targets[target]) {
			c.breach(Termination, "%s: it was refused %d times, and asked for again", r.named(i), n)
		}
	}
}
