package bundle

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/internal/registries"
)

// impatience is the patience of these tests.
var impatience = registries.Patience{Pull: time.Minute, Stall: time.Minute, Pause: time.Second, First: time.Millisecond, Attempts: 3}

// asks is one request to a faulty registry: the n-th for what is faulty.
type asks struct {
	http.ResponseWriter
	*http.Request
	n    int
	real http.Handler
}

// serve lets the registry answer.
func (a asks) serve() { a.real.ServeHTTP(a.ResponseWriter, a.Request) }

// hang is silent until the client has gone.
func (a asks) hang() {
	_ = http.NewResponseController(a.ResponseWriter).Flush()
	<-a.Context().Done()
}

// faulty is a registry with the artifact v1, which answers otherwise to requests with part in
// their path. It counts those.
func faulty(t *testing.T, part string, answer func(asks)) (host string, asked *atomic.Int32) {
	t.Helper()
	var on atomic.Bool
	asked = &atomic.Int32{}
	host = served(t, func(real http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !on.Load() || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, part) {
				real.ServeHTTP(w, r)
				return
			}
			answer(asks{w, r, int(asked.Add(1)), real})
		})
	})
	push(t, host, "v1", blob{"one.yaml", []byte("kind: A\n")})
	on.Store(true)
	return host, asked
}

// logIn stores a user and a password for a registry.
func logIn(t *testing.T, host string) {
	t.Helper()
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	require.NoError(t, os.WriteFile(filepath.Join(config, "config.json"),
		[]byte(`{"auths": {"`+host+`": {"auth": "bWU6aHVudGVyMg=="}}}`), 0o600))
}

// status answers with a status, and with what header is given.
func status(code int, header ...string) func(asks) {
	return func(a asks) {
		for i := 0; i < len(header); i += 2 {
			a.Header().Set(header[i], header[i+1])
		}
		a.WriteHeader(code)
	}
}

// Header is that of the answer.
func (a asks) Header() http.Header { return a.ResponseWriter.Header() }

// closed ends the connection in place of an answer.
func closed(a asks, reset bool) {
	connection, _, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := connection.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}

// twice answers so twice, and then as it should.
func twice(answer func(asks)) func(asks) {
	return func(a asks) {
		if a.n <= 2 {
			answer(a)
			return
		}
		a.serve()
	}
}

func TestARegistryThatRecoversIsAskedAgain(t *testing.T) {
	for name, answer := range map[string]func(asks){
		"too many requests":           status(http.StatusTooManyRequests),
		"unavailable":                 status(http.StatusServiceUnavailable),
		"a broken gateway":            status(http.StatusBadGateway),
		"a connection that is closed": func(a asks) { closed(a, false) },
		"a connection that is reset":  func(a asks) { closed(a, true) },
	} {
		for _, part := range []string{"/manifests/", "/blobs/"} {
			t.Run(name+" to"+part, func(t *testing.T) {
				host, asked := faulty(t, part, twice(answer))
				got, err := pullWith(t.Context(), Scheme+host+"/shop/app:v1", impatience)
				require.NoError(t, err)
				assert.Equal(t, []File{{"one.yaml", []byte("kind: A\n")}}, got.Files)
				assert.EqualValues(t, 3, asked.Load())
			})
		}
	}
}

func TestARegistryIsGivenTheTimeThatItAsksFor(t *testing.T) {
	var first, second time.Time
	host, _ := faulty(t, "/manifests/", func(a asks) {
		if a.n == 1 {
			first = time.Now()
			status(http.StatusTooManyRequests, "Retry-After", "1")(a)
			return
		}
		second = time.Now()
		a.serve()
	})
	_, err := pullWith(t.Context(), Scheme+host+"/shop/app:v1", impatience)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, second.Sub(first), time.Second)
}

