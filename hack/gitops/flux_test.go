package gitops

import (
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// check is an entry of healthCheckExprs.
type check struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	InProgress string `json:"inProgress"`
	Failed     string `json:"failed"`
	Current    string `json:"current"`
}

func TestFluxTellsWhereATransactionIs(t *testing.T) {
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []check `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	read(t, root+"/deploy/gitops/flux/kustomization.yaml", &kustomization)
	require.Len(t, kustomization.Spec.HealthCheckExprs, 1)
	c := kustomization.Spec.HealthCheckExprs[0]

	got := map[string]string{}
	for name, txn := range transactions(t) {
		require.Equal(t, txn.GetAPIVersion(), c.APIVersion)
		require.Equal(t, txn.GetKind(), c.Kind)
		got[name] = c.status(t, txn)
	}
	assert.Equal(t, map[string]string{
		"new": "InProgress", "Pending-suspended": "InProgress", "Preparing": "InProgress",
		"Committing": "InProgress", "Committing-suspended": "InProgress", "RollingBack": "InProgress",
		"Committed": "Current", "Planned": "Current",
		"RolledBack": "Failed", "Failed": "Failed", "Failed-stopped": "Failed",
	}, got)
}

// status follows the rules of Flux: while the controller has not seen the spec it is in
// progress, and then the first expression decides that is true. One that fails because a
// field is missing would have Flux wait until its timeout, so none may fail.
func (c check) status(t *testing.T, txn *unstructured.Unstructured) string {
	t.Helper()
	observed, found, err := unstructured.NestedInt64(txn.Object, "status", "observedGeneration")
	require.NoError(t, err)
	if found && observed != txn.GetGeneration() {
		return "InProgress"
	}
	for _, e := range []struct{ status, expression string }{
		{"InProgress", c.InProgress}, {"Failed", c.Failed}, {"Current", c.Current},
	} {
		if holds(t, e.expression, txn) {
			return e.status
		}
	}
	return "InProgress"
}

func holds(t *testing.T, expression string, txn *unstructured.Unstructured) bool {
	t.Helper()
	var options []cel.EnvOption
	for field := range txn.Object {
		options = append(options, cel.Variable(field, cel.DynType))
	}
	env, err := cel.NewEnv(options...)
	require.NoError(t, err)
	ast, issues := env.Compile(expression)
	require.NoError(t, issues.Err())
	program, err := env.Program(ast)
	require.NoError(t, err)
	value, _, err := program.ContextEval(t.Context(), txn.Object)
	require.NoError(t, err, "%s", expression)
	return value.Value() == true
}
