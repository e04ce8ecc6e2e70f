package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/internal/errclass"
)

// A rollback that waits for an API which the Transaction itself has registered would wait for ever.
func TestWhatAnAPIThatDoesNotAnswerKeepsFromBeingRolledBackIsSetAside(t *testing.T) {
	err := errclass.New(errclass.Unknown, errclass.ServerUnavailable, "discover", "the namespaced resources", "these APIs do not answer: example.com/v1")
	assert.False(t, Curable(err), "a server that does not answer is waited for")
	err.Refuser = errclass.ByDeadAPI
	assert.True(t, Curable(err))
}