func TestARegistryThatCannotAnswerIsToldOf(t *testing.T) {
	cut := func(a asks) {
		connection, _, err := http.NewResponseController(a.ResponseWriter).Hijack()
		if err == nil {
			_, _ = connection.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nkind"))
			_ = connection.Close()
		}
	}
	body := func(text string) func(asks) {
		return func(a asks) {
			_ = http.NewResponseController(a.ResponseWriter).Flush() // Its length is not told.
			_, _ = io.WriteString(a.ResponseWriter, text)
		}
	}
	for name, c := range map[string]struct {
		part   string
		answer func(asks)
		says   string // HOST is the registry
		asked  int
	}{
		"429":             {"/", status(429), "HOST answers 429 Too Many Requests, 3 times in a row: try again later", 3},
		"429, and long":   {"/", status(429, "Retry-After", "3600"), "HOST answers 429 Too Many Requests: try again in 1h0m0s", 1},
		"503":             {"/blobs/", status(503), "HOST answers 503 Service Unavailable, 3 times in a row: try again later", 3},
		"503, and long":   {"/blobs/", status(503, "Retry-After", "90"), "HOST answers 503 Service Unavailable: try again in 1m30s", 1},
		"501":             {"/", status(501), "HOST answers 501 Not Implemented", 1},
		"401":             {"/", status(401), "HOST answers 401 Unauthorized: log in as a user who may read it, such as by docker login HOST", 1},
		"403":             {"/blobs/", status(403), "HOST answers 403 Forbidden: log in as a user who may read it", 1},
		"404":             {"/manifests/", status(404), "HOST has no artifact shop/app v1", 1},
		"404 of a layer":  {"/blobs/", status(404), "HOST has no layer sha256:", 1},
		"another layer":   {"/blobs/", body("kind: B\n"), "is not what its digest says", 1},
		"a longer layer":  {"/blobs/", body("kind: A\n\n"), "is not what its digest says", 1},
		"a shorter layer": {"/blobs/", body("kind"), "is truncated: try again", 1},
		"a cut layer":     {"/blobs/", cut, "is truncated: try again", 1},
		"another length":  {"/blobs/", func(a asks) { _, _ = io.WriteString(a.ResponseWriter, "kind: A") }, "mismatch Content-Length", 1},
		"no manifest": {"/manifests/", func(a asks) {
			a.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
			_, _ = io.WriteString(a.ResponseWriter, "<html>")
		}, "read its manifest: invalid character", 1},
	} {
		t.Run(name, func(t *testing.T) {
			host, asked := faulty(t, c.part, c.answer)
			_, err := pullWith(t.Context(), Scheme+host+"/shop/app:v1", impatience)
			require.ErrorContains(t, err, strings.ReplaceAll(c.says, "HOST", host))
			require.ErrorContains(t, err, "read oci://"+host+"/shop/app:v1: ")
			assert.EqualValues(t, c.asked, asked.Load())
		})
	}
}

func TestARegistryThatIsSlowIsGivenUpByName(t *testing.T) {
	for name, c := range map[string]struct {
		part   string
		answer func(asks)
		p      registries.Patience
		says   string
	}{
		"before the answer": {"/manifests/", func(a asks) { <-a.Context().Done() }, registries.Patience{Stall: 300 * time.Millisecond, Pull: time.Minute}, "HOST has sent nothing for 300ms"},
		"in a layer": {"/blobs/", func(a asks) {
			_, _ = io.WriteString(a.ResponseWriter, "kind")
			a.hang()
		}, registries.Patience{Stall: 300 * time.Millisecond, Pull: time.Minute}, "HOST has sent nothing for 300ms"},
		"in all of it": {"/blobs/", func(a asks) {
			for a.Context().Err() == nil {
				_, _ = io.WriteString(a.ResponseWriter, "k")
				_ = http.NewResponseController(a.ResponseWriter).Flush()
				time.Sleep(200 * time.Millisecond)
			}
		}, registries.Patience{Stall: time.Minute, Pull: time.Second}, "it could not be read within 1s"},
		"between the attempts": {"/", status(429, "Retry-After", "60"), registries.Patience{Stall: time.Minute, Pull: time.Second, Pause: time.Hour, Attempts: 3}, "it could not be read within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			host, _ := faulty(t, c.part, c.answer)
			began := time.Now()
			_, err := pullWith(t.Context(), Scheme+host+"/shop/app:v1", c.p)
			require.ErrorContains(t, err, strings.ReplaceAll(c.says, "HOST", host)+": try again later")
			assert.Less(t, time.Since(began), 30*time.Second)
		})
	}
}

