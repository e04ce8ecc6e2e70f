package judge

import api "janus.io/janus/api/v1alpha1"

// mostRefusals is how often a creation may be refused until that is believed. Once would
// do, but answers get lost, and processes crash.
const mostRefusals = 12

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
		if n := refused[target]; r.Spec.Changes[i].Type == api.Create && n > mostRefusals {
			c.breach(Termination, "%s: it was refused %d times, and asked for again", r.named(i), n)
		}
	}
}
