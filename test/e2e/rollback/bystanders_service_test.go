package rollback

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

const (
	external = `
changes:
  - type: Create
    target: {apiVersion: v1, kind: Service, name: database}
    content: {spec: {ports: [{port: 5432}]}}
`
	endpoints = `
apiVersion: v1
kind: Endpoints
metadata: {name: database}
subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 5432}]}]
`
)

// The control plane deletes the Endpoints of a Service with it, no matter who has made them.
func TestARollbackOfAServiceKeepsEndpointsThatWereThereBefore(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(endpoints)
	before := e.Object("Endpoints/database")
	e.NextSecond()
	e.Start()
	e.Submit("service", external+strings.TrimPrefix(gate, "\n"))
	txn := cancelAtGate(e, "service")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.NotEmpty, txn.Status.Items[0].Reason)
	assert.Contains(t, txn.Status.Items[0].Message, "Endpoints "+e.Namespace+"/database")
	now := e.Object("Endpoints/database")
	require.NotNil(t, now)
	assert.Equal(t, before.GetUID(), now.GetUID())

	planned := e.Run("plan", "dryRun: true\nchanges:\n  - {type: Delete, target: {apiVersion: v1, kind: Service, name: database}}\n")
	require.Equal(t, api.PhasePlanned, planned.Status.Phase, harness.Describe(planned))
	assert.Contains(t, strings.Join(planned.Status.Items[0].Warnings, " "), "Endpoints "+e.Namespace+"/database")
}

// Those that the control plane has made go with it.
func TestARollbackOfAServiceWithASelectorIsExact(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Submit("service", strings.Replace(external, "spec: {", "spec: {selector: {app: x}, ", 1)+strings.TrimPrefix(gate, "\n"))
	txn := cancelAtGate(e, "service")
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Nil(t, e.Object("Service/database"))
	e.NothingLeft("service")
}
