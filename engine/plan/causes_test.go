package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

func TestTheCauseOfAnItemNamesItsTarget(t *testing.T) {
	txn := &api.Transaction{Status: api.TransactionStatus{Items: []api.Item{{Name: "config", Target: api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "beta"}}}}}
	of := func(what string) error {
		return errclass.New(errclass.Terminal, errclass.AccessDenied, "read", what, "the API server said no")
	}

	cause := ItemCauseOf(txn, 0, "find out what became of", of("ConfigMap beta"))
	assert.Equal(t, "read ConfigMap beta: the API server said no", cause.Message)

	cause = ItemCauseOf(txn, 0, "find out what became of", of("ConfigMap txn-0-rollback"))
	assert.Equal(t, "find out what became of ConfigMap shop/beta: read ConfigMap txn-0-rollback: the API server said no", cause.Message)
	assert.Equal(t, errclass.AccessDenied, cause.Reason)
	assert.Equal(t, "config", cause.Item)
}
