package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
)

func TestCheckNamesAServiceAccountThatDoesNotExist(t *testing.T) {
	e := harness.New(t)
	out, err := runs(t, e, nil, "check", "--service-account", "deployer")
	assert.Contains(t, out, "ok    ServiceAccount "+e.Namespace+"/deployer exists\n", "%v", err)
	assert.Contains(t, out, "ok    the cluster serves backup.janus.io/v1alpha1\nok    the cluster serves backup.janus.io/v1beta1\n")
	assert.Contains(t, out, "transaction-approvals.backup.janus.io")

	out, err = runs(t, e, nil, "check", "--service-account", "nosuch")
	require.Error(t, err)
	assert.Contains(t, out, "FAIL  ServiceAccount "+e.Namespace+"/nosuch does not exist: create it, with the rights that its Transactions need\n")
}
