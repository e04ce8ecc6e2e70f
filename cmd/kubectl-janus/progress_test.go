package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

// What has scrolled off a low terminal cannot be drawn again: each drawing goes up as many lines
// as the one before it has, and none has more than the terminal.
func TestEachDrawingReplacesTheOneBefore(t *testing.T) {
	var out bytes.Buffer
	l := &live{out: &out, width: 100, height: 4}
	txn := &api.Transaction{}
	l.open(txn)
	assert.NotContains(t, out.String(), "A", "there is nothing to go up over")
	for _, step := range []struct {
		items int
		state api.ItemState
		up    string
	}{
		{3, api.ItemPending, "\x1b[1A"},
		{3, api.ItemCommitting, "\x1b[3A"},
		{3, api.ItemCommitted, "\x1b[3A"},
	} {
		out.Reset()
		txn.Status.Items = make([]api.Item, step.items)
		for i := range txn.Status.Items {
			txn.Status.Items[i] = api.Item{Name: "item", State: step.state}
		}
		l.update(txn)
		assert.True(t, strings.HasPrefix(out.String(), step.up), "%q", out.String())
		assert.Contains(t, out.String(), "  … 3 items in all")
		assert.Equal(t, 3, bytes.Count(out.Bytes(), []byte("\n")))
	}
}
