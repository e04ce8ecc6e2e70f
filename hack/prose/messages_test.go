package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAMessageKeepsItsLine(t *testing.T) {
	found, err := messages("a.go", []byte("package a\n"+
		"import _ \"a name of three words\"\n"+
		"type b struct { C int `json:\"one two three\"` }\n"+
		"var d = fail(\"Transaction %s has ended, \" + \"and it is kept\", \"short one\")\n"+
		"// this is no message at all\n"+
		"var e = `the first line of several\n"+
		"and the next one of them`\n"))
	require.NoError(t, err)
	assert.Equal(t, "\n\n\nTransaction %s has ended, and it is kept\n\nthe first line of several\nand the next one of them\n", found)
}

func TestAFileThatIsNoGoIsAnError(t *testing.T) {
	_, err := messages("a.go", []byte("no Go"))
	assert.ErrorContains(t, err, "a.go:1")
}
