package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
)

func TestAPlanBeginsWithHowManyOfWhat(t *testing.T) {
	txn := &api.Transaction{}
	txn.Namespace, txn.Spec.ServiceAccountName = "shop", "deployer"
	assert.Equal(t, "Plan: no changes (as shop/deployer)", planned(txn))
	effect := func(e api.PlanEffect) api.Item { return api.Item{Plan: &api.Plan{Effect: e}} }
	txn.Status.Items = []api.Item{
		effect(api.EffectCreate), effect(api.EffectChange), effect(api.EffectCreate), effect(api.EffectDelete), effect(api.EffectNone), effect(api.EffectDeferred),
		{Type: api.Await, Plan: &api.Plan{}}, {Reason: "Invalid"}, {},
	}
	assert.Equal(t, "Plan: 2 to create, 1 to change, 1 to delete, 1 unchanged, 1 not known yet, 1 to wait for, 1 refused, 1 not tried (as shop/deployer)", planned(txn))
	assert.Equal(t, "Refused", effectOf(&txn.Status.Items[7]))
}

func TestOnATerminalWhatGoesIsRedAndWhatComesIsGreen(t *testing.T) {
	var out bytes.Buffer
	p := &painter{out: &out}
	for _, piece := range []string{"0", "   ", "Delete", "  ConfigMap\n0 ConfigMap shop/a\n"} {
		_, err := p.Write([]byte(piece)) // as a table is written
		require.NoError(t, err)
	}
	write(p, "  - %s\n", ".data.x: 1")
	write(p, "  + %s\n", ".data.x: 2")
	assert.Equal(t, "\x1b[31m0   Delete  ConfigMap\x1b[0m\n0 ConfigMap shop/a\n\x1b[31m  - .data.x: 1\x1b[0m\n\x1b[32m  + .data.x: 2\x1b[0m\n", out.String())
	assert.Same(t, &out, painted(&out), "it is no terminal")
}