// What takes long to come is not given up while it comes.
func TestALayerThatComesSlowlyIsRead(t *testing.T) {
	host, _ := faulty(t, "/blobs/", func(a asks) {
		for _, c := range "kind: A\n" {
			_, _ = io.WriteString(a.ResponseWriter, string(c))
			_ = http.NewResponseController(a.ResponseWriter).Flush()
			time.Sleep(250 * time.Millisecond)
		}
	})
	_, err := pullWith(t.Context(), Scheme+host+"/shop/app:v1", registries.Patience{Stall: time.Second, Pull: time.Minute, Attempts: 1})
	require.NoError(t, err)
}

func TestWhoIsInterruptedStopsReading(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	host, _ := faulty(t, "/blobs/", func(a asks) {
		_, _ = io.WriteString(a.ResponseWriter, "kind")
		_ = http.NewResponseController(a.ResponseWriter).Flush()
		cancel()
		<-a.Context().Done()
	})
	_, err := pullWith(ctx, Scheme+host+"/shop/app:v1", impatience)
	require.ErrorIs(t, err, context.Canceled)
}

// What a registry says is shown without what a terminal would take for commands, and no address
// that it has signed is.
func TestWhatARegistrySaysIsMadeHarmless(t *testing.T) {
	host, _ := faulty(t, "/blobs/", func(a asks) {
		if !strings.Contains(a.URL.RawQuery, "signature") {
			http.Redirect(a.ResponseWriter, a.Request, a.URL.Path+"?signature=hunter2", http.StatusTemporaryRedirect)
			return
		}
		a.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(a.ResponseWriter, `{"errors": [{"code": "DENIED", "message": "\u001b[2Jclosed today"}]}`)
	})
	_, err := pullWith(t.Context(), Scheme+host+"/shop/app:v1", impatience)
	require.ErrorContains(t, err, "closed today")
	assert.NotContains(t, err.Error(), "\x1b")
	assert.NotContains(t, err.Error(), "hunter2")

	for _, answer := range []func(asks){
		func(a asks) { _, _ = io.WriteString(a.ResponseWriter, "kind") }, // of another length
		func(a asks) { status(http.StatusForbidden)(a) },
	} {
		host, _ := faulty(t, "/blobs/", func(a asks) {
			if !strings.Contains(a.URL.RawQuery, "signature") {
				http.Redirect(a.ResponseWriter, a.Request, a.URL.Path+"?signature=hunter2", http.StatusTemporaryRedirect)
				return
			}
			answer(a)
		})
		_, err := pullWith(t.Context(), Scheme+host+"/shop/app:v1", impatience)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

// The sizes in a manifest add up to less than nothing, and the second layer never ends.
func TestSizesThatOverflowAreRefused(t *testing.T) {
	host, asked := faulty(t, "/blobs/sha256:00", func(a asks) { a.hang() })
	push(t, host, "v2", blob{"one.yaml", []byte("kind: A\n")}) // has {} too
	put(t, "http://"+host+"/v2/shop/app/manifests/v3", ocispec.MediaTypeImageManifest, fmt.Appendf(nil,
		`{"schemaVersion": 2, "layers": [{"digest": %q, "size": 2}, {"digest": "sha256:%064d", "size": %d}]}`, digest([]byte("{}")), 0, int64(math.MaxInt64)))
	_, err := pullWith(t.Context(), Scheme+host+"/shop/app:v3", impatience)
	require.ErrorIs(t, err, errTooLarge)
	assert.Zero(t, asked.Load())
}

// What a tag stands for may change; what a digest stands for may not.
func TestAnArtifactIsWhatItsDigestSays(t *testing.T) {
	host, _ := faulty(t, "/manifests/", func(a asks) {
		a.URL.Path = a.URL.Path[:strings.LastIndex(a.URL.Path, "/")] + "/other"
		a.serve()
	})
	push(t, host, "other", blob{"one.yaml", []byte("kind: B\n")})
	pinned := push(t, host, "v2", blob{"one.yaml", []byte("kind: A\n")})
	_, err := pullWith(t.Context(), Scheme+host+"/shop/app@"+pinned, impatience)
	require.ErrorContains(t, err, "digest")
}

// The user and the password are for the authorization server that the registry names, and its
// token is for the registry.
func TestATokenGoesToItsRegistryAlone(t *testing.T) {
	var leaked, granted atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			leaked.Add(1)
		}
		_, _ = io.WriteString(w, "kind: A\n")
	}))
	t.Cleanup(other.Close)
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "hunter2" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		granted.Add(1)
		_, _ = io.WriteString(w, `{"token": "t0ken"}`)
	}))
	t.Cleanup(tokens.Close)
	host, _ := faulty(t, "/", func(a asks) {
		switch {
		case a.Request.Header.Get("Authorization") != "Bearer t0ken":
			status(http.StatusUnauthorized, "WWW-Authenticate", `Bearer realm="`+tokens.URL+`/token",service="shop"`)(a)
		case strings.Contains(a.URL.Path, "/blobs/"):
			http.Redirect(a.ResponseWriter, a.Request, other.URL, http.StatusTemporaryRedirect)
		default:
			a.serve()
		}
	})
	_, err := pullWith(t.Context(), Scheme+host+"/shop/app:v1", impatience)
	require.ErrorContains(t, err, strings.TrimPrefix(tokens.URL, "http://")+", to which "+host+" refers, answers 403 Forbidden: log in")
	logIn(t, host)
	got, err := pullWith(t.Context(), Scheme+host+"/shop/app:v1", impatience)
	require.NoError(t, err)
	assert.Equal(t, []File{{"one.yaml", []byte("kind: A\n")}}, got.Files)
	assert.Positive(t, granted.Load())
	assert.Zero(t, leaked.Load(), "the other host has been sent the token")
}

