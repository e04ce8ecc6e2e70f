package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// bounded starts a server with limits of its own, and returns its address.
func bounded(t *testing.T, l limits, handler http.HandlerFunc) (addr string) {
	t.Helper()
	core, said := observer.New(zap.InfoLevel)
	server, err := listen(endpoint{name: "test", addr: "127.0.0.1:0", handler: handler}, l, zap.New(core))
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return said.FilterMessage("serving test").All()[0].ContextMap()["address"].(string)
}

// idle follows the connections of a server that is not serving yet. The function that it returns waits
// until the server has noted that nothing is asked on one: a client has its answer before that.
func idle(server *http.Server) func(t *testing.T, conn net.Conn) {
	var mu sync.Mutex
	states, follow := map[string]http.ConnState{}, server.ConnState
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		follow(conn, state)
		mu.Lock()
		defer mu.Unlock()
		states[conn.RemoteAddr().String()] = state
	}
	return func(t *testing.T, conn net.Conn) {
		t.Helper()
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return states[conn.LocalAddr().String()] == http.StateIdle
		}, 20*time.Second, 100*time.Microsecond, "the server notes that nothing is asked on it")
	}
}

// dial opens a connection on which whatever is waited for comes in time, or not at all.
func dial(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return conn, bufio.NewReader(conn)
}

// ask sends a request and returns the body of the answer.
func ask(t *testing.T, conn net.Conn, from *bufio.Reader, header string) (int, string) {
	t.Helper()
	_, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: janusd\r\n%s\r\n", header)
	require.NoError(t, err)
	answer, err := http.ReadResponse(from, nil)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(body)
}

func ok(w http.ResponseWriter, _ *http.Request) { answer(w, true) }

func TestAConnectionOnWhichNothingIsAskedIsClosed(t *testing.T) {
	for name, l := range map[string]limits{
		"after an answer": {header: time.Hour, read: time.Hour, idle: 50 * time.Millisecond, connections: 1},
		"in a header":     {header: 50 * time.Millisecond, read: time.Hour, idle: time.Hour, connections: 1},
		"in a body":       {header: time.Hour, read: 50 * time.Millisecond, idle: time.Hour, connections: 1},
	} {
		t.Run(name, func(t *testing.T) {
			conn, from := dial(t, bounded(t, l, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				answer(w, true)
			}))
			switch name {
			case "after an answer":
				ask(t, conn, from, "")
			case "in a header":
				_, _ = conn.Write([]byte("GET / HTTP/1.1\r\n"))
			case "in a body":
				_, _ = conn.Write([]byte("POST / HTTP/1.1\r\nHost: janusd\r\nContent-Length: 9\r\n\r\nabc"))
			}
			_, err := io.Copy(io.Discard, from)
			require.NoError(t, err, "the server closes it")
		})
	}
}

func TestAnAnswerMayTakeLongerThanItsRequest(t *testing.T) {
	l := limits{header: 50 * time.Millisecond, read: 50 * time.Millisecond, idle: 50 * time.Millisecond, connections: 1}
	conn, from := dial(t, bounded(t, l, func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			_, _ = w.Write([]byte("still "))
			_ = http.NewResponseController(w).Flush()
		}
	}))
	_, body := ask(t, conn, from, "")
	assert.Equal(t, "still still still ", body)
}

// Who opens connections and asks nothing on them holds up nobody.
func TestAConnectionMoreClosesTheOneThatHasWaitedLongest(t *testing.T) {
	l := usual
	l.connections = 3
	working, finish := make(chan struct{}), make(chan struct{})
	server, err := newServer(endpoint{name: "test", handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Slow") != "" {
			close(working)
			<-finish
		}
		answer(w, true)
	})}, l, zap.NewNop())
	require.NoError(t, err)
	awaitIdle := idle(server)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	addr := listener.Addr().String()
	slow, fromSlow := dial(t, addr)
	_, err = fmt.Fprint(slow, "GET / HTTP/1.1\r\nHost: janusd\r\nSlow: yes\r\n\r\n")
	require.NoError(t, err)
	<-working
	first, fromFirst := dial(t, addr)
	ask(t, first, fromFirst, "")
	awaitIdle(t, first)
	for range 600 {
		idle, _ := dial(t, addr)
		_, err := idle.Write([]byte("GET"))
		require.NoError(t, err)
		last, from := dial(t, addr)
		code, body := ask(t, last, from, "")
		require.Equal(t, http.StatusOK, code, body)
		awaitIdle(t, last)
	}
	_, err = fromFirst.ReadByte()
	require.Error(t, err, "it has waited longest")
	close(finish)
	answer, err := http.ReadResponse(fromSlow, nil)
	require.NoError(t, err, "what was asked is answered")
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	_ = answer.Body.Close()
}

func TestAHeaderIsNoLongerThanItNeedsToBe(t *testing.T) {
	addr := bounded(t, usual, ok)
	conn, from := dial(t, addr)
	code, _ := ask(t, conn, from, "Authorization: Bearer "+strings.Repeat("a", 12<<10)+"\r\n")
	assert.Equal(t, http.StatusOK, code)
	conn, from = dial(t, addr)
	_, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: janusd\r\nAuthorization: Bearer %s\r\n\r\n", strings.Repeat("a", 24<<10))
	require.NoError(t, err)
	line, err := from.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1 431 Request Header Fields Too Large\r\n", line)
}
