package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "janus.io/janus/api/v1alpha1"
)

// Off a terminal there is one line for each thing that has ended, and for what is waited for.
func TestOffATerminalALineIsForWhatHasEnded(t *testing.T) {
	var out bytes.Buffer
	l := &lines{out: &out, patience: patience}
	txn := &api.Transaction{}
	for _, step := range []struct {
		phase  api.Phase
		reason string
		state  api.ItemState
		want   string
	}{
		{api.PhasePending, "ContentMissing", api.ItemPending, ""},
		{api.PhasePreparing, "Preparing", api.ItemPending, ""},
		{api.PhasePrepared, "Prepared", api.ItemPrepared, ""},
		{api.PhaseCommitting, "Committing", api.ItemCommitting, ""},
		{api.PhaseCommitting, "NotReady", api.ItemCommitted, "  a Patch ConfigMap shop/a: Committed\nCommitting (NotReady): it waits\n"},
		{api.PhaseCommitted, "Committed", api.ItemCommitted, ""},
	} {
		out.Reset()
		txn.Status.Phase = step.phase
		txn.Status.Items = []api.Item{{Name: "a", Type: api.Patch, Target: api.Target{Kind: "ConfigMap", Namespace: "shop", Name: "a"}, State: step.state}}
		txn.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Reason: step.reason, Message: "it waits"}}
		l.update(txn)
		assert.Equal(t, step.want, out.String(), "%s", step.reason)
	}
}

func TestTheEndSaysWhatWasDoneAndHowToUndoIt(t *testing.T) {
	txn := &api.Transaction{}
	txn.Namespace, txn.Name = "shop", "release"
	assert.Equal(t, "Done in <1s: nothing to change.", done(txn))
	item := func(kind api.ChangeType, state api.ItemState) api.Item { return api.Item{Type: kind, State: state} }
	same := item(api.Patch, api.ItemCommitted)
	same.Unchanged = true
	txn.Status.Duration, txn.Status.Revision = "7s", 3
	txn.Status.Items = []api.Item{
		item(api.Create, api.ItemCommitted), item(api.Create, api.ItemCommitted), item(api.Patch, api.ItemCommitted), item(api.Update, api.ItemCommitted),
		item(api.Delete, api.ItemCommitted), item(api.Await, api.ItemCommitted), item(api.Delete, api.ItemSkipped), same,
	}
	assert.Equal(t, "Done in 7s: 2 created, 1 updated, 1 patched, 1 deleted, 1 unchanged, 1 skipped. To undo it: kubectl janus undo release -n shop", done(txn))
}

// What the progress has said of an item, the end does not say again. On a terminal the progress is
// drawn over.
func TestTheEndDoesNotRepeatTheProgress(t *testing.T) {
	txn := &api.Transaction{}
	txn.Namespace, txn.Name = "shop", "release"
	txn.Status.Phase = api.PhaseRolledBack
	txn.Status.Items = []api.Item{{
		Name: "a", Type: api.Await, Target: api.Target{Kind: "Deployment", Namespace: "shop", Name: "a"},
		State: api.ItemRolledBack, Reason: "ReadyTimeout", Message: "not ready within 2s",
	}}
	const line = "  a Await Deployment shop/a: RolledBack (ReadyTimeout): not ready within 2s\n"
	var out, progress bytes.Buffer
	s := newSession(genericiooptions.IOStreams{Out: &out, ErrOut: &progress})
	s.summary(&out, txn, "")
	assert.Contains(t, progress.String(), line, "who has seen no progress is told")
	progress.Reset()
	s.progress().update(txn)
	s.summary(&out, txn, "")
	assert.Equal(t, 1, strings.Count(progress.String(), line), progress.String())
}
