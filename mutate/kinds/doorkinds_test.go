package kinds

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAJobRunsUntilItsControllerHasSaidThatItIsSuspended(t *testing.T) {
	for status, runs := range map[string]bool{
		"{}": false,
		`{startTime: "2030-01-02T03:04:05Z", active: 1}`:                                        true,
		`{active: 1, conditions: [{type: Suspended, status: "True"}]}`:                          true,
		`{startTime: "2030-01-02T03:04:05Z"}`:                                                   true,
		`{startTime: "2030-01-02T03:04:05Z", conditions: [{type: Suspended, status: "False"}]}`: true,
		`{startTime: "2030-01-02T03:04:05Z", conditions: [{type: Suspended, status: "True"}]}`:  false,
		`{active: 0, conditions: [{type: Suspended, status: "True"}]}`:                          false,
	} {
		assert.Equal(t, runs, Runs(object(t, "{status: "+status+"}").Object), status)
	}
}
