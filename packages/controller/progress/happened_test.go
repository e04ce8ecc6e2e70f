package progress

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/packages/check"
)

// told is what has happened, as a text.
func told(before *api.PackageTransactionStatus, p *api.PackageTransaction) string {
	var out []string
	for _, h := range Happened(before, p) {
		text := h.Reason + ": " + h.Message
		if h.Warning {
			text = "! " + text
		}
		if h.Outcome != "" {
			text += " => " + h.Outcome
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

// Each status write has its news, and none of what is known already.
func TestWhatHasHappenedFollowsFromTwoStatuses(t *testing.T) {
	p := installing()
	p.Spec.RetryLimit = ptr.To[int64](2)
	var before api.PackageTransactionStatus
	next := func(want string) {
		t.Helper()
		assert.Equal(t, want, told(&before, p))
		before = *p.Status.DeepCopy()
		assert.Empty(t, told(&before, p))
	}
	next("")
	Queued(p, "other", now)
	next("WaitingForLock: waiting for PackageTransaction other, which changes packages")
	Queued(p, "third", now)
	next("")
	Begin(p, 7, now)
	next("")
	Checked(p, check.Findings{{Reason: check.Outage, Message: "it stops", Warning: true}}, DefaultPolicy, now)
	next("AllValidationsPassed: Pre-flight validation completed successfully; mind: it stops")
	first := transaction(txn.PhaseCommitting)
	first.Name = Name(p)
	Next(p, first, DefaultPolicy, now)
	next("InstallationInProgress: attempt 1: Transaction shop/" + first.Name + " makes the change")
	first.Status.Progress = "1/2"
	Next(p, first, DefaultPolicy, now)
	next("")
	first.Status.Phase = txn.PhaseRolledBack
	Next(p, first, DefaultPolicy, now)
	next("! InstallationFailed: attempt 1 of 2 has failed, the next begins at 2026-01-01T00:00:10Z: Transaction shop/" + first.Name + " was rolled back: Transaction shop/" + first.Name + " is rolledback")

	later := now.Add(time.Minute)
	Checked(p, nil, DefaultPolicy, later)
	next("AllValidationsPassed: Pre-flight validation completed successfully")
	second := transaction(txn.PhaseCommitted)
	second.Name = Name(p)
	Next(p, second, DefaultPolicy, later)
	next("InstallationInProgress: attempt 2: Transaction shop/" + second.Name + " makes the change\n" +
		"TransactionComplete: Transaction shop/" + second.Name + " has committed => TransactionComplete")
}

func TestWhatHasHappenedOfAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(p *api.PackageTransaction)
		want string
	}{
		"refused": {func(p *api.PackageTransaction) {
			Checked(p, check.Findings{{Reason: check.HasDependents, Message: "b needs a"}}, DefaultPolicy, now)
		}, "! HasDependents: b needs a => ValidationFailed"},
		"not checked": {func(p *api.PackageTransaction) { Unchecked(p, DefaultPolicy, now, AccessDenied, "may not") },
			"! AccessDenied: attempt 1 of 5 has failed, the next begins at 2026-01-01T00:00:10Z: may not"},
		"not checked, the last time": {func(p *api.PackageTransaction) {
			p.Spec.RetryLimit = ptr.To[int64](1)
			Unchecked(p, DefaultPolicy, now, AccessDenied, "may not")
		}, "! AccessDenied: may not => ValidationFailed"},
		"the name is taken": {func(p *api.PackageTransaction) {
			p.Spec.RetryLimit = ptr.To[int64](1)
			Taken(p, DefaultPolicy, now)
		}, "! InstallationFailed: a Transaction shop/" + Name(installing()) + " exists that is not of this PackageTransaction: delete it => InstallationFailed"},
		"a dry run": {func(p *api.PackageTransaction) {
			p.Spec.DryRun = true
			Checked(p, nil, DefaultPolicy, now)
			Done(p, now)
		}, "AllValidationsPassed: Pre-flight validation completed successfully\nDryRun: The change was checked, and nothing stands in its way => DryRun"},
		"nothing to do": {func(p *api.PackageTransaction) {
			Checked(p, nil, DefaultPolicy, now)
			Done(p, now)
		}, "AllValidationsPassed: Pre-flight validation completed successfully\nTransactionComplete: Everything is as it is to be => TransactionComplete"},
	} {
		t.Run(name, func(t *testing.T) {
			p := installing()
			c.do(p)
			assert.Equal(t, c.want, told(&api.PackageTransactionStatus{}, p))
		})
	}
}

// A process that starts tells of the attempt that is under way, and not of those before.
func TestAtTheFirstSightAnEarlierAttemptIsNoNews(t *testing.T) {
	p := installing()
	Checked(p, nil, DefaultPolicy, now)
	first := transaction(txn.PhaseRolledBack)
	first.Name = Name(p)
	Next(p, first, DefaultPolicy, now)
	assert.Equal(t, 1, strings.Count(told(Unseen(p), p), "InstallationFailed: attempt 1 of 5"))
	assert.NotContains(t, told(Unseen(p), p), "makes the change")
	assert.Zero(t, Happened(Unseen(p), p)[0].Failed, "another process has counted it")
	Checked(p, nil, DefaultPolicy, now.Add(time.Minute))
	assert.Equal(t, "AllValidationsPassed: Pre-flight validation completed successfully", told(Unseen(p), p))
	second := transaction(txn.PhaseCommitting)
	second.Name = Name(p)
	Next(p, second, DefaultPolicy, now)
	assert.Contains(t, told(Unseen(p), p), "attempt 2: Transaction shop/"+second.Name)
}

// What the API server would store otherwise would be written again and again.
func TestMessagesAreWhatTheAPIServerStores(t *testing.T) {
	p := installing()
	Unsynced(p, assert.AnError, now)
	for _, text := range []string{strings.Repeat("ä", 4096), "a" + strings.Repeat("ä", 4096), "not \xff valid", "\x1b[31mred"} {
		Unchecked(p, DefaultPolicy, now, AccessDenied, text)
		c := meta.FindStatusCondition(p.Status.Conditions, api.Validated)
		assert.True(t, utf8.ValidString(c.Message))
		assert.LessOrEqual(t, len(c.Message), 4096)
		assert.NotContains(t, c.Message, "\x1b")
	}
}
