package content

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/content"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// packed is a text compressed by gzip, in base64 as in the manifest of a Secret.
func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// remove deletes an object of the core group.
func remove(t *testing.T, e *harness.Env, resource, name string) {
	t.Helper()
	client := e.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(e.Namespace)
	require.NoError(t, client.Delete(t.Context(), name, metav1.DeleteOptions{}))
}

const app = "apiVersion: v1\nkind: ConfigMap\ndata: {color: blue, size: \"3\"}\n"

func TestContentIsTakenFromKeysAndIsTreatedAsIfItWereInTheTransaction(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: source}
data:
  plain.yaml: |
    data: {color: blue, size: "3"}
  same.json: '{"data": {"color": "red"}}'
binaryData:
  packed.gz: ` + packed(t, app) + `
---
apiVersion: v1
kind: Secret
metadata: {name: source}
data:
  packed: ` + packed(t, "stringData: {password: hidden-one}\n") + `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: there}
data: {color: grey, kept: "yes"}
---
apiVersion: v1
kind: Secret
metadata: {name: hidden}
stringData: {password: hidden-two}
`)
	e.Start()
	txn := e.Run("release", `
revisionHistoryLimit: 5
changes:
  - {name: made, target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Create, contentFrom: {configMapKeyRef: {name: source, key: plain.yaml}}}
  - {name: packed, target: {apiVersion: v1, kind: ConfigMap, name: packed}, type: Create, contentFrom: {configMapKeyRef: {name: source, key: packed.gz}}}
  - name: set
    target: {apiVersion: v1, kind: ConfigMap, name: there}
    type: Patch
    contentFrom: {configMapKeyRef: {name: source, key: same.json}, digest: "`+content.Digest([]byte(`{"data": {"color": "red"}}`))+`"}
  - {name: hidden, target: {apiVersion: v1, kind: Secret, name: hidden}, type: Patch, contentFrom: {secretKeyRef: {name: source, key: packed}}}
