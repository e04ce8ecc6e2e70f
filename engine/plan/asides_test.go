package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/internal/errclass"
)

// A rollback that waits for an API which the Transaction itself has registered would wait for ever, and
// for long where it waits for a conversion webhook, or for the count of a quota.
func TestWhatAnAPIThatDoesNotAnswerKeepsFromBeingRolledBackIsSetAside(t *testing.T) {
	err := errclass.New(errclass.Retryable, errclass.ServerUnavailable, "discover", "the namespaced resources", "these APIs do not answer: example.com/v1")
	assert.False(t, Curable(err), "a server that does not answer is waited for")
	for _, by := range []errclass.Refuser{errclass.ByDeadAPI, errclass.ByConversion, errclass.ByUncountedQuota} {
		err.Refuser = by
		assert.True(t, Curable(err), by)
	}
}
