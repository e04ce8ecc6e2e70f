package input

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/fixture"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// All that etcd has stored is searched, every version, whether it is there still or not:
// the content of a Secret is in Secrets alone.
func TestInTheStoreTheContentOfASecretIsInSecretsAlone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	cluster := testcluster.Shared(t)
	secret := "canary-" + e.Namespace
	begun, err := cluster.StoreRevision(t.Context())
	require.NoError(t, err)
	e.Apply(`
apiVersion: v1
kind: Secret
metadata: {name: app}
stringData: {password: ` + secret + `, user: app}
---
apiVersion: v1
kind: Secret
metadata: {name: old}
stringData: {password: ` + secret + `}
`)
	e.Start(failingAt(2)(e)...)
	txn := e.Run("back", `
changes:
  - {target: {apiVersion: v1, kind: Secret, name: app}, type: Patch, content: {stringData: {user: new}}}
  - {target: {apiVersion: v1, kind: Secret, name: old}, type: Delete}
`+fixture.CreateLate)
	lateExists.In(e).Check(t, e, txn)
	e.NothingLeft("back")

	stored, err := cluster.StoredSince(t.Context(), begun)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, s := range stored {
		if !saysIn(string(s.Value), secret) {
			continue
		}
		key, inSecrets := strings.CutPrefix(s.Key, "/registry/secrets/"+e.Namespace+"/")
		assert.True(t, inSecrets, "%s has the content of a Secret at revision %d", s.Key, s.Revision)
		found[key] = true
	}
	assert.Equal(t, map[string]bool{"app": true, "old": true, "back-rollback": true}, found)
}

// What comes from a Secret is confidential, though it is set in an object of another kind: it
// is there, and where it came from, and nowhere else.
func TestInTheStoreContentFromASecretIsInItsTargetAndInSecretsAlone(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	cluster := testcluster.Shared(t)
	secret := "canary-" + e.Namespace
	begun, err := cluster.StoreRevision(t.Context())
	require.NoError(t, err)
	e.Apply(`
apiVersion: v1
kind: Secret
metadata: {name: source}
stringData: {patch: '{"data": {"color": "` + secret + `"}}'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {color: blue}
`)
	e.Start(failingAt(1)(e)...)
	const change = `
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: app}, type: Patch, contentFrom: {secretKeyRef: {name: source, key: patch}}}
`
	plan := e.Run("plan", "dryRun: true"+change)
	require.Equal(t, api.PhasePlanned, plan.Status.Phase, harness.Describe(plan))
	assert.Equal(t, []string{".data.color"}, fieldsOf(plan.Status.Items[0].Plan))
	txn := e.Run("back", change+fixture.CreateLate)
	lateExists.In(e).Check(t, e, txn)
	assert.Equal(t, "blue", e.Value("ConfigMap/app", "data", "color"))
	e.NothingLeft("back")

	stored, err := cluster.StoredSince(t.Context(), begun)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, s := range stored {
		if _, key, ours := strings.Cut(s.Key, "/"+e.Namespace+"/"); saysIn(string(s.Value), secret) {
			kind := strings.TrimSuffix(strings.TrimPrefix(s.Key, "/registry/"), "/"+e.Namespace+"/"+key)
			assert.True(t, ours, s.Key)
			found[kind+"/"+key] = true
		}
	}
	assert.Equal(t, map[string]bool{"secrets/source": true, "configmaps/app": true, "secrets/back-rollback": true}, found)
}

func fieldsOf(p *api.Plan) []string {
	var out []string
	for _, f := range p.Fields {
		out = append(out, f.Field)
	}
	return out
}

// saysIn reports whether a text has a value in it, as it is or in base64, wherever in
// what is encoded the value begins.
func saysIn(text, value string) bool {
	if strings.Contains(text, value) {
		return true
	}
	for before := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + value))
		if strings.Contains(text, encoded[4:len(encoded)-4]) { // Its ends depend on what is beside it.
			return true
		}
	}
	return false
}
