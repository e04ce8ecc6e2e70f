package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHostsOfOthersAreRefused(t *testing.T) {
	fine := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:80": 200, "127.0.0.1:4000": 200, "127.8.9.1": 200, "[::1]:80": 200, "[::1]": 200,
		"evil.example": 403, "evil.example:80": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example:80": 403,
		"10.0.0.1": 403, "0.0.0.0:80": 403, "[::]:80": 403, "": 403, ":80": 403, "127.1": 403,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		OnLoopback(fine).ServeHTTP(w, r)
		assert.Equal(t, want, w.Code, "host %q", host)
	}
}

func TestOnlyWhoKnowsTheSecretIsServed(t *testing.T) {
	var seen string
	h := Below("secret", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.URL.Path }))
	for path, want := range map[string]string{
		"/secret/": "/", "/secret/api/x": "/api/x", "/secret/secret/": "/secret/",
		"/": "", "/secret": "", "/Secret/": "", "/secre/": "", "/secrets/": "", "//secret/": "", "/api/x": "", "/x/../secret/": "",
	} {
		seen = ""
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		assert.Equal(t, want, seen, path)
		assert.Equal(t, want == "", w.Code == http.StatusNotFound, path)
	}
}

func TestAPageUnderAPathWorksUnderAnyOther(t *testing.T) {
	h := Under("/ui", serve(t, &given{}))
	for path, want := range map[string]int{
		"/ui": 302, "/ui/": 200, "/ui/page.js": 200, "/ui/api/transactions": 200,
		"/": 404, "/uix": 404, "/page.js": 404, "/api/transactions": 404,
	} {
		assert.Equal(t, want, get(h, "GET", path).Code, path)
	}
	to, err := url.Parse("https://tools.example.com/janus/ui")
	require.NoError(t, err)
	to, err = to.Parse(get(h, "GET", "/ui").Header().Get("Location"))
	require.NoError(t, err)
	assert.Equal(t, "https://tools.example.com/janus/ui/", to.String(), "what a proxy has put in front stays there")
	for _, path := range append(files(t), "/") {
		assert.NotRegexp(t, `(href|src)="/|(fetch|EventSource)\("/`, get(h, "GET", "/ui"+path).Body.String(), path)
	}
	assert.Equal(t, "same-origin", get(h, "GET", "/ui/api/transactions").Header().Get("Cross-Origin-Resource-Policy"))
}
