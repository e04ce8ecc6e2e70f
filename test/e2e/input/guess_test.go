package input

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/content"
	"janus.io/janus/snapshot"
	"janus.io/janus/test/harness"
)

// A password of a Secret is not found by trying, although who tries knows all that is in a
// before-image but the password, and may read all but Secrets. There is no better guess than the
// right one: if not even that fits anything, none does.
func TestNoDigestTellsWhoGuessesThePasswordOfASecret(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	const password = "Summer2024!"
	e.Apply(`
apiVersion: v1
kind: Secret
metadata: {name: app}
stringData: {password: ` + password + `, patch: '{"data": {"color": "red"}}'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data: {color: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: old}
stringData: {password: ` + password + `}
`)
	e.Start()
	txn := e.Run("change", `
revisionHistoryLimit: 10
changes:
  - {target: {apiVersion: v1, kind: Secret, name: app}, type: Patch, content: {metadata: {labels: {seen: "yes"}}}}
  - {target: {apiVersion: v1, kind: Secret, name: old}, type: Delete}
  - {target: {apiVersion: v1, kind: ConfigMap, name: page}, type: Patch, content: {data: {more: "yes"}}}
`)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	from := e.Run("from", `
revisionHistoryLimit: 10
changes:
  - {target: {apiVersion: v1, kind: ConfigMap, name: page}, type: Patch, contentFrom: {secretKeyRef: {name: app, key: patch}}}
`)
	require.Equal(t, api.PhaseCommitted, from.Status.Phase, harness.Describe(from))
	undo := e.Run("undo", "{revisionHistoryLimit: 10, undoOf: {name: change}}")
	require.Equal(t, api.PhaseCommitted, undo.Status.Phase, harness.Describe(undo))

	public := readable(t, e)
	digests := regexp.MustCompile(`[0-9a-f]{64}`).FindAllString(public, -1)
	require.NotEmpty(t, digests)
	records := 0
	for _, txn := range []string{"change", "from", "undo"} {
		stored, err := e.Kube.CoreV1().Secrets(e.Namespace).Get(t.Context(), txn+"-rollback", metav1.GetOptions{})
		require.NoError(t, err)
		for key, data := range stored.Data {
			records++
			sum := sha256.Sum256(data)
			assert.Contains(t, digests, hex.EncodeToString(sum[:]), "the record %s of %s is checked against no digest", key, txn)
			record, err := snapshot.Decode(data)
			require.NoError(t, err)
			guess, err := snapshot.Encode(record)
			require.NoError(t, err)
			sum = sha256.Sum256(guess)
			assert.NotContains(t, digests, hex.EncodeToString(sum[:]), "%s of %s: it is enough to guess the content", key, txn)
			whole, err := json.Marshal(record.Before)
			require.NoError(t, err)
			sum = sha256.Sum256(whole)
			assert.NotContains(t, digests, hex.EncodeToString(sum[:]), "%s of %s", key, txn)
		}
	}
	assert.Equal(t, 5, records)
	for _, value := range []string{password, base64.StdEncoding.EncodeToString([]byte(password)), `{"data": {"color": "red"}}`} {
		assert.NotContains(t, public, strings.TrimPrefix(content.Digest([]byte(value)), "sha256:"), value)
	}
}

// readable is all of the namespace that can be read by one who may not read Secrets.
func readable(t *testing.T, e *harness.Env) string {
	t.Helper()
	ctx, all := t.Context(), metav1.ListOptions{}
	transactions, err := e.Dynamic.Resource(api.Resource).Namespace(e.Namespace).List(ctx, all)
	require.NoError(t, err)
	configMaps, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).List(ctx, all)
	require.NoError(t, err)
	revisions, err := e.Kube.AppsV1().ControllerRevisions(e.Namespace).List(ctx, all)
	require.NoError(t, err)
	require.Len(t, revisions.Items, 4, "those of three Transactions, and the counter")
	leases, err := e.Kube.CoordinationV1().Leases(e.Namespace).List(ctx, all)
	require.NoError(t, err)
	events, err := e.Kube.EventsV1().Events(e.Namespace).List(ctx, all)
	require.NoError(t, err)
	var out strings.Builder
	for _, list := range []any{transactions, configMaps, revisions, leases, events} {
		require.NoError(t, json.NewEncoder(&out).Encode(list))
	}
	return out.String()
}
