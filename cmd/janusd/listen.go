package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// limits are what a server grants to anyone who connects to it: nobody has said yet who they
// are, and what they keep open is janusd's memory.
type limits struct {
	// header bounds how long the header of a request may take, and the TLS handshake; read
	// how long a request may take with its body. An answer may take longer.
	header, read time.Duration
	// idle is how long a connection is kept on which nothing is asked.
	idle time.Duration
	// size is that of a header, in bytes; a token is the most of it.
	size int
	// connections are open at once.
	connections int
}

// usual are those of all servers of janusd. Prometheus and browsers ask again before a
// connection has been idle for so long.
var usual = limits{header: 5 * time.Second, read: 30 * time.Second, idle: 2 * time.Minute, size: 16 << 10, connections: 512}

// listen starts one of the servers.
func listen(e endpoint, l limits, log *zap.Logger) (*http.Server, error) {
	listener, err := net.Listen("tcp", e.addr)
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", e.name, err)
	}
	log.Info("serving "+e.name, zap.String("address", listener.Addr().String()), zap.Bool("tls", e.tls != nil))
	if e.tls != nil {
		listener = tls.NewListener(listener, e.tls)
	}
	server, err := newServer(e, l, log)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving failed", zap.String("server", e.name), zap.Error(err))
		}
	}()
	return server, nil
}

// newServer is a server with its limits that does not serve yet.
func newServer(e endpoint, l limits, log *zap.Logger) (*http.Server, error) {
	// What a server has to say, such as of clients that do not speak TLS, is not worth
	// more, and a line of the log is to be a line of the log.
	errorLog, err := zap.NewStdLogAt(log.Named("http"), zap.DebugLevel)
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", e.name, err)
	}
	return &http.Server{
		Handler: e.handler, ErrorLog: errorLog, WriteTimeout: e.lasting,
		ConnState: newConnections(l.connections).follow,

		ReadHeaderTimeout: l.header, ReadTimeout: l.read, IdleTimeout: l.idle, MaxHeaderBytes: l.size,
	}, nil
}
