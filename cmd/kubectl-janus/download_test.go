package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
)

// downloads reads the manifests at addresses, without a cluster.
func downloads(ctx context.Context, addresses ...string) ([]manifest, error) {
	s := newSession(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: io.Discard, ErrOut: io.Discard})
	return sources{FilenameOptions: resource.FilenameOptions{Filenames: addresses}}.read(ctx, s, "shop")
}

func TestManifestsAreDownloaded(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, c := range map[string]struct {
		// codes are those of the answers; the last of them goes on.
		codes    []int
		text     string
		requests int64
		err      string
	}{
		"at once":                    {codes: []int{200}, text: object, requests: 1},
		"after a server in trouble":  {codes: []int{503, 200}, text: object, requests: 2},
		"not from one that stays so": {codes: []int{500}, requests: 3, err: "/all.yaml: the server answered 500 Internal Server Error"},
		"not what is not there":      {codes: []int{404}, requests: 1, err: "/all.yaml: the server answered 404 Not Found"},
		"not what would lose a part": {codes: []int{200}, text: object + "...\n" + object, requests: 1, err: "/all.yaml goes on after the end of an object, ConfigMap a"},
		"not what has a key twice":   {codes: []int{200}, text: object + "data: {a: b, a: c}\n", requests: 1, err: "/all.yaml has a key twice"},
		"not what is no manifest":    {codes: []int{200}, text: "<html>", requests: 1, err: "/all.yaml"},
		"not what has nothing in it": {codes: []int{200}, requests: 1, err: "there are no objects in http"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				n := int(requests.Add(1))
				w.WriteHeader(c.codes[min(n, len(c.codes))-1])
				_, _ = fmt.Fprint(w, c.text)
			}))
			defer server.Close()
			found, err := downloads(t.Context(), server.URL+"/all.yaml")
			assert.Equal(t, c.requests, requests.Load())
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Len(t, found, 1)
			assert.Equal(t, "ConfigMap shop/a in "+server.URL+"/all.yaml", found[0].describe("shop"))
		})
	}
}

// Who interrupts a download need not wait for it.
func TestADownloadIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	_, err := downloads(ctx, server.URL)
	require.ErrorIs(t, err, context.Canceled)
}

// A password in an address is nobody else's business.
func TestAFailedDownloadDoesNotTellThePassword(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := downloads(t.Context(), strings.Replace(server.URL, "http://", "http://me:hush@", 1))
	require.ErrorContains(t, err, "me:xxxxx@")
}
