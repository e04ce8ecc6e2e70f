package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

// A Transaction that times out again and again says so before it gives up.
func TestDescribeTellsOfTimeOuts(t *testing.T) {
	said := func(timedOut *api.TimedOut) string {
		var out bytes.Buffer
		describe(&out, &api.Transaction{Status: api.TransactionStatus{Phase: api.PhaseCommitting, Failures: 7, TimedOut: timedOut}})
		return out.String()
	}
	assert.Regexp(t, `(?m)^Failed attempts:  7\nTimed out:        ConfigMap shop/a, 7 of 20 times in a row until Janus gives up; mend the webhook that checks it, or make `,
		said(&api.TimedOut{Object: "ConfigMap shop/a", Attempts: 7}))
	assert.NotContains(t, said(nil), "Timed out")
	assert.NotContains(t, said(&api.TimedOut{Object: "ConfigMap shop/a\x1b[2J\nPhase: Committed", Attempts: 7}), "\x1b")
	assert.NotRegexp(t, `(?m)^Phase: Committed`, said(&api.TimedOut{Object: "ConfigMap shop/a\nPhase: Committed", Attempts: 7}))
}
