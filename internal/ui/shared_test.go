package ui

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Who looks at once after the start waits for the first list, but not for ever.
func TestTheFirstListIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewShared(nil, nil, nil, nil)
		require.NoError(t, err)
		began := time.Now()
		_, err = s.Transactions(t.Context())
		assert.True(t, apierrors.IsServiceUnavailable(err), "got %v", err)
		assert.Equal(t, firstListWithin, time.Since(began))

		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		_, err = s.Transactions(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		s.synced = nil // It has come.
		found, err := s.Transactions(t.Context())
		require.NoError(t, err)
		assert.Empty(t, found)
	})
}
