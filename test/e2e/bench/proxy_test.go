package bench

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// A farServer is the API server as it is seen from afar: whatever it sends arrives a while later.
// Nothing waits for anything else, so that as much can be asked at once as of the server itself.
type farServer struct {
	listener net.Listener
	address  string // of the API server
	delay    time.Duration
}

// goAway forwards connections to the API server with a delay, until ctx is done.
func goAway(ctx context.Context, config *rest.Config, delay time.Duration) (*rest.Config, error) {
	at, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", at.Hostname()+":0") // Its certificate is for that name.
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go (&farServer{listener, at.Host, delay}).serve(ctx)
	far := rest.CopyConfig(config)
	at.Host = listener.Addr().String()
	far.Host = at.String()
	return far, nil
}

func (f *farServer) serve(ctx context.Context) {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return // ctx is done.
		}
		go func() { _ = f.connect(ctx, client) }()
	}
}

// connect has one client talk to the API server.
func (f *farServer) connect(ctx context.Context, client net.Conn) error {
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "tcp", f.address)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	var both errgroup.Group
	both.Go(func() error {
		_, err := io.Copy(server, client)
		return errors.Join(err, server.Close())
	})
	both.Go(func() error { return errors.Join(late(client, server, f.delay), client.Close()) })
	return both.Wait()
}

// late copies what comes from a reader, each part a while after it has come.
func late(to io.Writer, from io.Reader, delay time.Duration) error {
	type part struct {
		due  time.Time
		data []byte
	}
	parts := make(chan part, 1024)
	var group errgroup.Group
	group.Go(func() error {
		defer close(parts)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				parts <- part{time.Now().Add(delay), buffer[:n]}
			}
			if err != nil {
				return nil //nolint:nilerr // One of the two has hung up.
			}
		}
	})
	var failed error
	for p := range parts {
		if failed != nil {
			continue // so that the reader is not held up
		}
		time.Sleep(time.Until(p.due))
		_, failed = to.Write(p.data)
	}
	return errors.Join(failed, group.Wait())
}
