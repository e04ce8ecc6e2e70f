package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

const before = `
apiVersion: v1
kind: ConfigMap
metadata: {name: app-config}
data: {version: "1.0", other: kept}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-server}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "myapp:v1.0", env: [{name: A, value: a}]}]}
---
apiVersion: v1
kind: Secret
metadata: {name: old-api-key}
stringData: {key: canary-7f3a}
`

const deploy = `
lockTimeout: 5m
changes:
  - target: {apiVersion: v1, kind: ConfigMap, name: app-config}
    type: Patch
    content: {data: {version: "2.0"}}
  - target: {apiVersion: apps/v1, kind: Deployment, name: web-server}
    type: Patch
    content: {spec: {template: {spec: {containers: [{name: web, image: "myapp:v2.0"}]}}}}
  - target: {apiVersion: v1, kind: Secret, name: old-api-key}
    type: Delete
`

func TestATransactionCommits(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(before)
	e.Start()

	txn := e.Run("deploy-v2", deploy)

	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "2.0", e.Value("ConfigMap/app-config", "data", "version"))
	assert.Equal(t, "kept", e.Value("ConfigMap/app-config", "data", "other"))
	assert.Nil(t, e.Object("Secret/old-api-key"))
	e.NothingLeft("deploy-v2")
}

func TestATransactionWhoseLastChangeIsRefusedAtCommitIsRolledBack(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(before)
	e.ApplyQuota(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: one}, spec: {hard: {count/services: "1"}}}`)
	e.Start()
	config, deployment, secret := e.Object("ConfigMap/app-config"), e.Object("apps/v1 Deployment/web-server"), e.Object("Secret/old-api-key")

	txn := e.Run("deploy-v2", deploy+`
  - target: {apiVersion: v1, kind: Service, name: a}
    type: Create
    content: {spec: {ports: [{port: 80}]}}
  - target: {apiVersion: v1, kind: Service, name: b}
    type: Create
    content: {spec: {ports: [{port: 80}]}}
`)

	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	e.Same(config, "ConfigMap/app-config")
	e.Same(deployment, "apps/v1 Deployment/web-server")
	e.Same(secret, "Secret/old-api-key")
	assert.Nil(t, e.Object("Service/a"))
	e.NothingLeft("deploy-v2")
}