// The credentials are those of the user, for the host that they are for. The same name with
// another port is another host.
func TestCredentialsGoToTheirHostAlone(t *testing.T) {
	for _, name := range []string{"localhost", "127.0.0.1"} {
		t.Run(name, func(t *testing.T) { credentialsStay(t, name) })
	}
}

// credentialsStay has a registry refer to another host of that name.
func credentialsStay(t *testing.T, name string) {
	t.Helper()
	var sent, leaked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			leaked.Add(1)
		}
		_, _ = w.Write([]byte("kind: A\n"))
	}))
	t.Cleanup(other.Close)
	var closed atomic.Bool
	host := served(t, func(real http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, ok := r.BasicAuth()
			switch {
			case !closed.Load():
				real.ServeHTTP(w, r)
			case !ok || user != "me" || password != "hunter2":
				w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
				w.WriteHeader(http.StatusUnauthorized)
			case strings.Contains(r.URL.Path, "/blobs/"):
				sent.Add(1)
				http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", name, 1)+"/blob", http.StatusTemporaryRedirect)
			default:
				real.ServeHTTP(w, r)
			}
		})
	})
	push(t, host, "v1", blob{"one.yaml", []byte("kind: A\n")})
	closed.Store(true)
	_, err := Pull(t.Context(), Scheme+host+"/shop/app:v1")
	require.ErrorContains(t, err, host+" wants a user and a password: log in, such as by docker login "+host)
	logIn(t, host)
	got, err := Pull(t.Context(), Scheme+host+"/shop/app:v1")
	require.NoError(t, err)
	assert.Equal(t, []File{{"one.yaml", []byte("kind: A\n")}}, got.Files)
	assert.Positive(t, sent.Load())
	assert.Zero(t, leaked.Load(), "the other host has been sent the credentials")
}
