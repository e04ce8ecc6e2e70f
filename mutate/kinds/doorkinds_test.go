package kinds

import (
	"fmt"
	"testing"
	"time"

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

// One that fails never runs again.
func TestAJobFailsForGoodOnceItHasRunForTooLongOrFailedTooOften(t *testing.T) {
	running := func(spec, status string) string {
		hour := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
		return fmt.Sprintf("{spec: {%s}, status: {startTime: %q, %s}}", spec, hour, status)
	}
	for name, c := range map[string]struct {
		before, after string
		says          string
		forGood       bool
	}{
		"a deadline that is over":       {running("", ""), "{spec: {activeDeadlineSeconds: 60}}", "once it has run for 60 seconds", true},
		"a deadline that is not":        {running("", ""), "{spec: {activeDeadlineSeconds: 7200}}", "once it has run for 7200 seconds", false},
		"an earlier one":                {running("activeDeadlineSeconds: 7200", ""), "{spec: {activeDeadlineSeconds: 3000}}", "once it has run for 3000 seconds", true},
		"a later one":                   {running("activeDeadlineSeconds: 7200", ""), "{spec: {activeDeadlineSeconds: 9000}}", "", false},
		"none any more":                 {running("activeDeadlineSeconds: 7200", ""), "{spec: {}}", "", false},
		"one that is suspended":         {running("suspend: true", ""), "{spec: {activeDeadlineSeconds: 60}}", "once it has run for 60 seconds", false},
		"fewer failures than there are": {running("", "failed: 3"), "{spec: {backoffLimit: 2}}", "3 of its Pods have failed, and spec.backoffLimit goes from 6 to 2", true},
		"as many failures":              {running("", "failed: 2"), "{spec: {backoffLimit: 2}}", "", false},
		"it has finished": {
			running("", `failed: 3, conditions: [{type: Complete, status: "True"}]`), "{spec: {backoffLimit: 2, activeDeadlineSeconds: 1}}", "", false,
		},
	} {
		found := FailedJob(object(t, c.before).Object, object(t, c.after).Object, time.Now())
		if c.says == "" {
			assert.Empty(t, found, name)
			continue
		}
		if assert.Len(t, found, 1, name) {
			assert.Contains(t, found[0].Text, c.says, name)
			assert.Equal(t, c.forGood, found[0].ForGood, name)
		}
	}
}
