package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
)

// A registry that sends a byte now and then is not too slow for any request, and must not hold up all others.
func TestACheckTakesNoLongerThanItMay(t *testing.T) {
	c := &Controller{Options: Options{CheckTimeout: 10 * time.Millisecond}}
	c.check = func(ctx context.Context, _ *api.PackageTransaction) (*txn.Transaction, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err := c.checkedInTime(t.Context(), &api.PackageTransaction{})
	require.EqualError(t, err, "the change could not be checked within 10ms: context deadline exceeded; see whether its registries answer")

	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = c.checkedInTime(stopped, &api.PackageTransaction{})
	assert.Equal(t, context.Canceled, err, "janusd ends, and nothing is said of the check")

	c.check = func(context.Context, *api.PackageTransaction) (*txn.Transaction, error) {
		return nil, errors.New("no such image")
	}
	_, err = c.checkedInTime(t.Context(), &api.PackageTransaction{})
	require.EqualError(t, err, "no such image")
}
