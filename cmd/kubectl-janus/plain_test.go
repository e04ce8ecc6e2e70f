package main

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
)

func TestWhatIsPrintedHasNoEscapesAndNoLinesOfStrangers(t *testing.T) {
	var out bytes.Buffer
	write(&out, "%d %s %v %s %s\n", 3, "\x1b[31mred\nforged", errors.New("\x9bx"), api.Phase("\rok"), time.Second)
	assert.Equal(t, "3 \uFFFD[31mred forged \uFFFDx  ok 1s\n", out.String())
}

func TestAnErrorMayHaveLinesAndNoEscapes(t *testing.T) {
	var out bytes.Buffer
	exitCode(errors.Join(errors.New("one\x1b[2J"), errors.New("two")), &out)
	assert.Equal(t, "error: one\uFFFD[2J\ntwo\n", out.String())
}

func TestTheLiveViewHasNoEscapesButItsOwn(t *testing.T) {
	var out bytes.Buffer
	tx := &api.Transaction{}
	tx.Status.Items = []api.Item{{Name: "\x1b]0;title\x07", State: api.ItemCommitted}}
	tx.Namespace, tx.Name = "shop\x1b[2J", "x"
	(&live{out: &out, size: func() (int, int) { return 80, 24 }, now: time.Now}).update(tx)
	assert.NotContains(t, out.String(), "\x1b[2J")
	assert.NotContains(t, out.String(), "\x1b]")
	assert.NotContains(t, out.String(), "\x07")
}
