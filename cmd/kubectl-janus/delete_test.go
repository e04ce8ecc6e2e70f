package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// An API server that is replaced by another does not answer for a while.
func TestADeletionIsWaitedForThroughTroubles(t *testing.T) {
	const path = "/apis/backup.janus.io/v1alpha1/namespaces/shop/transactions/one"
	read := 0
	api := http.NewServeMux()
	answer := func(w http.ResponseWriter, code int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}
	api.HandleFunc("DELETE "+path, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	})
	api.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		switch read++; read {
		case 1:
			answer(w, http.StatusOK, `{"apiVersion":"backup.janus.io/v1alpha1","kind":"Transaction","metadata":{"namespace":"shop","name":"one","uid":"u"},"status":{"phase":"Committed"}}`)
		case 2, 3:
			answer(w, http.StatusServiceUnavailable, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503,"message":"not now"}`)
		default:
			answer(w, http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"name":"one"}}`)
		}
	})
	server := httptest.NewServer(api)
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, told bytes.Buffer
	code := start(t.Context(), []string{"delete", "one", "--wait", "-n", "shop", "--server", server.URL}, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &told})
	assert.Equal(t, exitOK, code, told.String())
	assert.Equal(t, "transaction.backup.janus.io/one deleted\n", out.String())
	assert.Contains(t, told.String(), "Transaction shop/one cannot be read for now, which is tried again: not now\n")
	assert.Equal(t, 4, read)
}
