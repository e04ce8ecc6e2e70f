package content

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/content"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

const stored = `{"data": {"a": "b"}}`

func storedChange(txn string) string {
	return `changes: [{target: {apiVersion: v1, kind: ConfigMap, name: target}, type: Create, contentFrom: {configMapKeyRef: {name: ` +
		api.ContentObject(txn, 0) + `, key: "0"}, digest: "` + content.Digest([]byte(stored)) + `"}}]`
}

func TestATransactionWhoseContentIsNeverStoredGoes(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	late := &harness.Clock{}
	late.Turn(11 * time.Minute)
	e.Start(harness.WithClock(late))
	e.Submit("abandoned", storedChange("abandoned"))
	e.Gone("abandoned")
	assert.Nil(t, e.Object("ConfigMap/target"))
}

func TestStoredContentIsReadWithoutARightOfTheServiceAccount(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: narrow}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: narrow}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [target], verbs: [get, patch, delete]}
- {apiGroups: [""], resources: [configmaps], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: narrow}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: narrow}
subjects: [{kind: ServiceAccount, name: narrow}]
`)
	e.Start()
	e.Submit("mine", "serviceAccountName: narrow\n"+storedChange("mine"))
	waiting := e.Await("mine", "waiting for its content", func(t *api.Transaction) bool {
		return strings.Contains(harness.Describe(t), errclass.ContentMissing)
	})
	assert.Contains(t, harness.Describe(waiting), "it has not been stored yet")
	put := func(name, uid, owner string) {
		e.Apply(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: ` + name + `
  labels: {` + api.ContentLabel + `: "` + uid + `"}
  ownerReferences: [{apiVersion: backup.janus.io/v1alpha1, kind: Transaction, name: ` + owner + `, uid: "` + uid + `"}]
immutable: true
data: {"0": '` + stored + `'}
`)
	}
	put("mine-content-0", string(waiting.UID), "mine")
	txn := e.Ended("mine")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, "b", e.Value("ConfigMap/target", "data", "a"))

	// It goes with the Transaction.
	e.Delete("mine", metav1.DeletePropagationBackground)
	e.Gone("mine")
	e.Until("what was stored is gone", func() bool { return e.Object("ConfigMap/mine-content-0") == nil })

	// What is stored for another Transaction is not its own, whatever it is called.
	e.Submit("theirs", "serviceAccountName: narrow\n"+storedChange("theirs"))
	e.Submit("other", "dryRun: true\nchanges: [{target: {apiVersion: v1, kind: ConfigMap, name: none}, type: Delete}]")
	waiting = e.Ended("other")
	put("theirs-content-0", string(waiting.UID), "other")
	txn = e.Ended("theirs")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, errclass.AccessDenied, txn.Status.Items[0].Reason, harness.Describe(txn))
}
