package concurrency

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// impatient runs a janusd that does not wait long between attempts.
func impatient(t *testing.T, e *harness.Env) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, e.JanusdKubeconfig(t.Context(), config))
	run := exec.CommandContext(t.Context(), harness.BuildJanusd(t), "--kubeconfig="+config, "--watch-namespaces="+e.Namespace,
		"--metrics-bind-address=0", "--health-probe-bind-address=0", "--retry-max-delay=100ms")
	janusd := harness.RunProgram(t, run)
	t.Cleanup(func() {
		janusd.Signal(syscall.SIGKILL)
		<-janusd.Ended()
	})
}

// succeeded is what a Transaction says of its end.
func succeeded(txn *api.Transaction) *metav1.Condition {
	return meta.FindStatusCondition(txn.Status.Conditions, api.ConditionSucceeded)
}

// A webhook that never answers about one object does not keep a Transaction until its time is over, which
// may be a week. One that answers again in time does it no harm.
func TestAWebhookThatNeverAnswersEndsATransaction(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	lift := neverAnswers(t, e, 1)
	impatient(t, e)
	changes := `
timeout: 168h
changes:
- {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: fine}, content: {}}
- {type: Create, target: {apiVersion: v1, kind: ConfigMap, name: hangs-%d}, content: {}}
`
	e.Submit("never", fmt.Sprintf(changes, 1))
	for _, attempts := range []int32{5, 10, 15} {
		e.Await("never", "has timed out several times", func(txn *api.Transaction) bool {
			return txn.Status.TimedOut != nil && txn.Status.TimedOut.Attempts >= attempts
		})
	}
	txn := e.Ended("never")
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase)
	said := succeeded(txn)
	assert.Equal(t, errclass.RetryLimitExceeded, said.Reason)
	assert.Regexp(t, `^ConfigMap \S+/hangs-1: 20 attempts in a row have timed out, while the API server answered other requests \(.*failed calling webhook "hangs.example.com".*\); mend the webhook, .*or allow more by spec.retryLimit$`, said.Message)
	assert.Equal(t, &api.TimedOut{Object: "ConfigMap " + e.Namespace + "/hangs-1", Attempts: api.TimeoutLimit}, txn.Status.TimedOut)
	e.NothingLeft("never")

	e.Submit("later", fmt.Sprintf(changes, 2))
	e.Await("later", "has timed out several times", func(txn *api.Transaction) bool {
		return txn.Status.TimedOut != nil && txn.Status.TimedOut.Attempts > 3
	})
	lift()
	txn = e.Ended("later")
	assert.Equal(t, api.PhaseCommitted, txn.Status.Phase)
	assert.Nil(t, txn.Status.TimedOut, "it has succeeded since")
}

// crowded is a ConfigMap with a key for each of many managers.
func crowded(t *testing.T, e *harness.Env, name string, managers int) {
	t.Helper()
	data := map[string]string{}
	var entries []metav1.ManagedFieldsEntry
	now := metav1.Now()
	for n := range managers {
		key := fmt.Sprintf("k%d", n)
		data[key] = strings.Repeat("v", 10)
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: "manager-" + key, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", Time: &now,
			FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:` + key + `":{}}}`),
		})
	}
	maps := e.Kube.CoreV1().ConfigMaps(e.Namespace)
	created, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	require.NoError(t, err)
	created.ManagedFields = entries
	_, err = maps.Update(t.Context(), created, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// An apply to an object with very many managers takes the API server long. What it answers then, or does
// not answer, is known as a time-out of that object.
func TestAnObjectOfManyManagersTimesOut(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	crowded(t, e, "crowded", 1000)
	config := testcluster.Shared(t).Config()
	config.Timeout = 500 * time.Millisecond
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().ConfigMaps(e.Namespace).Patch(t.Context(), "crowded", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"crowded"},"data":{"x":"y"}}`), metav1.PatchOptions{FieldManager: "me"})
	t.Log(err)
	assert.Equal(t, "ConfigMap crowded", errclass.Unanswered(errclass.Wrap(err, "patch", "ConfigMap crowded", false)))
}
