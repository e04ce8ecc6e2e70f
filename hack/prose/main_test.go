package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAFindingNamesTheSource(t *testing.T) {
	assert.Equal(t, "engine/a.go:7:3: Write again, not 'anew'.\ndocs/a.md:1:2: Write: so.\n",
		inSources("/tmp/prose-1/engine/a.go.txt:7:3:Janus.Foreign:Write again, not 'anew'.\ndocs/a.md:1:2:Janus.Words:Write: so.\n", "/tmp/prose-1"))
}

func TestTestsDoNotSpeakToPeople(t *testing.T) {
	for file, want := range map[string]bool{
		"engine/decide.go": true, "internal/wiring/try.go": true,
		"engine/decide_test.go": false, "hack/tests/main.go": false, "test/oracle/run.go": false, "docs/faq.md": false,
	} {
		assert.Equal(t, want, speaks(file), file)
	}
}