`)
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	for _, ref := range []string{"ConfigMap/made", "ConfigMap/packed"} {
		assert.Equal(t, "blue", e.Value(ref, "data", "color"))
		assert.Equal(t, "3", e.Value(ref, "data", "size"))
	}
	assert.Equal(t, "red", e.Value("ConfigMap/there", "data", "color"))
	assert.Equal(t, base64.StdEncoding.EncodeToString([]byte("hidden-one")), e.Value("Secret/hidden", "data", "password"))
	for i, confidential := range []bool{false, false, false, true} {
		item := txn.Status.Items[i]
		assert.Equal(t, confidential, item.Confidential, item.Name)
		assert.Equal(t, confidential, strings.HasPrefix(item.ContentDigest, "hmac-sha256:"), item.ContentDigest)
	}
	e.ClearedUp("release")

	// An undo does not need the sources.
	remove(t, e, "configmaps", "source")
	remove(t, e, "secrets", "source")
	txn = e.Run("undo", "undoOf: {name: release}")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Nil(t, e.Object("ConfigMap/made"))
	assert.Equal(t, "grey", e.Value("ConfigMap/there", "data", "color"))
	assert.Equal(t, base64.StdEncoding.EncodeToString([]byte("hidden-two")), e.Value("Secret/hidden", "data", "password"))
	assert.True(t, txn.Status.Items[0].Confidential, "what it undoes came from a Secret: %s", harness.Describe(txn))
}

func TestContentThatCannotBeReadIsRefusedWithTheWayOut(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: source}
data: {text: hunter2, two: "kind: A\n---\nkind: B\n", good: "data: {a: b}"}
binaryData: {cut: ` + packed(t, app)[:40] + `}
---
apiVersion: v1
kind: Secret
metadata: {name: source}
stringData: {text: hunter2}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: blind}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: blind}
rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [target], verbs: ["*"]}, {apiGroups: [""], resources: [configmaps], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: blind}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: blind}
subjects: [{kind: ServiceAccount, name: blind}]
`)
	e.Start()
	for name, row := range map[string]struct {
		from, account, reason string
		says                  []string
	}{
		"text":    {from: "configMapKeyRef: {name: source, key: text}", reason: errclass.Invalid, says: []string{"key text of ConfigMap $NS/source", "neither the JSON nor the YAML"}},
		"secret":  {from: "secretKeyRef: {name: source, key: text}", reason: errclass.Invalid, says: []string{"key text of Secret $NS/source"}},
		"several": {from: "configMapKeyRef: {name: source, key: two}", reason: errclass.Invalid, says: []string{"several objects"}},
		"cut":     {from: "configMapKeyRef: {name: source, key: cut}", reason: errclass.Invalid, says: []string{"truncated"}},
		"other": {
			from: "configMapKeyRef: {name: source, key: good}, digest: \"sha256:" + strings.Repeat("0", 64) + "\"", reason: errclass.ContentChanged,
			says: []string{"does not have the digest", "create the Transaction again"},
		},
		"denied": {
			from: "configMapKeyRef: {name: source, key: good}", account: "blind", reason: errclass.AccessDenied,
			says: []string{"may not get ConfigMap $NS/source", "grant it get on configmaps source"},
		},
	} {
		account := ""
		if row.account != "" {
			account = "serviceAccountName: " + row.account + "\n"
		}
		txn := e.Run(name, account+`changes: [{target: {apiVersion: v1, kind: ConfigMap, name: target}, type: Create, contentFrom: {`+row.from+`}}]`)
		assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
		described := fmt.Sprint(txn.Status.Items[0].Reason, ": ", txn.Status.Items[0].Message)
		assert.Equal(t, row.reason, txn.Status.Items[0].Reason, described)
		for _, part := range row.says {
			assert.Contains(t, described, strings.ReplaceAll(part, "$NS", e.Namespace), name)
		}
		assert.NotContains(t, harness.Describe(txn), "hunter2", name)
		assert.Nil(t, e.Object("ConfigMap/target"), name)
		e.NothingLeft(name)
	}
	for name, spec := range map[string]string{
		"both":    "content: {data: {a: b}}, contentFrom: {configMapKeyRef: {name: a, key: b}}",
		"neither": "contentFrom: {}",
		"two":     "contentFrom: {configMapKeyRef: {name: a, key: b}, secretKeyRef: {name: a, key: b}}",
		"hex":     "contentFrom: {configMapKeyRef: {name: a, key: b}, digest: \"sha256:1\"}",
	} {
		require.Error(t, e.TrySubmit("refused", `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: target}, type: Create, `+spec+`}]`), name)
	}
	require.Error(t, e.TrySubmit("refused", `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Delete, contentFrom: {configMapKeyRef: {name: a, key: b}}}]`))
}

func TestASourceThatIsMissingIsWaitedFor(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.Submit("early", `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: target}, type: Create, contentFrom: {configMapKeyRef: {name: source, key: good}}}]`)
	waiting := e.Await("early", "waiting for its content", func(t *api.Transaction) bool {
		return strings.Contains(harness.Describe(t), errclass.ContentMissing)
	})
	assert.Equal(t, api.PhasePending, waiting.Status.Phase)
	assert.Contains(t, harness.Describe(waiting), "key good of ConfigMap "+e.Namespace+"/source is missing: it does not exist; create it")
	e.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: source}\ndata: {other: x}\n")
	e.Await("early", "waiting for the key", func(t *api.Transaction) bool {
		return strings.Contains(harness.Describe(t), "it has no such key")
	})
	e.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: source}\ndata: {good: \"data: {a: b}\"}\n")
	txn := e.Ended("early")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "b", e.Value("ConfigMap/target", "data", "a"))
	assert.Zero(t, txn.Status.Failures, "a wait is no failed attempt")
}
