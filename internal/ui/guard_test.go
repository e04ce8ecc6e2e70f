package ui

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
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
