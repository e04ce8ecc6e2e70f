package input

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/harness"
)

// denials is a webhook that denies some operations on ConfigMaps, once they are no dry runs, with the answer
// for what is in use.
type denials struct {
	mu    sync.Mutex
	asked map[string]int // by operation and name
}

func (d *denials) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	deed := string(review.Request.Operation) + " " + review.Request.Name
	if deed == "UPDATE used" || deed == "DELETE kept" {
		d.mu.Lock()
		d.asked[deed]++
		d.mu.Unlock()
		answer.Allowed = false
		answer.Result = &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "it is in use"}
	}
	review.Request, review.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

func (d *denials) times(deed string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[deed]
}

func denying(t *testing.T, e *harness.Env) *denials {
	t.Helper()
	d := &denials{asked: map[string]int{}}
	server := httptest.NewTLSServer(d)
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	name := "denies-" + e.Namespace
	e.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: denies.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: %[3]q, caBundle: %[4]s}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [UPDATE, DELETE]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}
  matchConditions: [{name: done, expression: "!request.dryRun"}]
`, name, e.Namespace, server.URL, base64.StdEncoding.EncodeToString(authority)))
	t.Cleanup(func() {
		_ = e.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	})
	probe := []byte(`{"data":{"v":"0"}}`)
	e.Until("the webhook is asked", func() bool {
		_, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).Patch(t.Context(), "used", types.MergePatchType, probe, metav1.PatchOptions{})
		return err != nil
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.asked)
	return d
}

// What a webhook denies is denied, whatever code it answers with: 409 is no sign that the object is another
// by now, and nothing is gained by trying it again while all locks are held.
func TestAWebhookThatDeniesWithAConflictIsObeyed(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: used}, data: {v: "1"}}`)
	d := denying(t, e)
	e.Start()
	txn := e.Run("forward", `
changes:
- {name: made, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: made}, content: {}}
- {name: used, type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: used}, content: {data: {v: "2"}}}
`)
	assert.Equal(t, api.PhaseRolledBack, txn.Status.Phase, harness.Describe(txn))
	assert.Equal(t, 1, d.times("UPDATE used"))
	said := meta.FindStatusCondition(txn.Status.Conditions, api.ConditionSucceeded)
	assert.Equal(t, errclass.Rejected, said.Reason)
	assert.Contains(t, said.Message, `admission webhook "denies.example.com" denied the request: it is in use`)

	txn = e.Run("back", `
changes:
- {name: kept, type: Create, target: {apiVersion: v1, kind: ConfigMap, name: kept}, content: {}}
- {name: used, type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: used}, content: {data: {v: "2"}}}
`)
	assert.Equal(t, api.PhaseFailed, txn.Status.Phase, harness.Describe(txn))
	assert.Contains(t, txn.Status.Items[0].Message, `admission webhook "denies.example.com" denied the request`)
	assert.Equal(t, 1, d.times("DELETE kept"))
}
