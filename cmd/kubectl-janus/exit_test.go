package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Before anything was created there is nothing that goes on.
func TestWhatWasInterruptedIsSaidToGoOnOnlyIfItDoes(t *testing.T) {
	var said bytes.Buffer
	assert.Equal(t, exitOther, exitCode(fmt.Errorf("look: %w", context.Canceled), &said))
	assert.Equal(t, "error: interrupted\n", said.String())

	said.Reset()
	assert.Equal(t, exitTrouble, exitCode(trouble(fmt.Errorf("look: %w", context.Canceled)), &said))
	assert.Equal(t, "error: interrupted\n", said.String())
}

func TestAPlanThatMayHaveLeftATransactionNamesIt(t *testing.T) {
	var said bytes.Buffer
	doubt := &doubtError{namespace: "shop", name: "plan-1", err: context.Canceled}
	assert.Equal(t, exitTrouble, exitCode(trouble(doubt), &said))
	assert.Contains(t, said.String(), "kubectl janus get plan-1")
}
