package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// An API server remembers nothing from before it has started, so the version of an object that was written
// then is none to watch from.
func TestAWatchOfOneBeginsWithTheVersionOfAList(t *testing.T) {
	const path = "/apis/backup.janus.io/v1alpha1/namespaces/shop/transactions"
	const old = `{"apiVersion":"backup.janus.io/v1alpha1","kind":"Transaction","metadata":{"namespace":"shop","name":"old","uid":"u","resourceVersion":"5"},"status":{"phase":"Committed"}}`
	var asked []string
	api := http.NewServeMux()
	answer := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintln(w, text)
	}
	api.HandleFunc("GET "+path+"/old", func(w http.ResponseWriter, _ *http.Request) { answer(w, old) })
	api.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, "watch="+r.FormValue("watch")+" from "+r.FormValue("resourceVersion")+" "+r.FormValue("fieldSelector"))
		if r.FormValue("watch") == "" {
			answer(w, `{"apiVersion":"backup.janus.io/v1alpha1","kind":"TransactionList","metadata":{"resourceVersion":"900"},"items":[`+old+`]}`)
			return
		}
		answer(w, `{"type":"MODIFIED","object":`+old+`}`)
		answer(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}}`)
	})
	server := httptest.NewServer(api)
	defer server.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, told bytes.Buffer
	code := start(t.Context(), []string{"get", "old", "-w", "-o", "name", "-n", "shop", "--server", server.URL}, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &told})
	assert.Equal(t, exitOther, code)
	assert.Equal(t, []string{"watch= from  metadata.name=old", "watch=true from 900 metadata.name=old"}, asked)
	assert.Equal(t, "transaction.backup.janus.io/old\ntransaction.backup.janus.io/old\n", out.String())
	assert.Equal(t, "error: watch Transactions: too old\n", told.String())
}
