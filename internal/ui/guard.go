package ui

import (
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// Loopback reports whether a host, or host:port, is this machine to itself alone.
func Loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// OnLoopback refuses requests that do not name the loopback interface as their host: a page of
// another site, whose name has been made to lead here, is then no page of ours to a browser.
func OnLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Loopback(r.Host) {
			refuse(w, http.StatusForbidden, "this page is for this machine alone: ask for it as localhost")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Below serves a handler below /SECRET/ alone. Everybody who works on a machine reaches its
// loopback interface; anyone who has not been told the address gets nothing.
func Below(secret string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, _, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if !found || subtle.ConstantTimeCompare([]byte(first), []byte(secret)) != 1 {
			refuse(w, http.StatusNotFound, "open the whole address that was printed")
			return
		}
		http.StripPrefix("/"+secret, next).ServeHTTP(w, r)
	})
}

// Under serves a handler below a path, such as /ui. Anyone who asks for the path alone is sent
// there by a relative address, since a proxy may have us below a path of its own.
func Under(path string, next http.Handler) http.Handler {
	within := http.StripPrefix(path, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == path:
			w.Header().Set("Location", path[strings.LastIndex(path, "/")+1:]+"/")
			w.WriteHeader(http.StatusFound)
		case strings.HasPrefix(r.URL.Path, path+"/"):
			within.ServeHTTP(w, r)
		default:
			refuse(w, http.StatusNotFound, "there is no such thing")
		}
	})
}
