package enforced_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/internal/wiring/enforced"
)

// What may be refused is asked for by name: janusd would find out only when a Transaction
// takes its locks.
func TestEachRightThatIsLackingIsNamedBeforeAnyLockIsTaken(t *testing.T) {
	w := newWorld(t)
	tables := enforced.NewTables(w.Dynamic)
	// lacking answers as an API server that allows all but one thing.
	lacking := func(right string) error {
		return enforced.Check(t.Context(), tables, func(_ context.Context, group, resource, subresource, verb, name string) (bool, error) {
			return verb+" "+group+"/"+resource+"/"+subresource+"/"+name != right, nil
		})
	}
	require.NoError(t, lacking("nothing"))
	for right, wanted := range map[string]string{
		"create backup.janus.io/locktables//":                                         "create locktables",
		"update backup.janus.io/locktables//":                                         "update locktables",
		"impersonate authentication.k8s.io/userextras/backup.janus.io/made-by/janusd": "impersonate userextras/backup.janus.io/made-by",
	} {
		require.EqualError(t, lacking(right), "--enforce-locks: janusd may not "+wanted+": install deploy/enforced")
	}

	away := errors.New("the API server is away")
	err := enforced.Check(t.Context(), tables, func(context.Context, string, string, string, string, string) (bool, error) { return false, away })
	require.ErrorIs(t, err, away, "that is no answer")
	assert.ErrorContains(t, err, "ask what janusd may do")
}
